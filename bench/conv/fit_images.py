#!/usr/bin/env python3
"""Fits tma.image_outside and tma.image_clustered to measured convolutions as products, and tells the error; no GPU needed.

usage: bench/conv/fit_images.py PROGRAM [FILE...]

FILE: what `rooftile sweep conv --draw N --seed S --out FILE` wrote, default bench/results/history/2026-11-30-h200-conv-sweep-7313478.jsonl. Only plans
whose pixels the copy engine finds count. Every second problem is fitted, the other ones are told apart.
"""
import itertools
import json
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import mean, summary  # noqa: E402

DATA = BENCH / 'results/history/2026-11-30-h200-conv-sweep-7313478.jsonl'
GRID = {'tma.image_outside': (1.4, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6), 'tma.image_clustered': (1, 1.1, 1.2, 1.3, 1.4, 1.5)}


def errors(program, files, numbers):
    """Predicted / measured - 1 of each problem of `files`, with the machine's `numbers` replaced."""
    sets = [word for key, value in numbers.items() for word in ('--set', f'{key}={value} 1')]
    first, *others = map(str, files)
    command = [program, 'report', 'sweep', first, *(word for file in others for word in ('--with', file)), '--again', '--json', *sets]
    points = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['points']
    return [point['predicted_us'] / point['time_us'] - 1 for point in points if point['time_us'] and point['predicted_us'] and 'gather' not in point['label']]


def main():
    program, *files = sys.argv[1:]
    by_values = {values: errors(program, files or [DATA], dict(zip(GRID, values))) for values in itertools.product(*GRID.values())}
    best = min(by_values, key=lambda values: mean([abs(e) for e in by_values[values][::2]]))
    summary('fitted', by_values[best][::2])
    summary('unseen', by_values[best][1::2])
    print(', '.join(f'{key} = {value}' for key, value in zip(GRID, best)))


if __name__ == '__main__':
    main()
