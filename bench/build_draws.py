#!/usr/bin/env python3
"""Builds the best plan of problems drawn by every law: does the compiler take each as it was planned? Needs no GPU.

usage: bench/build_draws.py PROGRAM [--draw N] [--seed S] [--only OPERATION[:LAW],...] [--machine ID,...] [--jobs N]

N problems a law (40); machines take turns (those with a kernel: h100-sxm, h200-sxm, h20). A request that is refused before a
compiler sees it (no plan, not buildable) is counted apart. Prints a line for each that the compiler refuses or takes with spills, then
counts by law. Ends with 1 where there is one.
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import tomllib

LAWS = {'gemm': ('', 'any', 'batch', 'group', 'epilogue', 'experts', 'fp8', 'fp8_blocks'),
        'fuse': ('', 'columns'), 'attention': ('', 'any'), 'chain': ('',)}


def words_of(operation, problem):
    """A suite's row as a command line."""
    words = []
    for key, value in problem.items():
        if key in ('name', 'count'):
            continue
        flag = '--' + key.replace('_', '-')
        if operation == 'fuse' and key in ('expression', 'fuse'):
            words.insert(0, value)
        elif isinstance(value, bool):
            words += [flag] if value else []
        elif isinstance(value, list):
            for one in value:
                words += [flag, str(one)]
        else:
            words += [flag, str(value)]
    return words


def problems_of(arguments, operation, law, machine):
    with tempfile.TemporaryDirectory() as folder:
        suite = os.path.join(folder, 'suite.toml')
        command = [arguments.program, 'sweep', operation, '--draw', str(arguments.draw), '--seed', str(arguments.seed), '--save', suite]
        command += ['--law', law] if law else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f'{" ".join(command)}: {done.stderr.strip()}')
        with open(suite, 'rb') as file:
            return tomllib.load(file)['problem']


def build(arguments, operation, problem, machine):
    command = [arguments.program, 'build', operation, *words_of(operation, problem), '--machine', machine]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr.strip().split('\n')[0], command


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--draw', type=int, default=40)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', default='')
    parser.add_argument('--machine', default='h100-sxm,h200-sxm,h20')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    only = set(filter(None, arguments.only.split(',')))
    machines = arguments.machine.split(',')
    counts = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {}
        for operation, laws in LAWS.items():
            for law in laws:
                name = f'{operation}:{law or "plain"}'
                if only and operation not in only and name not in only:
                    continue
                for i, problem in enumerate(problems_of(arguments, operation, law, machines[0])):
                    runs[pool.submit(build, arguments, operation, problem, machines[i % len(machines)])] = name
        for run in concurrent.futures.as_completed(runs):
            code, message, command = run.result()
            outcome = {0: 'built', 5: 'refused by the compiler'}.get(code, 'not planned')
            counts[runs[run]][outcome] += 1
            if code == 5:
                print(f'{runs[run]}: {message}\n  {" ".join(command[1:])}', flush=True)
            elif code not in (0, 2, 10):
                print(f'{runs[run]}: code {code}: {message}\n  {" ".join(command[1:])}', flush=True)
                counts[runs[run]]['other faults'] += 1
    for name, counter in counts.items():
        print(f'{name}: ' + ', '.join(f'{n} {outcome}' for outcome, n in sorted(counter.items())))
    sys.exit(1 if any(c['refused by the compiler'] or c['other faults'] for c in counts.values()) else 0)


if __name__ == '__main__':
    main()
