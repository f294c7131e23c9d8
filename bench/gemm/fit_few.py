#!/usr/bin/env python3
"""Fits few.step, few.word and few.start to measured times of sm80_few_gemm, and tells the error; no GPU needed.

usage: bench/gemm/fit_few.py PROGRAM [FILE [MACHINE]]

FILE: a line a plan, microseconds and the flags of `plan gemm` that fix it; default bench/results/history/2026-11-29-h200-few-rows.txt. Every
second line is fitted, the other ones are told apart.
"""
import itertools
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import errors, lines_of, mean, summary  # noqa: E402

DATA = BENCH / 'results/history/2026-11-29-h200-few-rows.txt'
GRID = {'few.step': (50, 80, 110, 140, 170), 'few.word': (100, 120, 134, 150), 'few.start': (4500, 5400, 6300)}  # clk


def main():
    program = sys.argv[1]
    lines = lines_of(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA)
    machine = sys.argv[3] if len(sys.argv) > 3 else 'h200-sxm'
    lines = [(us, f'{flags} --kernel sm80_few_gemm') for us, flags in lines]

    def of(part, values):
        return errors(program, 'gemm', part, machine, {key: f'{value} clk' for key, value in zip(GRID, values)})

    best = min(itertools.product(*GRID.values()), key=lambda values: mean([abs(e) for e in of(lines[::2], values)]))
    summary('fitted', of(lines[::2], best))
    summary('unseen', of(lines[1::2], best))
    print(', '.join(f'{key} = {value} clk' for key, value in zip(GRID, best)))


if __name__ == '__main__':
    main()
