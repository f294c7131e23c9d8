#!/usr/bin/env python3
"""Emits drawn plans, compiles them with nvcc, and on a GPU runs each: its own check, then bits and time beside our kernel's.

    bench/emit/draw.py build/rooftile --draw 50 --seed 1
    bench/emit/draw.py build/rooftile --draw 10 --seed 1 --run

With --keep FOLDER alone all is built and left there, where nvcc is; --kept FOLDER runs it, where a GPU is and no nvcc.

One line a problem: operation, file, its lines, registers of NVRTC's kernel and of nvcc's, and what is wrong; of a run what the program
printed, whether the bits are our kernel's, both times (ours, the file's) and their ratio.
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from build_draws import words_of  # noqa: E402

OPERATIONS = ('gemm', 'fuse', 'attention', 'chain')


def run(*command, limit=600):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit)


def problems(args, operation, folder):
    suite = folder / f'{operation}.toml'
    law = ['--law', args.law] if args.law else []
    drawn = run(args.rooftile, 'sweep', operation, '--draw', args.draw, '--seed', args.seed, *law,
                '--machine', args.machine, '--max-bytes', '8e9', '--save', suite)
    if drawn.returncode:
        sys.exit(f'sweep {operation}: {drawn.stderr}')
    return tomllib.loads(suite.read_text())['problem']


def registers(text):
    return max((int(n) for n in re.findall(r'Used (\d+) registers', text)), default=None)


class Tensor(ctypes.Structure):
    """rooftile_tensor of rooftile.h."""

    _fields_ = [('name', ctypes.c_char_p), ('type', ctypes.c_char_p), ('element_bits', ctypes.c_int), ('is_output', ctypes.c_int),
                ('rank', ctypes.c_int), ('extents', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('offset', ctypes.c_int64)]

    def bytes(self):
        last = sum((self.extents[i] - 1) * self.strides[i] for i in range(self.rank))
        return (last + 1) * self.element_bits // 8


class Gpu:
    """Our kernel by the C library beside the program, memory and time by cudart, through ctypes."""

    def __init__(self, args):
        self.cudart = ctypes.CDLL(args.cudart)
        self.ours = ctypes.CDLL(str(args.rooftile.parent / 'librooftile_c.so'))
        self.ours.rooftile_error_message.restype = ctypes.c_char_p
        self.ours.rooftile_kernel_tensor_at.restype = ctypes.POINTER(Tensor)
        self.stream = ctypes.c_void_p()
        self.cuda(self.cudart.cudaStreamCreate(ctypes.byref(self.stream)))

    def cuda(self, error):
        if error:
            raise RuntimeError(f'CUDA error {error}')

    def own(self, status):
        if status:
            raise RuntimeError(self.ours.rooftile_error_message().decode())

    def kernel(self, request):
        plans, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.own(self.ours.rooftile_plan(json.dumps(request).encode(), ctypes.byref(plans)))
        self.own(self.ours.rooftile_compile(plans, 0, ctypes.byref(kernel)))
        count = self.ours.rooftile_kernel_tensor_count(kernel)
        tensors = [self.ours.rooftile_kernel_tensor_at(kernel, i).contents for i in range(count)]
        workspace = ctypes.c_size_t()
        self.own(self.ours.rooftile_workspace_bytes(kernel, 0, ctypes.byref(workspace)))
        return kernel, tensors, workspace.value

    def memory(self, count, value=None):
        pointer = ctypes.c_void_p()
        self.cuda(self.cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(count + 256)))
        if value is None:
            self.cuda(self.cudart.cudaMemset(pointer, 0, ctypes.c_size_t(count)))
        else:
            self.cuda(self.cudart.cudaMemcpy(pointer, value, ctypes.c_size_t(count), 1))
        return pointer

    def free(self, pointers):
        for pointer in {p.value for p in pointers}:
            self.cudart.cudaFree(ctypes.c_void_p(pointer))

    def bytes(self, pointer, count):
        out = ctypes.create_string_buffer(count)
        self.cuda(self.cudart.cudaDeviceSynchronize())
        self.cuda(self.cudart.cudaMemcpy(out, pointer, ctypes.c_size_t(count), 2))
        return out.raw

    def graph(self, launch, launches=20):
        """So many launches as one graph: the host's time is not the kernel's."""
        graph, run_ = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuda(self.cudart.cudaStreamBeginCapture(self.stream, 0))
        for _ in range(launches):
            launch()
        self.cuda(self.cudart.cudaStreamEndCapture(self.stream, ctypes.byref(graph)))
        self.cuda(self.cudart.cudaGraphInstantiate(ctypes.byref(run_), graph, ctypes.c_ulonglong(0)))
        return run_

    def time_us(self, graph, launches=20):
        begin, end = ctypes.c_void_p(), ctypes.c_void_p()
        ms = ctypes.c_float()
        self.cuda(self.cudart.cudaEventCreate(ctypes.byref(begin)))
        self.cuda(self.cudart.cudaEventCreate(ctypes.byref(end)))
        self.cuda(self.cudart.cudaEventRecord(begin, self.stream))
        self.cuda(self.cudart.cudaGraphLaunch(graph, self.stream))
        self.cuda(self.cudart.cudaEventRecord(end, self.stream))
        self.cuda(self.cudart.cudaEventSynchronize(end))
        self.cuda(self.cudart.cudaEventElapsedTime(ctypes.byref(ms), begin, end))
        return ms.value * 1000 / launches


def one(args, operation, problem, folder, number):
    here = folder / f'{operation}_{number}'
    row = {'operation': operation, 'problem': problem, 'wrong': []}
    emitted = run(args.rooftile, 'emit', operation, *words_of(operation, problem), '--machine', args.machine, '-o', here)
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
    if row['registers'][1] > row['registers'][0] + 2:
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
                                  'extern "C" int emitted_launch(void** p, cudaStream_t stream) '
                                  f'{{ return int(rooftile::launch({names}, stream)); }}\n')
    built = run('nvcc', '-std=c++20', f'-arch={arch}', '-shared', '-Xcompiler', '-fPIC', here / 'shim.cu', '-o', here / 'launch.so')
    if built.returncode:
        row['wrong'].append('shared library: ' + built.stderr[:200])
        return row
    row['folder'] = here.name
    return row


def beside_ours(row, args, gpu, folder):
    """Runs the program; then its launch() and our kernel on the same bytes, and in turns for the time."""
    here = folder / row['folder']
    ran = run(here / 'main', limit=300)
    row['printed'] = ran.stdout.splitlines()
    if ran.returncode:
        row['wrong'].append('the check failed: ' + ' | '.join(row['printed'] or [ran.stderr.strip()]))
        return
    kernel, tensors, workspace_bytes = gpu.kernel({'op': row['operation'], 'machine': args.machine, **row['problem']})
    if any(tensor.type in (b'int32', b'int64') and not tensor.is_output for tensor in tensors):
        row['bits'] = 'not compared: an input is of indices'
        return
    emitted = ctypes.CDLL(str((here / 'launch.so').resolve())).emitted_launch
    source = random.Random(args.seed)
    results, ours, theirs = [], [], []
    for tensor in tensors:
        count = tensor.bytes()
        if tensor.is_output:
            ours.append(gpu.memory(count))
            theirs.append(gpu.memory(count))
            results.append((ours[-1], theirs[-1], count))
            continue
        # Numbers of a middling size, whichever the type: an exponent near that of 1, any fraction. Flags are 0 or 1.
        block = bytearray(source.randbytes(1 << 16))
        block[1::2] = bytes(b & 0x80 | 0x3c | b & 0x03 for b in block[1::2])
        if tensor.element_bits == 8:
            block = bytearray(b & 1 if tensor.type in (b'bool', b'boolean') else b & 0xb7 for b in block)
        pointer = gpu.memory(count, (bytes(block) * (count // len(block) + 1))[:count])
        ours.append(pointer)
        theirs.append(pointer)
    own_workspace = gpu.memory(workspace_bytes) if workspace_bytes else ctypes.c_void_p()
    if workspace_bytes:
        theirs.append(gpu.memory(workspace_bytes))
    array = ctypes.c_void_p * len(tensors)
    own = array(*[p.value for p in ours[:len(tensors)]])
    other = (ctypes.c_void_p * len(theirs))(*[p.value for p in theirs])
    launch_own = lambda: gpu.own(gpu.ours.rooftile_launch(kernel, 0, gpu.stream, own, len(tensors), own_workspace))
    launch_other = lambda: gpu.cuda(emitted(other, gpu.stream))
    launch_own()
    launch_other()
    row['bits'] = all(gpu.bytes(a, n) == gpu.bytes(b, n) for a, b, n in results)
    if not row['bits']:
        row['wrong'].append('other bits than our kernel')
    graphs = gpu.graph(launch_own), gpu.graph(launch_other)
    times = [[gpu.time_us(graph) for graph in graphs] for _ in range(12)][2:]  # in turns
    row['time_us'] = [statistics.median(t[i] for t in times) for i in (0, 1)]
    row['ratio'] = statistics.median(t[1] / t[0] for t in times)
    gpu.free([*ours, *theirs])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rooftile')
    parser.add_argument('--draw', type=int, default=10, help='problems of each operation')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--law')
    parser.add_argument('--machine', default='h100-sxm')
    parser.add_argument('--operations', nargs='*', default=OPERATIONS)
    parser.add_argument('--run', action='store_true', help='on a GPU: check, bits, time')
    parser.add_argument('--cudart', default='/usr/local/cuda/lib64/libcudart.so')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--keep', type=pathlib.Path, help='build what a GPU elsewhere runs, and leave it here')
    parser.add_argument('--kept', type=pathlib.Path, help='run what --keep left')
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
        gpu = Gpu(args) if args.run or args.kept else None
        for row in rows:
            if gpu and not row['wrong'] and 'folder' in row:
                try:
                    beside_ours(row, args, gpu, folder)
                except Exception as error:  # a problem that cannot be run says so and the others go on
                    row['wrong'].append(f'{type(error).__name__}: {error}')
            shown = {key: row[key] for key in ('operation', 'file', 'lines', 'registers', 'time_us', 'ratio', 'bits', 'printed', 'refused', 'wrong') if key in row}
            if row['wrong'] or 'refused' in row:
                shown['problem'] = row['problem']
            print(json.dumps(shown), flush=True)
        wrong = sum(bool(row['wrong']) for row in rows)
        print(f'{len(rows)} drawn, {sum("refused" in row for row in rows)} refused, {wrong} wrong', file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
