#!/usr/bin/env python3
"""Is what `export gemm --to triton` and `--to vllm-moe` choose as fast as autotuning? Drawn products, plain and in groups.

    bench/export/time_triton.py build/rooftile --draw 12 --seed 1 --out FILE.json
    bench/export/time_triton.py build/rooftile --draw 12 --seed 1 --compile-only

On a GPU (torch, triton): each exported file checks itself, then its configuration is timed beside the 24 of CONFIGURATIONS by the same
kernel, launches over rotated operands in a CUDA graph, the exported and the fastest ones in turns again. A line a problem: the
exported one's time, the best of the 24 and their ratio (best / exported: 1 is as fast, less is slower); then geometric means.
--moe E,HIDDEN,INTERMEDIATE,TOP_K adds experts: each line of vLLM's file by the sum of both products.
With --compile-only each configuration is compiled for sm_90 and its registers, spills and shared memory are compared with the model; needs no
GPU and no torch, only triton. Exits 1 where a result is wrong, an exported configuration spills or does not fit.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from build_draws import words_of  # noqa: E402

# BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages: Triton's tutorials, Inductor's rows, and tiles of few rows as servers tune them.
CONFIGURATIONS = (
    (128, 256, 64, 8, 8, 3), (128, 256, 64, 8, 8, 4), (256, 128, 64, 8, 8, 3), (256, 128, 64, 8, 8, 4), (128, 128, 64, 8, 4, 4),
    (128, 128, 64, 8, 8, 3), (128, 128, 64, 8, 8, 4), (128, 128, 128, 8, 8, 3), (128, 64, 64, 8, 4, 4), (64, 128, 64, 8, 4, 4),
    (64, 256, 64, 8, 4, 4), (64, 256, 64, 8, 8, 4), (128, 32, 64, 8, 4, 4), (64, 64, 64, 8, 4, 5), (64, 64, 128, 8, 4, 4),
    (64, 32, 64, 8, 4, 5), (64, 32, 128, 8, 4, 5), (32, 64, 64, 8, 4, 5), (32, 64, 128, 8, 4, 4), (32, 128, 64, 8, 4, 5),
    (16, 64, 128, 8, 4, 5), (16, 64, 64, 1, 4, 6), (16, 32, 128, 8, 4, 6), (16, 128, 64, 8, 4, 5))
# Beside them with --fit, for judge_triton.py alone: fewer warps, more and fewer stages, other bands.
MORE = ((128, 128, 64, 8, 4, 3), (128, 128, 64, 8, 4, 6), (64, 256, 64, 8, 4, 3), (128, 128, 64, 8, 8, 6), (64, 128, 64, 8, 4, 6), (64, 64, 64, 8, 4, 3),
        (128, 256, 64, 1, 8, 4), (128, 256, 64, 2, 8, 4), (128, 256, 64, 4, 8, 4), (128, 256, 64, 16, 8, 4))
ROTATED_BYTES = 2**28  # of all operands together: more than any L2
TYPES = {'bfloat16': 'bf16', 'float16': 'fp16', 'float32': 'fp32', 'float8_e4m3fn': 'fp8e4nv', 'float8_e5m2': 'fp8e5'}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def problems(args, law):
    with tempfile.TemporaryDirectory() as folder:
        suite = pathlib.Path(folder) / 'suite.toml'
        code, _, error = run(args.rooftile, 'sweep', 'gemm', '--draw', args.draw, '--seed', args.seed, '--machine', args.machine,
                             '--max-bytes', '4e9', *(['--law', law] if law else []), '--save', suite)
        if code:
            sys.exit(f'sweep: {error}')
        return tomllib.loads(suite.read_text())['problem']


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem.replace(',', '_'), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(args, words, folder, number):
    """The module of an exported file and the document that it came with."""
    code, out, error = run(args.rooftile, 'export', 'gemm', *words, '--to', 'triton', '--machine', args.machine, '--json')
    if code:
        return None, error
    document = json.loads(out)
    path = folder / f'exported_{number}.py'
    path.write_text(document['text'])
    return loaded(path), document


def stand_in_for_torch():
    """Enough of torch for an exported file to be imported where there is none: its kernel alone is used."""
    class Type(str):
        itemsize = 2
    torch = types.ModuleType('torch')
    for name in TYPES:
        setattr(torch, name, Type(name))
    sys.modules['torch'] = torch


def label(config):
    k = config.kwargs
    return f'{k["BLOCK_M"]}x{k["BLOCK_N"]}x{k["BLOCK_K"]} g{k["GROUP_M"]} w{config.num_warps} s{config.num_stages}'


def as_config(row):
    import triton
    m, n, k, group, warps, stages = row
    return triton.Config({'BLOCK_M': m, 'BLOCK_N': n, 'BLOCK_K': k, 'GROUP_M': group}, num_warps=warps, num_stages=stages)


def compiled(module, config, arch):
    """Registers, bytes of spills and of shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    kernel, tile = module.matmul_kernel, dict(config.kwargs)
    names = kernel.arg_names
    of = {'a': TYPES[str(module.A_TYPE).split('.')[-1]], 'b': TYPES[str(module.B_TYPE).split('.')[-1]], 'c': TYPES[str(module.C_TYPE).split('.')[-1]]}
    if 'lda' in names:
        signature = {name: '*' + of[name] for name in of}
    else:
        m, n, k = tile['BLOCK_M'], tile['BLOCK_N'], tile['BLOCK_K']
        shapes = {'a': [m, k] if module.A_K_MAJOR else [k, m], 'b': [n, k] if module.B_K_MAJOR else [k, n], 'c': [m, n]}
        signature = {name: f'tensordesc<{of[name]}{shapes[name]}>' for name in of}
    signature |= {'rows': '*i32', 'groups': '*i32', 'stride_b': 'i64'}
    constants = tile | {name: getattr(module, name) for name in ('A_K_MAJOR', 'B_K_MAJOR') if name in names}
    attributes = {(i,): [['tt.divisibility', 16]] for i, name in enumerate(names)
                  if name not in constants and name not in ('M', 'M_TILES', 'valid') and not signature.get(name, '').startswith('tensordesc')}
    source = ASTSource(fn=kernel, signature={n: 'constexpr' if n in constants else signature.get(n, 'i32') for n in names},
                       constexprs={(names.index(n),): value for n, value in constants.items()}, attrs=attributes)
    made = triton.compile(source, target=GPUTarget('cuda', arch, 32), options={'num_warps': config.num_warps, 'num_stages': config.num_stages})
    tool = pathlib.Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        file.write(made.asm['cubin'])
        file.flush()
        text = subprocess.run([tool, '--dump-resource-usage', file.name], capture_output=True, text=True).stdout
    found = re.search(r'REG:(\d+) STACK:(\d+)', text)
    return int(found[1]), int(found[2]), made.metadata.shared


