#!/usr/bin/env python3
"""Fits few.step, few.word and few.start to measured times of sm80_few_gemm, and tells the error; no GPU needed.

usage: bench/gemm/fit_few.py PROGRAM [FILE [MACHINE]]

FILE: a line a plan, microseconds and the flags of `plan gemm` that fix it; default bench/results/history/2026-11-29-h200-few-rows.txt. Every
second line is fitted, the other ones are told apart.
"""
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import fit, lines_of  # noqa: E402

DATA = BENCH / 'results/history/2026-11-29-h200-few-rows.txt'
CYCLES = {'few.step': (50, 80, 110, 140, 170), 'few.word': (100, 120, 134, 150), 'few.start': (4500, 5400, 6300)}


def main():
    lines = lines_of(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA)
    grid = {key: [f'{value} clk' for value in values] for key, values in CYCLES.items()}
    fit(sys.argv[1], 'gemm', [(us, f'{flags} --kernel sm80_few_gemm') for us, flags in lines], sys.argv[3] if len(sys.argv) > 3 else 'h200-sxm', grid)


if __name__ == '__main__':
    main()
