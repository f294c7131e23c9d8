#!/usr/bin/env python3
"""How far predictions are off on recorded draws, by GPU, law and class: one table of the records under bench/results, no GPU needed.

usage: bench/errors.py PROGRAM [--by [time] [rows]] [--with PROGRAM] [--laws LAW...]

PROGRAM predicts each plan that was measured and ranked first anew (`report sweep FILE --again`). Of predicted / measured - 1, from 5 us on, the
table has the mean of its size ("off"), the mean with its sign ("bias"; below 0: predicted too short) and the 95th percentile of its size.

Records are kept apart: those that chose a number of a machine file or of a calibration ("chose"), and those that chose none ("unseen").
Intervals are not predictions: what fitted them alone is unseen here.

  --by time rows    what makes a class; without: laws alone
  --with PROGRAM    the figures of another program behind the first one's
  --laws LAW...     these alone, for example gemm-batch
"""
import argparse
import collections
import json
import pathlib
import subprocess

RESULTS = pathlib.Path(__file__).resolve().parent / 'results'
LEAST_US = 5
# By GPU, law and seed: what machines/*.toml and machines/calibration/*.toml name as the data of a number.
CHOSE = {'h100-gemm-draw-6117467': 'dram.per_sm, tma.latency_loaded, tma.latency_loaded_l2',
         'h100-gemm-epilogue-6117467': 'the same',
         'h100-gemm-batch-6117467': 'the same',
         'h100-gemm-draw-13553889': 'wgmma.overlap_exponent',
         'h200-gemm-any-4242': 'store.rows_turn',
         'h100-gemm-fp8-13553889': 'energy.flop.fp8',
         'h100-gemm-fp8_blocks-13553889': 'energy.flop.fp8',
         'h200-fuse-draw-14281972': 'stream.*',
         'h200-fuse-draw-2576816': 'stream.*'}
LAWS = ('gemm-draw', 'gemm-any', 'gemm-batch', 'gemm-epilogue', 'gemm-fp8', 'gemm-fp8_blocks', 'gemm-group', 'gemm-few', 'attention-draw',
        'chain-draw', 'fuse-draw')


def records():
    """(GPU, law, "chose" or "unseen", file) of each recorded draw."""
    for file in sorted((RESULTS / 'history').glob('*.jsonl')) + sorted((RESULTS / 'current').glob('*.jsonl')):
        name = file.name.replace('-sxm', '')
        with open(file) as opened:
            if '"rooftile/measurement/1"' not in opened.readline():
                continue
        for gpu in ('h100', 'h200'):
            for law in LAWS:
                if f'{gpu}-{law}-' in name:
                    yield gpu, law, 'chose' if any(f'{chose}.' in name for chose in CHOSE) else 'unseen', file


def points(program, file):
    """The plan that was ranked first, of each problem, as `report sweep --json` has it; and whether it was timed cold."""
    command = [program, 'report', 'sweep', str(file), '--again', '--json']
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seen = set()
    for point in report['points']:
        first = point['name'] not in seen
        seen.add(point['name'])
        if first and point['predicted_us'] and (point['time_us'] or 0) >= LEAST_US:
            yield point, report['mode'] == 'cold' and report['operation'] != 'fuse'


def class_of(point, by):
    time, rows = point['time_us'], point.get('m')
    of = {'time': '5..20 us' if time < 20 else '20..50' if time < 50 else '50..',
          'rows': '' if rows is None else 'M < 128' if rows < 128 else '128..2047' if rows < 2048 else '2048..'}
    return [of[name] for name in by]


def table(program, by, laws):
    """{(GPU, chose or unseen, law, class...): errors}; of each law that of all its classes, too."""
    found = collections.defaultdict(list)
    for gpu, law, chose, file in records():
        if laws and law not in laws:
            continue
        for point, cold in points(program, file):
            error = point['predicted_us'] / point['time_us'] - 1
            row = (gpu, chose, law + (', cold' if cold else ''))
            found[(*row, *['all'] * len(by))].append(error)
            if by:
                found[(*row, *class_of(point, by))].append(error)
    return found


def figures(errors):
    sizes = sorted(map(abs, errors))
    p95 = sizes[-(-95 * len(sizes) // 100) - 1]  # nearest rank
    return [f'{100 * sum(sizes) / len(sizes):.1f}', f'{100 * sum(errors) / len(errors):+.1f}', f'{100 * p95:.1f}']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--by', nargs='*', default=[], choices=['time', 'rows'])
    parser.add_argument('--with', dest='other')
    parser.add_argument('--laws', nargs='*', default=[])
    arguments = parser.parse_args()
    programs = [arguments.program] + ([arguments.other] if arguments.other else [])
    tables = [table(program, arguments.by, arguments.laws) for program in programs]
    head = ['GPU', 'records', 'law', *arguments.by, 'n', *['off %', 'bias %', '95th %'] * len(tables)]
    print('| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head))
    for key in sorted(tables[0]):
        cells = [cell for of in tables for cell in figures(of[key])]
        print('| ' + ' | '.join([*key, str(len(tables[0][key])), *cells]) + ' |')


if __name__ == '__main__':
    main()