def promised(document):
    """Registers and shared bytes as the file's head has them."""
    head = ' '.join(line.lstrip('# ') for line in document['text'].split('\n') if line.startswith('#'))
    found = re.search(r'about (\d+) of 255 registers a thread, (\d+) B of shared', head)
    return int(found[1]), int(found[2])


def compile_only(args, work, folder):
    stand_in_for_torch()
    wrong = 0
    for number, (kind, words) in enumerate(work):
        module, document = exported(args, words, folder, number)
        if module is None:
            print(f'{kind} {" ".join(words)}: {document}')
            continue
        registers, spilled, shared = compiled(module, module.CONFIG, args.arch)
        promise = promised(document)
        bad = spilled > 8 or shared > promise[1]  # 8 B: a predicate's
        wrong += bad
        others = [compiled(module, as_config(row), args.arch) for row in (CONFIGURATIONS if args.all else ())]
        print(f'{"WRONG " if bad else ""}{kind} {document["file"]} {label(module.CONFIG)}: {registers} registers (told {promise[0]}), {spilled} B spilled, '
              f'{shared} B shared (told {promise[1]})' + (f'; {sum(s > 8 for _, s, _ in others)} of 24 others spill' if others else ''), flush=True)
    return wrong


class Timer:
    """Times launches over rotated operands."""

    def __init__(self, module, operands, copies=24):
        import torch
        self.torch, self.module = torch, module
        a, b = operands[:2]
        count = max(1, min(copies, math.ceil(ROTATED_BYTES / (a.nbytes + b.nbytes))))
        # Copies with the strides of the first: clone() keeps those of dense tensors.
        self.sets = [(a, b)] + [(a.clone(), b.clone()) for _ in range(count - 1)]
        self.c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=module.C_TYPE)
        self.offsets, self.tiles = (operands[2] if len(operands) == 3 else None), {}

    def launch(self, operands, config):
        if self.offsets is None:
            self.module.launch(*operands, self.c, config)
        else:
            self.module.launch(*operands, self.c, self.tiles[config.kwargs['BLOCK_M']], config)

    def tried(self, config):
        """Whether it fits."""
        import triton
        if self.offsets is not None:
            block = config.kwargs['BLOCK_M']
            self.tiles.setdefault(block, self.module.tiles_of(self.offsets, self.c.shape[0], block))
        try:
            self.launch(self.sets[0], config)
        except (triton.runtime.errors.OutOfResources, triton.compiler.errors.CompilationError):
            return False
        self.torch.cuda.synchronize()
        return True

    def graph(self, config):
        """None where it does not fit."""
        if not self.tried(config):
            return None
        graph = self.torch.cuda.CUDAGraph()
        self.launches = max(len(self.sets), 20)
        with self.torch.cuda.graph(graph):
            for i in range(self.launches):
                self.launch(self.sets[i % len(self.sets)], config)
        return graph

    def us(self, graph, least_ms=10):
        """Of a launch."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        replays, elapsed = 1, 0.0
        while elapsed < least_ms:
            begin.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            elapsed = begin.elapsed_time(end)
            per = elapsed / replays
            replays *= 2
        return 1000 * per / self.launches


def timed(timer, config, others, rounds):
    """Medians in us: of the exported one, and of all that fit."""
    graphs = {label(c): timer.graph(c) for c in (config, *others)}
    graphs = {name: graph for name, graph in graphs.items() if graph}
    times = {name: [timer.us(graph)] for name, graph in graphs.items()}
    nearest = sorted(times, key=lambda name: times[name][0])[:4]
    for _ in range(rounds):
        for name in {*nearest, label(config)}:
            times[name].append(timer.us(graphs[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def save(args, rows):
    """After each problem, so that a run that is cut short leaves what it has."""
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + '\n')


def warm_one(args, words, folder):
    """Launches all configurations once, so that Triton's cache holds them."""
    module, _ = exported(args, words, folder, args.warm_one)
    if module is None:
        return
    timer = Timer(module, module.operands(), copies=1)
    for config in (module.CONFIG, *map(as_config, CONFIGURATIONS + (MORE if args.fit else ()))):
        timer.tried(config)


