#!/usr/bin/env python3
"""Fits how far predicted times are off (keys interval.*) to recorded draws, and reports the coverage on draws that the fit did not see.

usage: bench/fit_intervals.py PROGRAM --fit FILE... --check FILE...

FILES are what `rooftile sweep OPERATION --law LAW --out` wrote, of one law and one GPU; PROGRAM predicts plan 1 of each problem anew. Of n
ratios measured / predicted in order the r-th least and the r-th most are taken, r = 0.05 (n + 1) rounded down: a further problem of the
law is between them with a probability of at least 90 %, whatever the errors are distributed like. Launches under 20 us are a class of
their own: their relative errors are about twice as wide. A class of fewer than 19 problems has no such interval.
"""
import argparse
import json
import subprocess

COVERAGE, SHORT_US = 0.90, 20  # SHORT_US: as rooftile/core/interval.cpp


def ratios(program, files):
    """By class: measured over predicted."""
    classes = {'short': [], 'long': []}
    for file in files:
        command = [program, 'report', 'sweep', file, '--again', '--json']
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        seen = set()
        for point in report['points']:
            first = point['name'] not in seen  # of a problem's plans the one ranked first
            seen.add(point['name'])
            if first and point['time_us'] and point['predicted_us']:
                name = 'short' if point['predicted_us'] < SHORT_US else 'long'
                classes[name].append(point['time_us'] / point['predicted_us'])
    return classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--fit', nargs='+', required=True)
    parser.add_argument('--check', nargs='*', default=[])
    arguments = parser.parse_args()
    fitted, checked = ratios(arguments.program, arguments.fit), ratios(arguments.program, arguments.check)
    for name, values in fitted.items():
        values.sort()
        place = int((1 - COVERAGE) / 2 * (len(values) + 1))
        if place == 0:
            print(f'{name}: {len(values)} problems are too few')
            continue
        low, high = min(values[place - 1], 1), max(values[-place], 1)
        within = sum(low <= value <= high for value in checked[name])
        print(f'{name}: low {low:.3g} high {high:.3g}, of {len(values)} problems; unseen: {within} of {len(checked[name])} within')


if __name__ == '__main__':
    main()
