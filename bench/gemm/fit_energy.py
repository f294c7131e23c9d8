#!/usr/bin/env python3
"""Fits energy.flop.TYPE, the energy of the matrix units for operands of a type, to measured products, and judges it by others.

    rooftile sweep gemm --law fp8 --draw 60 --seed S --top 4 --out fp8-S.jsonl
    bench/gemm/fit_energy.py build/rooftile fp8 fp8-S.jsonl ... [--machine h200-sxm] [--unseen OTHER.jsonl ...]

Rows count whose time the power limit bounds: measured below 0.95 of clock.tensor, by the clock that each row has, and not by DRAM. The number
is the one with which predicted times are off least in the mean of |log|; without --unseen every other problem is left out of the fit.
"""

import argparse
import json
import math
import subprocess
import sys

LEAST_US = 20  # shorter ones end before the clock has settled


def rows_of(files, most_mhz):
    for name in files:
        with open(name, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row.get("problem") is None or not row.get("time_us") or row["time_us"] < LEAST_US:
                    continue
                if (row.get("sm_clock_mhz") or most_mhz) < most_mhz:
                    yield row


def flags_of(row):
    p, c, types = row["problem"], row["config"], row["problem"]["types"]
    flags = {
        "--shape": f"{p['m']}x{p['n']}x{p['k']}",
        "--types": f"{types['a']},{types['b']},{types['c']}",
        "--tile": f"{c['tile_m']}x{c['tile_n']}x{c['tile_k']}",
        "--stages": c["stages"],
        "--consumer-warpgroups": c["consumer_warpgroups"],
        "--schedule": c["schedule"],
        "--swap-ab": "on" if c["swap_ab"] else "off",
        "--cluster": f"{c['cluster_m']}x{c['cluster_n']}",
        "--order": c["order"],
        "--split-k": c["split_k"],
        "--grid-split-k": c["grid_split_k"],
        "--ctas-per-sm": c["ctas_per_sm"],
        "--scales": p.get("scales", "none"),
        "--accumulation": p.get("accumulation", "fast"),
    }
    if c["order"] in ("grouped", "serpentine"):
        flags["--group"] = c["group"]
    return [str(word) for pair in flags.items() for word in pair]


def predicted(program, machine, row, key, value):
    command = [program, "plan", "gemm", *flags_of(row), "--machine", machine, "--top", "1", "--json"]
    run = subprocess.run([*command, "--set", f"{key}={value} pJ/FLOP"], capture_output=True, text=True, check=False)
    plans = json.loads(run.stdout)["plans"] if run.returncode == 0 else []
    return plans[0]["prediction"]["time_us"] if plans else None


def errors(program, machine, rows, key, value):
    out = []
    for row in rows:
        time = predicted(program, machine, row, key, value)
        if time:
            out.append(math.log(time / row["time_us"]))
    return out


def mean(values):
    return sum(abs(v) for v in values) / len(values) if values else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("type")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--machine", default="h200-sxm")
    parser.add_argument("--unseen", nargs="*", default=[])
    parser.add_argument("--values", default="0.10:0.40:0.02", help="pJ/FLOP, LEAST:MOST:STEP")
    asked = parser.parse_args()
    show = subprocess.run([asked.program, "machine", "show", asked.machine, "--json"], capture_output=True, text=True, check=True)
    facts = {fact["key"]: fact for fact in json.loads(show.stdout)["facts"]}
    clock = facts["clock.tensor"]["value"] / 1e6  # MHz
    rows = list(rows_of(asked.files, 0.95 * clock))
    unseen = list(rows_of(asked.unseen, 0.95 * clock))
    if not asked.unseen:
        names = sorted({json.dumps(row["problem"]) for row in rows})
        unseen = [row for row in rows if json.dumps(row["problem"]) in names[1::2]]
        rows = [row for row in rows if json.dumps(row["problem"]) in names[::2]]
    if not rows:
        sys.exit("no row is bound by power")
    key = f"energy.flop.{asked.type}"
    least, most, step = map(float, asked.values.split(":"))
    tried = [least + i * step for i in range(int((most - least) / step + 1.5))]
    best = min(tried, key=lambda value: mean(errors(asked.program, asked.machine, rows, key, value)))
    for name, some in (("fitted", rows), ("unseen", unseen)):
        off = errors(asked.program, asked.machine, some, key, best)
        if off:
            print(f"{name}: {len(off)} rows, off {100 * mean(off):.1f} % in the mean, {100 * max(map(abs, off)):.1f} % at most, "
                  f"{100 * sum(off) / len(off):+.1f} % to one side")
    print(f"{key} = {best:.3f} pJ/FLOP")


if __name__ == "__main__":
    main()