def warmed(args, count):
    """Compiles what `count` problems need, many at once: timing then finds it in the cache."""
    command = [sys.executable, *sys.argv, '--warm-one']
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda number: run(*command, number), range(count)))


def on_gpu(args, work, folder):
    others = [as_config(row) for row in CONFIGURATIONS]
    rows, wrong = [], 0
    for number, (kind, words) in enumerate(work):
        module, document = exported(args, words, folder, number)
        if module is None:
            print(f'{kind} {" ".join(words)}: {document}', flush=True)
            continue
        row = {'kind': kind, 'problem': document['file'], 'words': words, 'exported': label(module.CONFIG), 'predicted_us': document['predicted_time_us']}
        try:
            operands = module.operands()
            module.check(*operands)
            times = timed(Timer(module, operands), module.CONFIG, others + [as_config(row) for row in (MORE if args.fit else ())], args.rounds)
            best = min((label(c) for c in others if label(c) in times), key=times.get)
            row |= {'us': times[row['exported']], 'best': best, 'best_us': times[best], 'ratio': times[best] / times[row['exported']], 'times': times}
            print(f'{kind:6} {row["problem"]:44} {row["exported"]:24} {row["us"]:9.2f} us (told {row["predicted_us"]:9.2f})  best {best:24} '
                  f'{row["best_us"]:9.2f}  {row["ratio"]:.3f}', flush=True)
        except Exception as error:  # the others go on
            row['wrong'] = f'{type(error).__name__}: {error}'
            wrong += 1
            print(f'{kind:6} {row["problem"]} {row["exported"]}: {row["wrong"]}', flush=True)
        rows.append(row)
        save(args, rows)
    return rows, wrong


