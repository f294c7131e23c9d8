#!/usr/bin/env python3
"""Fits what ends take of products by packed weights (quantised.end and .row of few rows, quantised.tile and .tile_row of many) to drawn problems, and
tells the error; no GPU needed.

usage: bench/gemm/fit_quantised.py PROGRAM [FILES of `sweep gemm --law quantised` and `--law quantised_many`]

Default: both of seed 7313478 under bench/results/history. Every second problem is fitted, the other ones are told apart; from 5 us on.
"""
import itertools
import json
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import mean, summary  # noqa: E402

HISTORY = BENCH / 'results/history'
GRIDS = {'sm90_few_quantised': {'quantised.end': (0, 800, 1600, 2400), 'quantised.row': (0, 40, 80, 120, 160)},
         'sm90_many_quantised': {'quantised.tile': (0, 1000, 2000, 3000, 4000), 'quantised.tile_row': (0, 15, 30, 45)}}  # clk


def errors(program, file, numbers, kernel):
    """Predicted / measured - 1 of the problems that `kernel` took, in their order."""
    with open(file) as opened:
        kernels = [row['config']['kernel'] for row in map(json.loads, opened) if 'problem' in row]
    sets = [word for key, value in numbers.items() for word in ('--set', f'{key}={value} clk')]
    report = json.loads(subprocess.run([program, 'report', 'sweep', str(file), '--again', '--json', *sets], check=True, capture_output=True, text=True).stdout)
    points = [p for p in report['points'] if p['time_us']]
    assert len(points) == len(kernels), 'a row a problem'
    return [p['predicted_us'] / p['time_us'] - 1 for p, of in zip(points, kernels) if of == kernel and p['time_us'] >= 5]


def main():
    program = sys.argv[1]
    files = sys.argv[2:] or [HISTORY / f'2026-11-29-h200-gemm-{law}-7313478.jsonl' for law in ('quantised', 'quantised_many')]
    for kernel, grid in GRIDS.items():
        of = {values: [e for file in files for e in errors(program, file, dict(zip(grid, values)), kernel)] for values in itertools.product(*grid.values())}
        best = min(of, key=lambda values: mean([abs(e) for e in of[values][::2]]))
        summary(f'{kernel}, fitted', of[best][::2])
        summary(f'{kernel}, unseen', of[best][1::2])
        print(', '.join(f'{key} = {value} clk' for key, value in zip(grid, best)))


if __name__ == '__main__':
    main()
