#!/usr/bin/env python3
"""Emits drawn plans, compiles them with nvcc, and on a GPU runs each: its own check, then bits and time beside our kernel's.

    bench/emit/draw.py build/rooftile --draw 50 --seed 1
    bench/emit/draw.py build/rooftile --draw 10 --seed 1 --run --python build/python

One line a problem: operation, file, lines of it before and after, registers of NVRTC's kernel and of nvcc's, and what is wrong.
Exits 1 where something is.
"""

import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import re
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
        self.cudart = ctypes.CDLL('libcudart.so')

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
    row['main'] = str(here / 'main')
    row['folder'], row['source'], row['arch'] = str(here), str(source), arch
    return row


def beside_ours(row, args, gpu):
    """Runs the program; then its launch() and our kernel on the same bytes."""
    ran = run(row['main'], limit=300)
    row['printed'] = ran.stdout.splitlines()
    time = re.search(r'time: ([\d.]+) us', ran.stdout)
    if time:
        row['time_us'] = float(time.group(1))
    if ran.returncode:
        row['wrong'].append('the check failed: ' + ' | '.join(row['printed'] or [ran.stderr.strip()]))
        return
    import random

    import rooftile  # the package of the same build
    plan = rooftile.plan(row['operation'], machine=args.machine, **row['problem'])[0]
    kernel = rooftile.compile(plan)
    library = pathlib.Path(row['folder']) / 'launch.so'
    shim = pathlib.Path(row['folder']) / 'shim.cu'
    tensors = plan.tensors
    names = ', '.join(f'p[{i}]' for i in range(len(tensors) + (kernel.workspace_bytes > 0)))
    shim.write_text(f'#include "{row["source"]}"\n'
                    f'extern "C" int emitted_launch(void** p) {{ return int(rooftile::launch({names}, nullptr)); }}\n')
    built = run('nvcc', '-std=c++20', f'-arch={row["arch"]}', '-shared', '-Xcompiler', '-fPIC', '-cudart', 'shared', shim, '-o', library)
    if built.returncode:
        row['wrong'].append('shared library: ' + built.stderr[:200])
        return
    launch = ctypes.CDLL(str(library)).emitted_launch
    source = random.Random(args.seed)
    results, ours, theirs = [], [], []
    for tensor in tensors:
        count = tensor.bytes
        if tensor.role == 'out':
            ours.append(gpu.memory(count))
            theirs.append(gpu.memory(count))
            results.append((ours[-1], theirs[-1], count))
        else:
            # Small numbers of any of the 16-bit types and of fp32: an exponent in the middle, any fraction.
            values = bytearray(source.randbytes(count))
            values[1::2] = bytes(b & 0x80 | 0x3c | b & 0x03 for b in values[1::2])
            pointer = gpu.memory(count, bytes(values))
            ours.append(pointer)
            theirs.append(pointer)
    if kernel.workspace_bytes:
        ours.append(gpu.memory(kernel.workspace_bytes))
        theirs.append(gpu.memory(kernel.workspace_bytes))
    kernel.launch(0, [p.value for p in ours[:len(tensors)]], ours[-1].value if kernel.workspace_bytes else 0)
    error = launch((ctypes.c_void_p * len(theirs))(*[p.value for p in theirs]))
    if error:
        row['wrong'].append(f'launch: CUDA error {error}')
        return
    if any(gpu.bytes(a, n) != gpu.bytes(b, n) for a, b, n in results):
        row['wrong'].append('other bits than our kernel')


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
    parser.add_argument('--keep', type=pathlib.Path, help='leave the files here')
    args = parser.parse_args()
    args.rooftile = pathlib.Path(args.rooftile).resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        work = [(operation, problem, folder, number) for operation in args.operations
                for number, problem in enumerate(problems(args, operation, folder))]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            rows = list(pool.map(lambda w: one(args, *w), work))
        gpu = Gpu() if args.run else None
        for row in rows:
            if args.run and not row['wrong'] and 'main' in row:
                try:
                    beside_ours(row, args, gpu)
                except Exception as error:  # a problem that cannot be run says so and the others go on
                    row['wrong'].append(f'{type(error).__name__}: {error}')
            shown = {key: row[key] for key in ('operation', 'file', 'lines', 'registers', 'time_us', 'printed', 'refused', 'wrong') if key in row}
            if row['wrong'] or 'refused' in row:
                shown['problem'] = row['problem']
            print(json.dumps(shown), flush=True)
        wrong = sum(bool(row['wrong']) for row in rows)
        print(f'{len(rows)} drawn, {sum("refused" in row for row in rows)} refused, {wrong} wrong', file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