def expert_lines(args):
    """Of each line of vLLM's files: what it is, its configuration, and the words of both products."""
    for text in args.moe:
        count, hidden, intermediate, top_k = (int(part) for part in text.split(','))
        code, out, error = run(args.rooftile, 'export', 'gemm', '--groups', f'{count}x64', '--n', 2 * intermediate, '--k', hidden, '--top-k', top_k,
                               '--to', 'vllm-moe', '--machine', args.machine, '--json')
        if code:
            sys.exit(f'--moe {text}: {error}')
        for tokens, line in json.loads(json.loads(out)['text']).items():
            if args.tokens and int(tokens) not in args.tokens:
                continue
            drawn = random.Random(args.seed)
            lengths = [0] * count
            for _ in range(int(tokens)):
                for expert in drawn.sample(range(count), top_k):
                    lengths[expert] += 1
            yield f'{text} {tokens} tokens', line, [['--groups', ','.join(map(str, lengths)), '--n', n, '--k', k]
                                                    for n, k in ((2 * intermediate, hidden), (hidden, intermediate))]


def experts(args, lines, folder, rows):
    """Each line of vLLM's file beside the best of the 24 by the sum of both products, added to rows."""
    others = [as_config(row) for row in CONFIGURATIONS]
    for number, (name, line, products) in enumerate(lines):
        config = as_config([line[key] for key in ('BLOCK_SIZE_M', 'BLOCK_SIZE_N', 'BLOCK_SIZE_K', 'GROUP_SIZE_M', 'num_warps', 'num_stages')])
        totals = []
        for part, words in enumerate(products):
            module, document = exported(args, words, folder, f'moe_{number}_{part}')
            if module is None:
                sys.exit(f'--moe {name}: {document}')
            operands = module.operands()
            module.check(*operands, config=config)
            totals.append(timed(Timer(module, operands), config, others, args.rounds))
        total = {key: sum(times[key] for times in totals) for key in totals[0] if all(key in times for times in totals)}
        best = min((label(c) for c in others if label(c) in total), key=total.get)
        rows.append({'kind': 'moe', 'problem': name, 'products': products, 'exported': label(config), 'us': total[label(config)], 'best': best, 'best_us': total[best],
                     'ratio': total[best] / total[label(config)], 'times': total})
        print(f'moe    {name:44} {label(config):24} {total[label(config)]:9.2f} us  best {best:24} {total[best]:9.2f}  {rows[-1]["ratio"]:.3f}', flush=True)
        save(args, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rooftile', type=pathlib.Path)
    parser.add_argument('--draw', type=int, default=12, help='problems of each kind')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--kinds', default='plain,group', help='of plain, group')
    parser.add_argument('--moe', action='append', default=[], metavar='E,HIDDEN,INTERMEDIATE,TOP_K')
    parser.add_argument('--tokens', type=lambda text: {int(part) for part in text.split(',')}, help='of --moe: some lines of the file')
    parser.add_argument('--machine', default='h100-sxm')
    parser.add_argument('--arch', type=int, default=90, help='of --compile-only')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--fit', action='store_true', help='time more configurations, for judge_triton.py')
    parser.add_argument('--compile-only', action='store_true')
    parser.add_argument('--all', action='store_true', help='with --compile-only: the 24 too')
    parser.add_argument('--jobs', type=int, default=max(1, (os.cpu_count() or 2) - 2), help='problems compiled at once')
    parser.add_argument('--warm-one', type=int, help=argparse.SUPPRESS)
    parser.add_argument('--out', type=pathlib.Path, default=pathlib.Path(os.environ['OUT']) / 'export_triton.json' if 'OUT' in os.environ else None)
    args = parser.parse_args()
    args.rooftile = args.rooftile.resolve()
    work = [(kind, words_of('gemm', problem)) for kind in filter(None, args.kinds.split(','))
            for problem in problems(args, '' if kind == 'plain' else kind)]
    with tempfile.TemporaryDirectory() as made:
        if args.compile_only:
            sys.exit(1 if compile_only(args, work, pathlib.Path(made)) else 0)
        lines = list(expert_lines(args))
        all_words = [words for _, words in work] + [words for _, _, products in lines for words in products]
        if args.warm_one is not None:
            sys.exit(warm_one(args, all_words[args.warm_one], pathlib.Path(made)))
        warmed(args, len(all_words))
        rows, wrong = on_gpu(args, work, pathlib.Path(made))
        experts(args, lines, pathlib.Path(made), rows)
    for kind in dict.fromkeys(row['kind'] for row in rows):
        ratios = [row['ratio'] for row in rows if row['kind'] == kind and 'ratio' in row]
        if ratios:
            print(f'{kind}: {len(ratios)} problems, geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, '
                  f'below 0.95: {sum(ratio < 0.95 for ratio in ratios)}')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
