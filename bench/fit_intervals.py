#!/usr/bin/env python3
"""Fits how far predicted times are off (keys interval.*) to recorded draws, and reports the coverage on draws that the fit did not see.

usage: bench/fit_intervals.py PROGRAM --fit FILE... --check FILE... [--pooled] [--machine ID]

FILES are what `rooftile sweep OPERATION --law LAW --out` wrote, of one law and one GPU; PROGRAM predicts plan 1 of each problem anew. Of n
ratios measured / predicted in order the r-th least and the r-th most are taken, r = 0.05 (n + 1) rounded down: a further problem of the
law is between them with a probability of at least 90 %, whatever the errors are distributed like. Launches under 20 us are a class of
their own: their relative errors are about twice as wide. A class of fewer than 19 problems has no such interval; --pooled fits one for both
where each alone has too few.

Or they are what bench/attention/decode.py wrote ("schema": "rooftile/decode_draw/1"), predicted by the numbers of --machine; or documents of
`rooftile measure layer --json`, one a line, of models under tests/data: their small kernels' times in a graph, less the gap before them.
"""
import argparse
import concurrent.futures
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COVERAGE, SHORT_US = 0.90, 20  # SHORT_US: as rooftile/core/interval.cpp


def swept(program, file):
    """(measured, predicted) of the plan ranked first, of each problem of a sweep."""
    command = [program, 'report', 'sweep', file, '--again', '--json']
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seen = set()
    for point in report['points']:
        first = point['name'] not in seen
        seen.add(point['name'])
        if first and point['time_us'] and point['predicted_us']:
            yield point['time_us'], point['predicted_us']


def decoded(program, machine, lines):
    """The same of caches, a line each."""
    def predicted(row):
        batch, heads, kv_heads, keys, dim = map(str, row['problem'])
        command = [program, 'plan', 'attention', '--batch', batch, '--heads', heads, '--kv-heads', kv_heads, '--q', '1', '--kv', keys, '--dim', dim,
                   '--machine', machine, '--buildable-only', '--top', '1', '--json']
        plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return plan['plans'][0]['prediction']['time_us']

    rows = [row for row in lines if row.get('time_us')]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        yield from zip((row['time_us'] for row in rows), pool.map(predicted, rows))


def of_layers(program, machine, lines):
    """The same of kernels that are modelled by their bytes."""
    rows = (json.loads(line) for line in (ROOT / 'tests/data/models/models.jsonl').read_text().splitlines())
    models = {(row['config'].get('model_type'), row['config'].get('hidden_size')): row['config'] for row in rows}
    for document in lines:
        cell, model = document['cells'][0], document['model']
        with tempfile.NamedTemporaryFile('w', suffix='.json') as config:
            json.dump(models[model['family'], model['hidden']], config)
            config.flush()
            command = [program, 'plan', 'layer', '--config', config.name, '--batch', str(cell['batch']), '--context', str(cell['context']),
                       '--prefill', str(cell['prefill']), '--machine', machine, '--json']  # fmt: skip
            planned = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['cells'][0]['kernels']
        measured = {kernel['name']: kernel for kernel in cell['kernels']}
        for now in planned:
            then = measured.get(now['name'])
            if now['provenance'] == 'modelled' and then and then['measured_us']:
                yield then['measured_us']['median'] - now['graph_us'] + now['time_us'], now['time_us']


def ratios(program, files, machine, pooled):
    """By class: measured over predicted."""
    classes = {'short and long': []} if pooled else {'short': [], 'long': []}
    for file in files:
        with open(file) as opened:
            head, *lines = map(json.loads, opened)
        pairs = (decoded(program, machine, lines) if head.get('schema') == 'rooftile/decode_draw/1'
                 else of_layers(program, machine, [head, *lines]) if head.get('schema') == 'rooftile/layer/1'
                 else swept(program, file))  # fmt: skip
        for measured, predicted in pairs:
            name = 'short and long' if pooled else 'short' if predicted < SHORT_US else 'long'
            classes[name].append(measured / predicted)
    return classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--fit', nargs='+', required=True)
    parser.add_argument('--check', nargs='*', default=[])
    parser.add_argument('--pooled', action='store_true')
    parser.add_argument('--machine', default='h200-sxm')
    arguments = parser.parse_args()
    fitted, checked = (ratios(arguments.program, files, arguments.machine, arguments.pooled) for files in (arguments.fit, arguments.check))
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
