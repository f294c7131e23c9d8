#!/usr/bin/env python3
"""Fits gather.start and gather.step to measured times of convolutions whose pixels sm80_gemm gathers, and tells the error; no GPU needed.

usage: bench/conv/fit_gather.py PROGRAM [FILE [MACHINE]]

FILE: what `bench/conv/beside_cudnn.py --kernel sm80_gemm --out` wrote, default bench/results/history/2026-11-29-h200-conv-few-channels-gather-1725512.jsonl.
Problems of one tap are left out, which this form is not planned for on Hopper. Every second problem is fitted, the other ones are told apart.
"""
import json
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import fit  # noqa: E402

DATA = BENCH / 'results/history/2026-11-29-h200-conv-few-channels-gather-1725512.jsonl'
GRID = {'gather.start': [f'{x} clk' for x in range(0, 6001, 500)], 'gather.step': [f'{x} clk' for x in range(0, 301, 50)]}
TILE = ('tile_pixels', 'tile_filters', 'tile_k')


def plans(path):
    """(microseconds, flags of `plan conv`) of each problem, its plan fixed."""
    for row in map(json.loads, path.read_text().splitlines()):
        fields = row.get('fields')
        if not fields or 'ours_us' not in row or not set(str(fields['kernel_size'])) - set('1x'):
            continue
        config = row['config']
        flags = [f"--{key.replace('_', '-')} {value}" for key, value in fields.items()]
        flags += ['--tile ' + 'x'.join(str(config[side]) for side in TILE), f"--stages {config['stages']}", f"--ctas-per-sm {config['ctas_per_sm']}"]
        yield row['ours_us'], ' '.join(flags)


def main():
    lines = list(plans(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA))
    fit(sys.argv[1], 'conv', lines, sys.argv[3] if len(sys.argv) > 3 else 'h200-sxm', GRID)


if __name__ == '__main__':
    main()
