#!/usr/bin/env python3
"""What the planner's choice of --splits loses: drawn decode problems, each with the planner's own choice and with others fixed, beside each other.

    python3 bench/attention/splits.py --rooftile build/rooftile [--seed 1 --count 24] [--splits 33,66,99,132] [--counters] [--out FOLDER]

A run is one process for all problems: `measure attention --suite`, cold, verified at every element. The regret of a problem is its time by the
planner's choice over the least of all. With --counters: from 64 MiB of cache on, DRAM's bytes as counted beside the predicted ones.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

COUNTED_FROM = 64 << 20


def rows_of(program, suite, out, extra, rounds):
    command = [program, "measure", "attention", "--suite", str(suite), "--mode", "cold", "--rounds", str(rounds), "--top", "1", "--confirm", "0",
               "--baseline", "none", "--out", str(out), *extra]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if not out.exists():
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()[-300:]}")
    with open(out, encoding="utf-8") as file:
        return {key_of(row): row for row in map(json.loads, file) if "problem" in row}


def key_of(row):
    return json.dumps(row["problem"], sort_keys=True)


def lengths_of(p):
    return [int(n) for n in p["lengths"].split(",")] if "lengths" in p else [p["kv"]] * p["batch"]


def name_of(p):
    lengths = lengths_of(p)
    keys = str(lengths[0]) if min(lengths) == max(lengths) else f"{min(lengths)}..{max(lengths)}"
    page = f" page {p['page']}" if "page" in p else ""
    return f"{len(lengths)}x{p['heads']}/{p['kv_heads']} q {p['q']} keys {keys} dim {p['dim']}{page}"


def cache_bytes(p):
    return sum(lengths_of(p)) * p["kv_heads"] * (p["dim"] + p["dim_v"]) * 2


def predicted_dram(program, p, splits):
    flags = [text for key, value in p.items() if key not in ("op", "cached", "score_tensors")
             for text in ("--" + key.replace("_", "-"), str(value) if not isinstance(value, bool) else "on" if value else "off")]
    if "lengths" in p:
        at = flags.index("--batch")
        del flags[at:at + 2]
    run = subprocess.run([program, "plan", "attention", *flags, "--splits", str(splits), "--top", "1", "--json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["plans"][0]["prediction"]["dram_bytes"] if run.stdout.strip() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rooftile", default="build/rooftile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--splits", default="33,66,99,132")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--counters", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    folder = pathlib.Path(given.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    suite = folder / "problems.toml"
    subprocess.run([given.rooftile, "sweep", "attention", "--law", "decode", "--draw", str(given.count), "--seed", str(given.seed), "--save", str(suite)], check=True)
    chosen = rows_of(given.rooftile, suite, folder / "chosen.jsonl", ["--counters"] if given.counters else [], given.rounds)
    fixed = {s: rows_of(given.rooftile, suite, folder / f"splits-{s}.jsonl", ["--splits", s], given.rounds) for s in given.splits.split(",")}
    regrets, misses = [], []
    for key, row in chosen.items():
        if not row.get("time_us"):
            print(f"{name_of(row['problem'])}: {row.get('invalid')}")
            continue
        times = {s: rows[key]["time_us"] for s, rows in fixed.items() if key in rows and rows[key].get("time_us")}
        own = row["config"]["splits"]
        best = min([row["time_us"], *times.values()])
        regrets.append(row["time_us"] / best)
        line = f"{name_of(row['problem'])}: {cache_bytes(row['problem']) / 1e6:.1f} MB, {own} CTAs {row['time_us']:.2f} us (predicted {row['predicted_time_us']:.2f}), others "
        line += ", ".join(f"{s} {time:.2f}" for s, time in times.items()) + f"; regret {regrets[-1]:.3f}"
        counted = row.get("counters") or {}
        read, written = counted.get("dram_read_bytes"), counted.get("dram_write_bytes")
        if cache_bytes(row["problem"]) >= COUNTED_FROM and read:
            predicted = predicted_dram(given.rooftile, row["problem"], own)
            if predicted:
                misses.append((read + (written or 0)) / predicted - 1)
                line += f"; DRAM {read / 1e6:.1f} + {(written or 0) / 1e6:.1f} MB counted, {predicted / 1e6:.1f} predicted ({misses[-1]:+.1%})"
        print(line, flush=True)
    if not regrets:
        sys.exit("no problem was measured")
    print(f"{len(regrets)} problems, seed {given.seed}: regret {math.exp(sum(map(math.log, regrets)) / len(regrets)):.3f} in the mean, {max(regrets):.3f} at most"
          + (f"; DRAM bytes {sum(map(abs, misses)) / len(misses):.1%} off in the mean of {len(misses)}, {max(map(abs, misses)):.1%} at most" if misses
             else "; DRAM bytes not counted" if given.counters else ""))


if __name__ == "__main__":
    main()
