#!/usr/bin/env python3
"""Fits direct.stretch, planes.start and planes.stretch to measured times of direct_conv and depthwise_conv, and tells the error; no GPU needed.

usage: bench/conv/fit_direct.py PROGRAM [FILE [MACHINE]]

FILE: a line a plan, microseconds and the flags of `plan conv` that fix it; default bench/results/history/2026-11-29-h200-conv-direct-plans.txt.
Every second line is fitted, the other ones are told apart.
"""
import itertools
import json
import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).resolve().parents[1] / 'results/history/2026-11-29-h200-conv-direct-plans.txt'
KINDS = {'--vector': {'direct.stretch': [(x / 10, '1') for x in range(16, 29)]},
         '--planes': {'planes.start': [(x, 'clk') for x in range(2000, 9000, 500)], 'planes.stretch': [(x / 10, '1') for x in range(10, 46, 2)]}}


def errors(program, lines, machine, numbers):
    """Predicted / measured - 1 of each line."""
    sets = [word for key, (value, unit) in numbers.items() for word in ('--set', f'{key}={value} {unit}')]
    out = []
    for us, flags in lines:
        command = [program, 'plan', 'conv', *flags.split(), '--machine', machine, '--top', '1', '--json', *sets]
        plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['plans'][0]
        out.append(plan['prediction']['time_us'] / float(us) - 1)
    return out


def mean(values):
    return sum(values) / len(values)


def main():
    program = sys.argv[1]
    data = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA
    machine = sys.argv[3] if len(sys.argv) > 3 else 'h200-sxm'
    lines = [line.split(None, 1) for line in data.read_text().splitlines() if line and not line.startswith('#')]
    for flag, grid in KINDS.items():
        of_kind = [line for line in lines if flag in line[1]]
        fitted, unseen = of_kind[::2], of_kind[1::2]
        best = min(itertools.product(*grid.values()), key=lambda values: mean([abs(e) for e in errors(program, fitted, machine, dict(zip(grid, values)))]))
        for name, part in (('fitted', fitted), ('unseen', unseen)):
            e = errors(program, part, machine, dict(zip(grid, best)))
            print(f'{name}: {len(e)} plans, {100 * mean([abs(x) for x in e]):.1f} % off, signed {100 * mean(e):+.1f} %, at worst {100 * max(map(abs, e)):.1f} %')
        print(', '.join(f'{key} = {value} {unit}' for key, (value, unit) in zip(grid, best)))


if __name__ == '__main__':
    main()
