#!/usr/bin/env python3
"""Fits few.step, few.word and few.start to measured times of sm80_few_gemm, and tells the error; no GPU needed.

usage: bench/gemm/fit_few.py PROGRAM [FILE [MACHINE]]

FILE: a line a plan, microseconds and the flags of `plan gemm` that fix it; default bench/results/history/2026-11-29-h200-few-rows.txt. Every
second line is fitted, the other ones are told apart.
"""
import itertools
import json
import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).resolve().parents[1] / 'results/history/2026-11-29-h200-few-rows.txt'
GRID = {'few.step': (50, 80, 110, 140, 170), 'few.word': (100, 120, 134, 150), 'few.start': (4500, 5400, 6300)}  # clk


def errors(program, lines, machine, numbers):
    """Predicted / measured - 1 of each line."""
    sets = [word for key, value in numbers.items() for word in ('--set', f'{key}={value} clk')]
    out = []
    for us, flags in lines:
        command = [program, 'plan', 'gemm', *flags.split(), '--kernel', 'sm80_few_gemm', '--machine', machine, '--top', '1', '--json', *sets]
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
    fitted, unseen = lines[::2], lines[1::2]

    def off(values):
        return mean([abs(e) for e in errors(program, fitted, machine, dict(zip(GRID, values)))])

    best = min(itertools.product(*GRID.values()), key=off)
    for name, part in (('fitted', fitted), ('unseen', unseen)):
        e = errors(program, part, machine, dict(zip(GRID, best)))
        print(f'{name}: {len(e)} plans, {100 * mean([abs(x) for x in e]):.1f} % off, signed {100 * mean(e):+.1f} %, at worst {100 * max(map(abs, e)):.1f} %')
    print(', '.join(f'{key} = {value} clk' for key, value in zip(GRID, best)))


if __name__ == '__main__':
    main()
