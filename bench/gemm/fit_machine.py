#!/usr/bin/env python3
"""Fits numbers of a machine file to recorded draws of products, and tells the error on draws that the fit did not see.

usage: bench/gemm/fit_machine.py PROGRAM --fit FILE... --check FILE... --keys KEY=UNIT[,KEY=UNIT...] [--machine ID]

FILES are what `rooftile sweep gemm --out` wrote. Of each file's problems from 5 us on the mean of |predicted / measured - 1| is taken,
all files alike, as `rooftile report sweep FILE --set KEY=VALUE` tells it: plans are those that were measured. One number after the
other moves by factors that shrink, from 1.3 to 1.02, as long as the fitted files' mean falls by more than 0.01 points.
"""
import argparse
import json
import re
import subprocess


def figures_of(arguments, file, values):
    """Mean of the absolute and of the signed error of a file, in percent."""
    command = [arguments.program, 'report', 'sweep', file, '--again', '--json']
    if arguments.machine:
        command += ['--machine', arguments.machine]
    for key, value in values.items():
        command += ['--set', f'{key}={value:.6g}{arguments.units[key]}']
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['figures']
    if not figures or figures[0]['prediction_error']['mean'] is None:
        raise SystemExit(f'{file}: report sweep has no predictions from 5 us on')
    error = figures[0]['prediction_error']
    return 100 * error['mean'], 100 * error['bias']


def mean_error(arguments, files, values):
    return sum(figures_of(arguments, file, values)[0] for file in files) / len(files)


def start_of(arguments, machine):
    """The machine's own values, in the units that are given."""
    text = subprocess.run([arguments.program, 'machine', 'show', machine, '--all'], check=True, capture_output=True, text=True).stdout
    start = {}
    for key in arguments.units:
        row = re.search(rf'^ *{re.escape(key)} +([\d.]+) ', text, re.M)
        if not row:
            raise SystemExit(f'{machine} has no {key}')
        start[key] = float(row[1])
    return start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--fit', nargs='+', required=True)
    parser.add_argument('--check', nargs='+', required=True)
    parser.add_argument('--keys', required=True)
    parser.add_argument('--machine', default='')
    arguments = parser.parse_args()
    arguments.units = dict(pair.split('=') for pair in arguments.keys.split(','))
    values = start_of(arguments, arguments.machine or 'h100-sxm')
    before = dict(values)
    least = mean_error(arguments, arguments.fit, values)
    print(f'as it is: {least:.2f} %')
    for factor in (1.3, 1.12, 1.05, 1.02):
        moved = True
        while moved:
            moved = False
            for key in values:
                for by in (factor, 1 / factor):
                    tried = {**values, key: values[key] * by}
                    error = mean_error(arguments, arguments.fit, tried)
                    if error < least - 0.01:
                        values, least, moved = tried, error, True
                        print(f'{least:.2f} % by {key} = {values[key]:.4g} {arguments.units[key]}')
                        break
    print('\n'.join(f'{key} = {values[key]:.4g} {arguments.units[key]} (was {before[key]:.4g})' for key in values))
    for name, files in (('fitted', arguments.fit), ('unseen', arguments.check)):
        for file in files:
            was, now = figures_of(arguments, file, before), figures_of(arguments, file, values)
            print(f'{name}: {was[0]:.1f} % ({was[1]:+.1f}) -> {now[0]:.1f} % ({now[1]:+.1f})  {file.rsplit("/", 1)[-1]}')


if __name__ == '__main__':
    main()
