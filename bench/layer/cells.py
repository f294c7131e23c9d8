#!/usr/bin/env python3
"""Measures the layers of docs/layer-measured.md, each verified before it is timed, and draws that fit intervals of attention's times.

usage: bench/layer/cells.py PROGRAM OUT_FOLDER [--only TEXT] [--decode PROBLEMS] [FLAGS OF measure layer ...]

Writes OUT_FOLDER/layer-CELL.json of each cell whose name has TEXT, and prints a table of them: planned and measured time of the layer
in us, their ratio, how many kernels are within their interval, PyTorch's best time over ours, DRAM bytes as counted. With --decode it
also draws so many problems of attention over a cache, once to fit by and once to check, and prints what bench/fit_intervals.py makes of
them. Exit code 3 where a result is wrong; a cell that does not run is named and left out.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = {'llama': 'Meta-Llama-3-8B', 'qwen': 'Qwen3-8B', 'mixtral': 'Mixtral-8x7B-v0.1'}
# Sequences, and their keys while they decode or their tokens in a prefill.
STEPS = [('context', 1, 8192), ('context', 16, 2048), ('context', 64, 8192), ('prefill', 1, 4096), ('prefill', 8, 1024)]
CELLS = [*((model, *step) for model in ('llama', 'qwen') for step in STEPS), ('mixtral', 'context', 1, 8192), ('mixtral', 'context', 16, 2048),
         ('mixtral', 'prefill', 1, 4096)]  # fmt: skip
SEEDS = (20261130, 20261131)  # of draws to fit by and to check


def configurations(folder):
    for line in (ROOT / 'tests/data/models/models.jsonl').read_text().splitlines():
        row = json.loads(line)
        for name, model in MODELS.items():
            if row['name'] == model:
                (folder / f'{name}.json').write_text(json.dumps(row['config']))


def figures(document):
    cell = document['cells'][0]
    measured, kernels = cell['measured'], cell['kernels']
    if not measured['verified']:
        return 'WRONG'
    if not measured['time_us']:
        return 'right, not timed'
    took, planned = measured['time_us']['median'], cell['time_us']
    # Intervals are of times without the gap before a launch, which a measured one has.
    pairs = [(k['interval_us'], k['measured_us']['median'] - k.get('graph_us', k['time_us']) + k['time_us']) for k in kernels if k['interval_us'] and k['measured_us']]
    held = [low <= us <= high for (low, high), us in pairs]
    moved = measured.get('kernels_dram_bytes')
    columns = [(planned, '9.1f', ''), (took, '9.1f', ''), (planned and planned / took, '7.3f', ''), (f'{sum(held)} of {len(held)}', '', ''),
               (measured['ratio'], '7.2f', ''), (moved and moved / 1e6, '7.1f', ' MB')]  # fmt: skip
    return '  '.join('-' if value is None else f'{value:{form}}{unit}' for value, form, unit in columns)


def decode(program, out, problems):
    """Two draws of the same law, and the intervals that the first gives with how many of the second are within."""
    files = []
    drawn = [program, 'sweep', 'attention', '--draw', str(problems), '--law', 'decode', '--mode', 'cold', '--rounds', '2', '--top', '1']
    for seed in SEEDS:
        files.append(out / f'attention-decode-{seed}.jsonl')
        subprocess.run([*drawn, '--seed', str(seed), '--out', files[-1]], check=True)
    fitted = subprocess.run([sys.executable, ROOT / 'bench/fit_intervals.py', program, '--fit', files[0], '--check', files[1]],
                            check=True, capture_output=True, text=True)  # fmt: skip
    (out / 'attention-decode-intervals.txt').write_text(fitted.stdout)
    return fitted.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('out', type=Path)
    parser.add_argument('--only', default='', help='cells whose name has this, as in llama or 16x2048')
    parser.add_argument('--decode', type=int, default=0, metavar='PROBLEMS')
    arguments, more = parser.parse_known_args()
    if '/' in arguments.program:  # cells run in a folder of their own
        arguments.program = str(Path(arguments.program).resolve())
    arguments.out.mkdir(parents=True, exist_ok=True)
    wrong = False
    print(f'{"layer":22}  planned  measured    ratio  within  PyTorch  DRAM', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        configurations(Path(folder))
        for model, kind, batch, tokens in CELLS:
            name = f'{model}-{"" if kind == "context" else "p"}{batch}x{tokens}'
            if arguments.only not in name:
                continue
            print(name, file=sys.stderr, flush=True)
            file = (arguments.out / f'layer-{name}.json').resolve()
            command = [arguments.program, 'measure', 'layer', '--config', f'{model}.json', '--batch', str(batch), f'--{kind}', str(tokens)]
            done = subprocess.run([*command, '--seed', '1', '--json', '--out', file, *more], cwd=folder, capture_output=True, text=True)
            wrong |= done.returncode == 3
            if done.returncode in (0, 3) and file.exists():
                line = figures(json.loads(file.read_text()))
            else:
                line = f'did not run: {(done.stderr.strip().splitlines() or ["?"])[-1]}'
            print(f'{name:22}{line}', flush=True)
    print(decode(arguments.program, arguments.out, arguments.decode) if arguments.decode else '')
    return 3 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
