#!/usr/bin/env python3
"""Emits drawn plans, compiles them with nvcc, and on a GPU runs each: its own check, then bits and time beside our kernel's.

    bench/emit/draw.py build/rooftile --draw 50 --seed 1
    bench/emit/draw.py build/rooftile --draw 10 --seed 1 --run
    bench/emit/draw.py build/rooftile --draw 10 --seed 1 --keep FOLDER     # where nvcc is
    bench/emit/draw.py build/rooftile --kept FOLDER                        # where a GPU is, and no nvcc

One line a problem: operation, file, lines of it before and after, registers of NVRTC's kernel and of nvcc's, and what is wrong.
Exits 1 where something is.
"""

import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

OPERATIONS = ('gemm', 'fuse', 'attention', 'chain')


def run(*command, limit=600):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit)


def flags(problem):
    """A row of a suite as the command line takes it."""
    out = []
    for key, value in problem.items():
        flag = '--' + key.replace('_', '-')
        if key == 'expression':
            out.insert(0, value)
        elif isinstance(value, bool):
            out += [flag] if value else []
        elif isinstance(value, list):
            for one in value:
                out += [flag, str(one)]
        else:
            out += [flag, str(value)]
    return out


def problems(args, operation, folder):
    suite = folder / f'{operation}.toml'
    law = ['--law', args.law] if args.law else []
    drawn = run(args.rooftile, 'sweep', operation, '--draw', args.draw, '--seed', args.seed, *law,
                '--machine', args.machine, '--save', suite)
    if drawn.returncode:
        sys.exit(f'sweep {operation}: {drawn.stderr}')
    return tomllib.loads(suite.read_text())['problem']


def registers(text):
    return max((int(n) for n in re.findall(r'Used (\d+) registers', text)), default=None)


class Gpu:
    """Device memory and launches by cudart, through ctypes."""

    def __init__(self):
        found = [p for folder in sys.path for p in pathlib.Path(folder or '.').glob('nvidia/cu13/lib/libcudart.so.*')]
        self.cudart = ctypes.CDLL(str(found[0]) if found else 'libcudart.so')

    def must(self, error):
        if error:
            raise RuntimeError(f'CUDA error {error}')

    def memory(self, count, value=None):
        pointer = ctypes.c_void_p()
        self.must(self.cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(count + 256)))
        if value is None:
            self.must(self.cudart.cudaMemset(pointer, 0, ctypes.c_size_t(count)))
        else:
            self.must(self.cudart.cudaMemcpy(pointer, value, ctypes.c_size_t(count), 1))
        return pointer

    def seconds(self, launch, count=20):
        events = [ctypes.c_void_p() for _ in range(2)]
        for event in events:
            self.must(self.cudart.cudaEventCreate(ctypes.byref(event)))
        self.must(self.cudart.cudaEventRecord(events[0], None))
        for _ in range(count):
            launch()
        self.must(self.cudart.cudaEventRecord(events[1], None))
        self.must(self.cudart.cudaDeviceSynchronize())
        milliseconds = ctypes.c_float()
        self.must(self.cudart.cudaEventElapsedTime(ctypes.byref(milliseconds), *events))
        for event in events:
            self.must(self.cudart.cudaEventDestroy(event))
        return milliseconds.value / 1e3 / count

    def ratio(self, one, other):
        """Of their times, the median of pairs in turn."""
        return round(statistics.median(self.seconds(one) / self.seconds(other) for _ in range(7)), 3)

    def bytes(self, pointer, count):
        out = ctypes.create_string_buffer(count)
        self.must(self.cudart.cudaDeviceSynchronize())
        self.must(self.cudart.cudaMemcpy(out, pointer, ctypes.c_size_t(count), 2))
        return out.raw


def one(args, operation, problem, folder, number):
    here = folder / f'{operation}_{number}'
    row = {'operation': operation, 'problem': problem, 'wrong': []}
    emitted = run(args.rooftile, 'emit', operation, *flags(problem), '--machine', args.machine, '-o', here)
    if emitted.returncode:
        row['refused'] = emitted.stderr.strip().splitlines()[0]
        if emitted.returncode not in (2, 10):
            row['wrong'].append(row['refused'])
        return row
    source = next(here.glob('*.cu'))
    if 'branches stand' in emitted.stderr:
        row['wrong'].append('not reduced')
    text = source.read_text()
    row['file'], row['lines'] = source.name, text.count('\n')
    planned = [int(n) for n in re.findall(r'(\d+) registers a thread at launch', re.sub(r'\s*\n//\s*', ' ', text))]
    arch = re.search(r'-arch=(\w+)', text).group(1)
    compiled = run('nvcc', '-std=c++20', f'-arch={arch}', '-Xptxas', '-v', '-c', source, '-o', here / 'x.o')
    row['registers'] = [max(planned), registers(compiled.stderr)]
    if compiled.returncode:
        row['wrong'].append('nvcc: ' + next((line for line in compiled.stderr.splitlines() if 'error' in line), '?'))
        return row
    if re.search(r'[1-9]\d* bytes spill', compiled.stderr):
        row['wrong'].append('spills')
    if abs(row['registers'][0] - row['registers'][1]) > 2:
        row['wrong'].append('other registers')
    main = run('nvcc', '-std=c++20', f'-arch={arch}', '-DROOFTILE_EMIT_MAIN', source, '-o', here / 'main')
    if main.returncode:
        row['wrong'].append('main: ' + next((line for line in main.stderr.splitlines() if 'error' in line), '?'))
        return row
    if not (args.run or args.keep):
        return row
    parameters = re.search(r'cudaError_t launch\(([^)]*)\)', text).group(1)
    names = ', '.join(f'p[{i}]' for i in range(parameters.count(',')))  # all but the stream
    (here / 'shim.cu').write_text(f'#include "{source.resolve()}"\n'
                                 f'extern "C" int emitted_launch(void** p) {{ return int(rooftile::launch({names}, nullptr)); }}\n')
    built = run('nvcc', '-std=c++20', f'-arch={arch}', '-shared', '-Xcompiler', '-fPIC', here / 'shim.cu', '-o', here / 'launch.so')
    if built.returncode:
        row['wrong'].append('shared library: ' + built.stderr[:200])
        return row
    row['folder'] = here.name
    return row


