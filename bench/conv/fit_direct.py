#!/usr/bin/env python3
"""Fits direct.stretch, planes.start and planes.stretch to measured times of direct_conv and depthwise_conv, and tells the error; no GPU needed.

usage: bench/conv/fit_direct.py PROGRAM [FILE [MACHINE]]

FILE: a line a plan, microseconds and the flags of `plan conv` that fix it; default bench/results/history/2026-11-29-h200-conv-direct-plans.txt.
Every second line is fitted, the other ones are told apart.
"""
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from fit_plans import fit, lines_of  # noqa: E402

DATA = BENCH / 'results/history/2026-11-29-h200-conv-direct-plans.txt'
KINDS = {'--vector': {'direct.stretch': [f'{x / 10} 1' for x in range(16, 29)]},
         '--planes': {'planes.start': [f'{x} clk' for x in range(2000, 9000, 500)], 'planes.stretch': [f'{x / 10} 1' for x in range(10, 46, 2)]}}


def main():
    program = sys.argv[1]
    lines = lines_of(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA)
    machine = sys.argv[3] if len(sys.argv) > 3 else 'h200-sxm'
    for flag, grid in KINDS.items():
        fit(program, 'conv', [line for line in lines if flag in line[1]], machine, grid)


if __name__ == '__main__':
    main()
