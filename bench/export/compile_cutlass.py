#!/usr/bin/env python3
"""Compiles what `export gemm --to cutlass` writes of drawn products, by nvcc and CUTLASS's headers. Needs no GPU.

    bench/export/compile_cutlass.py build/rooftile --cutlass INCLUDE --draw 12 --seed 1
    bench/export/compile_cutlass.py build/rooftile --cutlass INCLUDE --draw 12 --seed 1 --full

Types alone take some 2 s each, since files that are compiled together read the headers once; --full makes each file's kernel, half a minute of one
core each: registers, spills, and whether the compiler serialised wgmma. Exits 1 where one does not compile, spills or is serialised.

    bench/export/compile_cutlass.py build/rooftile --cutlass INCLUDE --draw 4 --machines h100-sxm --keep FOLDER
    bench/export/compile_cutlass.py build/rooftile --kept FOLDER

--keep builds libraries, --kept runs them where a GPU and torch are: each result beside torch's, its time and what was predicted.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from build_draws import words_of  # noqa: E402

MACHINES = {'h100-sxm': 'sm_90a', 'a100-80-sxm': 'sm_80'}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def compiled(args, folder, name, arch, text):
    source = folder / f'{name}.cu'
    source.write_text(text)
    return run('nvcc', '-std=c++17', f'-arch={arch}', '-DNDEBUG', *macros(text), '--expt-relaxed-constexpr', '-I', args.cutlass, '-Xptxas', '-v', '-cubin', source,
               '-o', folder / f'{name}.cubin')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rooftile', type=pathlib.Path)
    parser.add_argument('--keep', type=pathlib.Path)
    parser.add_argument('--kept', type=pathlib.Path)
    parser.add_argument('--cutlass', help='folder that holds cutlass/cutlass.h')
    parser.add_argument('--draw', type=int, default=12)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--laws', default=',batch,fp8', help='of draws, commas between')
    parser.add_argument('--machines', default=','.join(MACHINES))
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    args = parser.parse_args()
    args.rooftile = args.rooftile.resolve()
    if args.kept:
        sys.exit(1 if run_kept(args.kept) else 0)
    wrong, refused, files = 0, {}, []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for law in args.laws.split(','):
            suite = folder / 'suite.toml'
            code, _, error = run(args.rooftile, 'sweep', 'gemm', '--draw', args.draw, '--seed', args.seed, *(['--law', law] if law else []), '--save', suite)
            if code:
                sys.exit(error)
            for problem in tomllib.loads(suite.read_text())['problem']:
                for machine in args.machines.split(','):
                    words = [*words_of('gemm', problem), '--machine', machine]
                    code, out, error = run(args.rooftile, 'export', 'gemm', *words, '--to', 'cutlass', '--json')
                    if code:
                        refused.setdefault(re.sub(r'\d+', 'N', error)[:110], []).append(' '.join(words))
                        continue
                    files.append((f'x{len(files)}', MACHINES[machine], words, json.loads(out)))
        print(f'{len(files)} exported', flush=True)
        for message, those in refused.items():
            print(f'{len(those)} refused: {message} ({those[0]})')
        if args.keep:
            sys.exit(1 if keep(args, files) else 0)
        files = [(name, arch, words, document['text']) for name, arch, words, document in files]
        if args.full:
            work = [(name, arch, f'{text}\ncutlass::Status make() {{ return {namespace(text)}::run(nullptr, nullptr, nullptr); }}\n', [(words, text)]) for name, arch, words, text in files]
        else:
            work = []
            for arch in MACHINES.values():
                of = [(words, text.replace(namespace(text), name)) for name, a, words, text in files if a == arch]
                for i in range(0, len(of), 8):
                    work.append((f'{arch}_{i}', arch, '\n'.join(text + check(text) for _, text in of[i:i + 8]), of[i:i + 8]))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for (name, arch, _, those), (code, out, error) in zip(work, pool.map(lambda w: compiled(args, folder, *w[:3]), work)):
                bad = code or re.search(r'C7510|[1-9]\d* bytes spill', error)
                wrong += bool(bad)
                registers = re.findall(r'Used (\d+) registers', error)
                print(f'{"WRONG" if bad else "right"} {arch} {len(those)}: {" ".join(those[0][0])} {" ".join(registers)}', flush=True)
                if bad:
                    print('\n'.join(line[:400] for line in error.split('\n') if 'error' in line or 'detected' in line or 'C7510' in line or 'spill' in line)[:3000])
    sys.exit(1 if wrong else 0)


WRAPPER = """
extern "C" size_t workspace() {{ return {0}::workspace_bytes(); }}
extern "C" int launch(void const* a, void const* b, void* d, void* workspace, cudaStream_t stream) {{
    return int({0}::run(({0}::{1} const*)a, ({0}::{2} const*)b, ({0}::ElementD*)d, workspace, stream));
}}
"""


def keep(args, files):
    """Builds a library of each file."""
    args.keep.mkdir(parents=True, exist_ok=True)
    wrong = 0

    def build(file):
        name, arch, _, document = file
        text = document['text']
        source = args.keep / f'{name}.cu'
        source.write_text(text + WRAPPER.format(namespace(text), *re.search(r'run\((\w+) const\* a, (\w+) const', text).groups()))
        return run('nvcc', '-std=c++17', f'-arch={arch}', '-DNDEBUG', *macros(text), '--expt-relaxed-constexpr', '-I', args.cutlass, '-Xcompiler', '-fPIC', '-shared', source,
                   '-o', args.keep / f'{name}.so')
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (name, _, words, _), (code, _, error) in zip(files, pool.map(build, files)):
            wrong += code != 0
            print(f'{name} {"built" if code == 0 else error[:1000]}: {" ".join(words)}', flush=True)
    (args.keep / 'files.json').write_text(json.dumps([{'name': name, 'words': words} | {key: document[key] for key in ('problem', 'predicted_time_us', 'file')}
                                                      for name, _, words, document in files]))
    return wrong


def run_kept(folder):
    import ctypes
    import torch
    types = {'bf16': torch.bfloat16, 'fp16': torch.float16, 'fp32': torch.float32, 'fp8_e4m3': torch.float8_e4m3fn, 'fp8_e5m2': torch.float8_e5m2}

    def matrix(rows, columns, row_major, pitch, stride, count, of):
        data = torch.randn(stride * (count - 1) + (rows if row_major else columns) * pitch, device='cuda').to(types[of])
        return data, torch.as_strided(data, (count, rows, columns), (stride, pitch, 1) if row_major else (stride, 1, pitch))
    wrong = 0
    for row in json.loads((folder / 'files.json').read_text()):
        p = row['problem']
        library, count = ctypes.CDLL(str(folder / f'{row["name"]}.so')), p['batch']
        library.workspace.restype = ctypes.c_size_t
        a_data, a = matrix(p['m'], p['k'], p['a_major'] == 'k', p['lda'], p.get('stride_a', 0), count, p['types']['a'])
        b_data, b = matrix(p['k'], p['n'], p['b_major'] != 'k', p['ldb'], p.get('stride_b', 0), count, p['types']['b'])
        d_data, d = matrix(p['m'], p['n'], True, p['ldc'], p.get('stride_d', 0), count, p['types']['c'])
        workspace = torch.zeros(max(1, library.workspace()), dtype=torch.uint8, device='cuda')
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a_data, b_data, d_data, workspace)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = library.launch(*pointers, stream)
        torch.cuda.synchronize()
        expected = a.float() @ b.float()
        bound = expected.abs() * torch.finfo(types[p['types']['c']]).eps + (a.float().abs() @ b.float().abs()) * 2.0**(-10 if 'fp8' in p['types']['a'] else -16)
        right = status == 0 and bool(((d.float() - expected).abs() <= bound).all())
        wrong += not right
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(2):  # the second counts
            begin.record()
            for _ in range(100):
                library.launch(*pointers, stream)
            end.record()
        end.synchronize()
        print(f'{"right" if right else "WRONG"} {row["file"]}: {10 * begin.elapsed_time(end):.1f} us, of our kernel predicted {row["predicted_time_us"]:.1f}'
              + ('' if status == 0 else f'; status {status}'), flush=True)
    return wrong


def macros(text):
    """Of the first file's own command, beside -DNDEBUG."""
    return re.findall(r'-DCUTLASS_\S+', text.split('#include')[0])


def namespace(text):
    return re.search(r'^namespace (\w+) \{', text, re.M)[1]


def check(text):
    """What makes the kernel's type, of 3.x; files of 2.x do by themselves."""
    return f'\nstatic_assert({namespace(text)}::Kernel::MaxThreadsPerBlock > 0);\n' if 'GemmUniversalAdapter' in text else '\n'


if __name__ == '__main__':
    main()
