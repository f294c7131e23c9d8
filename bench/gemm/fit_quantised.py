#!/usr/bin/env python3
"""Fits what ends take of products by packed weights (quantised.end and .row of few rows, quantised.tile and .tile_row of many) to drawn problems, and
tells the error; no GPU needed.

usage: bench/gemm/fit_quantised.py PROGRAM [FILES of `sweep gemm --law quantised` and `--law quantised_many`]

Default: those of seeds 1725512 and 6332025 under bench/results/history, and 15 problems by tiles that were fixed. Every second problem is fitted, the
other ones are told apart; from 4 us on. Of few rows only steps of 512 of K count, which are planned.
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
GRIDS = {'sm90_few_quantised': {'quantised.end': (0, 400, 800, 1200, 1600, 2400), 'quantised.row': (0, 20, 40, 60, 80, 120)},
         'sm90_many_quantised': {'quantised.tile': (0, 1000, 2000, 3000, 4000), 'quantised.tile_row': (0, 15, 30, 45)}}  # clk


def errors(program, file, numbers, kernel):
    """Predicted / measured - 1 of the problems that `kernel` took, in their order."""
    with open(file) as opened:
        configs = [row['config'] for row in map(json.loads, opened) if 'problem' in row]
    sets = [word for key, value in numbers.items() for word in ('--set', f'{key}={value} clk')]
    report = json.loads(subprocess.run([program, 'report', 'sweep', str(file), '--again', '--json', *sets], check=True, capture_output=True, text=True).stdout)
    points = [p for p in report['points'] if p['time_us']]
    assert len(points) == len(configs), 'a row a problem'
    return [p['predicted_us'] / p['time_us'] - 1 for p, of in zip(points, configs)
            if of['kernel'] == kernel and of['tile_k'] in (128, 512) and p['time_us'] >= 4]


def main():
    program = sys.argv[1]
    drawn = [HISTORY / f'2026-11-29-h200-gemm-{law}-{seed}.jsonl' for seed in (1725512, 6332025) for law in ('quantised', 'quantised_many')]
    files = sys.argv[2:] or [HISTORY / '2026-11-30-h200-gemm-quantised-tiles.jsonl', *drawn]
    for kernel, grid in GRIDS.items():
        of = {values: [e for file in files for e in errors(program, file, dict(zip(grid, values)), kernel)] for values in itertools.product(*grid.values())}
        best = min(of, key=lambda values: mean([abs(e) for e in of[values][::2]]))
        summary(f'{kernel}, fitted', of[best][::2])
        summary(f'{kernel}, unseen', of[best][1::2])
        print(', '.join(f'{key} = {value} clk' for key, value in zip(grid, best)))


if __name__ == '__main__':
    main()