def beside_ours(row, args, gpu, folder):
    """Runs the program; then its launch() and our kernel on the same bytes, for bits and time."""
    here = folder / row['folder']
    ran = run(here / 'main', limit=120)
    row['printed'] = ran.stdout.splitlines()
    if ran.returncode:
        row['wrong'].append('the check failed: ' + ' | '.join(row['printed'] or [ran.stderr.strip()]))
        return
    import rooftile  # the package of the same build
    plan = rooftile.plan(row['operation'], machine=args.machine, **row["problem"])
    if sum(tensor.bytes for tensor in plan.tensors) > args.most_bytes:
        row['not_compared'] = 'more bytes than --most-bytes'
        return
    kernel = rooftile.compile(plan)
    launch = ctypes.CDLL(str((here / 'launch.so').resolve())).emitted_launch
    source = random.Random(args.seed)
    results, ours, theirs = [], [], []
    for tensor in plan.tensors:
        if tensor.role == 'out':
            ours.append(gpu.memory(tensor.bytes))
            theirs.append(gpu.memory(tensor.bytes))
            results.append((ours[-1], theirs[-1], tensor.bytes))
        else:
            # Small numbers of any of the 16-bit types and of fp32: an exponent in the middle, any fraction.
            values = bytearray(source.randbytes(tensor.bytes))
            values[1::2] = bytes(values[1::2]).translate(bytes(b & 0x80 | 0x3c | b & 0x03 for b in range(256)))
            ours.append(gpu.memory(tensor.bytes, bytes(values)))
            theirs.append(ours[-1])
    if kernel.workspace_bytes:
        ours.append(gpu.memory(kernel.workspace_bytes))
        theirs.append(gpu.memory(kernel.workspace_bytes))
    pointers = (ctypes.c_void_p * len(theirs))(*[p.value for p in theirs])
    tensors, workspace = [p.value for p in ours[:len(plan.tensors)]], ours[-1].value if kernel.workspace_bytes else 0
    launches = {'ours': lambda: kernel.launch(0, tensors, workspace), 'emitted': lambda: launch(pointers)}
    launches['ours']()
    if error := launch(pointers):
        row['wrong'].append(f'launch: CUDA error {error}')
    elif any(gpu.bytes(a, n) != gpu.bytes(b, n) for a, b, n in results):
        row['wrong'].append('other bits than our kernel')
    else:
        row['time_ratio'] = gpu.ratio(launches['emitted'], launches['ours'])
    for pointer in {p.value: p for p in ours + theirs}.values():
        gpu.must(gpu.cudart.cudaFree(pointer))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rooftile')
    parser.add_argument('--draw', type=int, default=10, help='problems of each operation')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--law')
    parser.add_argument('--machine', default='h100-sxm')
    parser.add_argument('--operations', nargs='*', default=OPERATIONS)
    parser.add_argument('--run', action='store_true', help='on a GPU: check, bits, time')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--keep', type=pathlib.Path, help='build for a GPU elsewhere, and leave all here')
    parser.add_argument('--kept', type=pathlib.Path, help='run what --keep left')
    parser.add_argument('--most-bytes', type=int, default=1 << 29, help='of tensors whose bits and times are compared')
    args = parser.parse_args()
    args.rooftile = pathlib.Path(args.rooftile).resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or args.kept or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        if args.kept:
            rows = json.loads((folder / 'rows.json').read_text())
        else:
            work = [(operation, problem, folder, number) for operation in args.operations
                    for number, problem in enumerate(problems(args, operation, folder))]
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                rows = list(pool.map(lambda w: one(args, *w), work))
            (folder / 'rows.json').write_text(json.dumps(rows))
        gpu = Gpu() if args.run or args.kept else None
        for row in rows:
            if gpu and not row['wrong'] and 'folder' in row:
                try:
                    beside_ours(row, args, gpu, folder)
                except Exception as error:  # a problem that cannot be run says so and the others go on
                    row['wrong'].append(f'{type(error).__name__}: {error}')
            shown = {key: row[key] for key in ('operation', 'file', 'lines', 'registers', 'time_ratio', 'printed', 'not_compared', 'refused', 'wrong') if key in row}
            if row['wrong'] or 'refused' in row:
                shown['problem'] = row['problem']
            print(json.dumps(shown), flush=True)
        ratios = [row['time_ratio'] for row in rows if 'time_ratio' in row]
        if ratios:
            print(f'{len(ratios)} of the same bits; their time over ours {statistics.geometric_mean(ratios):.3f}, {min(ratios)} to {max(ratios)}', file=sys.stderr)
        wrong = sum(bool(row['wrong']) for row in rows)
        print(f'{len(rows)} drawn, {sum("refused" in row for row in rows)} refused, {wrong} wrong', file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
