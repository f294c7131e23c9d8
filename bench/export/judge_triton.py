#!/usr/bin/env python3
"""How well does the model of Triton's kernels tell what time_triton.py measured? Needs no GPU.

    bench/export/judge_triton.py build/rooftile FILE.json...

Of each configuration measured: log(measured / predicted), by kind of kernel, and of each problem what the predicted best costs beyond the
measured best (the export also ranks by slower latencies, and takes the smallest tile of near ties). These decide the constants of rooftile/gemm/export/triton_model.cpp.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import re
import statistics
import subprocess


def predicted(program, machine, words, name):
    m, n, k, g, w, s = map(int, re.match(r'(\d+)x(\d+)x(\d+) g(\d+) w(\d+) s(\d+)', name).groups())
    done = subprocess.run([str(x) for x in (program, 'export', 'gemm', *words, '--to', 'triton', '--machine', machine, '--json', '--tile', f'{m}x{n}x{k}',
                                            '--group', g, '--consumer-warpgroups', w // 4, '--stages', s)], capture_output=True, text=True)
    if done.returncode:
        return None
    return json.loads(done.stdout)['predicted_time_us']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rooftile', type=pathlib.Path)
    parser.add_argument('files', type=pathlib.Path, nargs='+')
    parser.add_argument('--machine', default='h100-sxm')
    parser.add_argument('--rows', action='store_true', help='a line a problem')
    args = parser.parse_args()
    rows = [row for file in args.files for row in json.loads(file.read_text()) if 'words' in row and 'times' in row]
    work = [(row, name) for row in rows for name in row['times']]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda w: predicted(args.rooftile, args.machine, w[0]['words'], w[1]), work))
    errors, of = collections.defaultdict(list), collections.defaultdict(dict)
    for (row, name), time in zip(work, told):
        if time is None:
            print('no time:', row['problem'], name)
            continue
        of[id(row)][name] = time
        tile, _, warps, _ = name.split()
        rows_of_tile = int(tile.split('x')[0])
        area = rows_of_tile * int(tile.split('x')[1])
        errors[row['kind'], 'wgmma' if rows_of_tile >= 64 else 'mma', warps, area].append(math.log(row['times'][name] / time))
    for key, values in sorted(errors.items()):
        print(f'{" ".join(map(str, key)):30} {len(values):4}  mean {100 * statistics.fmean(values):6.1f} %  sd {100 * statistics.pstdev(values):5.1f} %')
    regrets = collections.defaultdict(list)
    for row in rows:
        times, guess = row['times'], of[id(row)]
        pick = min(guess, key=guess.get)
        regrets[row['kind']].append(min(times.values()) / times[pick])
        if args.rows:
            best = min(times, key=times.get)
            print(f'{row["problem"]:44} {regrets[row["kind"]][-1]:.3f} {pick} {times[pick]:.1f} (told {guess[pick]:.1f}); {best} {times[best]:.1f} (told {guess.get(best, math.nan):.1f})')
    for kind, values in regrets.items():
        print(f'{kind}: {len(values)} problems, predicted best {statistics.geometric_mean(values):.3f} of the fastest, least {min(values):.3f}')


if __name__ == '__main__':
    main()
