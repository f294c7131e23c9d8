#!/usr/bin/env python3
"""What hardware counters say of the problems on which a recorded suite is furthest behind cuBLASLt.

usage: bench/worst.py --rooftile PROGRAM --run bench/results/current/h200-sxm.jsonl --out FOLDER [--top 10]

Of every problem with M of 128 or more takes the plan that was ranked first, and of these the ten of the least ratio;
measures exactly those configurations again, verified and beside cuBLASLt's best of 8, with counters of both
(`measure gemm --counters`). Writes FOLDER/<gpu>-worst.jsonl (the program's own rows) and <gpu>-worst.txt.
Exit code: 1 where a measurement failed or came back without counters.
"""
import argparse
import json
import os
import subprocess
import sys

LEAST_M = 128

# Of one launch, ours beside cuBLASLt's best: title, key, factor, format.
COLUMNS = [
    ("tensor %", "tensor_active_share", 100, ".0f"),
    ("kcycles", "sm_cycles", 1e-3, ".1f"),
    ("SMs busy %", "sm_active_share", 100, ".0f"),
    ("DRAM rd MB", "dram_read_bytes", 1e-6, ".1f"),
    ("L2 rd MB", "l2_read_bytes", 1e-6, ".0f"),
    ("into SMs MB", "sm_read_bytes", 1e-6, ".0f"),
    ("halves MB", "l2_fabric_bytes", 1e-6, ".0f"),
    ("smem kwaves", "shared_wavefronts", 1e-3, ".0f"),
    ("MHz", "sm_clock_mhz", 1, ".0f"),
]


def rows_of(text):
    return [row for row in map(json.loads, text.splitlines()) if "config" in row]


def worst_of(path, count):
    with open(path) as file:
        rows = rows_of(file.read())
    first = [row for row in rows if row["rank"] == 1 and row["problem"]["m"] >= LEAST_M
             and row["baselines"]["cublaslt_ratio"] is not None]
    return sorted(first, key=lambda row: row["baselines"]["cublaslt_ratio"])[:count]


def flags_of(row):
    """The problem and its configuration as the command line says them."""
    p, c = row["problem"], row["config"]
    flags = {"--shape": f"{p['m']}x{p['n']}x{p['k']}", "--type": p["types"]["a"],
             "--tile": f"{c['tile_m']}x{c['tile_n']}x{c['tile_k']}", "--stages": c["stages"],
             "--consumer-warpgroups": c["consumer_warpgroups"], "--schedule": c["schedule"],
             "--swap-ab": "on" if c.get("swap_ab") else "off",
             "--cluster": f"{c['cluster_m']}x{c['cluster_n']}", "--order": c["order"],
             "--split-k": c["split_k"], "--grid-split-k": c.get("grid_split_k", 1), "--ctas-per-sm": c["ctas_per_sm"],
             "--dynamic-scheduler": "on" if c.get("dynamic_scheduler") else "off",
             "--overlapped-epilogue": "on" if c["overlapped_epilogue"] else "off"}
    if c["order"] in ("grouped", "serpentine"):
        flags["--group"] = c["group"]
    if not c["overlapped_epilogue"] and c["split_k"] * c.get("grid_split_k", 1) == 1:
        flags["--epilogue-tile-n"] = c["epilogue_tile_n"]
    return [str(word) for pair in flags.items() for word in pair]


def measured(program, row, rounds):
    command = [program, "measure", "gemm", *flags_of(row), "--top", "1", "--rounds", str(rounds), "--counters",
               "--jsonl"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return None, f"exit {run.returncode}: {run.stderr.strip().splitlines()[-1:] or ['no word']}"
    again = rows_of(run.stdout)
    if len(again) != 1 or not again[0]["counters"]:
        return None, "no counters came back"
    return again[0], run.stdout


def cell(counters, key, factor, form):
    value = counters.get(key)
    return "-" if value is None else format(value * factor, form)


def line_of(before, row):
    theirs = row["baselines"].get("cublaslt_best_counters") or {}
    c = row["config"]
    cluster = "" if c["cluster_m"] * c["cluster_n"] == 1 else f" {c['cluster_m']}x{c['cluster_n']}"
    split = "" if c["split_k"] == 1 else f" /{c['split_k']}"
    shape = "x".join(str(row["problem"][i]) for i in "mnk")
    return ([shape, f"{c['tile_m']}x{c['tile_n']}x{c['stages']}{cluster}{split}",
             format(before["baselines"]["cublaslt_ratio"], ".3f"), format(row["baselines"]["cublaslt_ratio"], ".3f")]
            + [f"{cell(row['counters'], *how)} {cell(theirs, *how)}" for how in (c[1:] for c in COLUMNS)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooftile", required=True, help="the program")
    parser.add_argument("--run", required=True, help="rows that `measure gemm --suite` wrote")
    parser.add_argument("--out", required=True, help="folder for rows and table")
    parser.add_argument("--top", type=int, default=10, help="problems; default 10")
    parser.add_argument("--rounds", type=int, default=6, help="timed blocks of each; default 6")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)

    worst = worst_of(args.run, args.top)
    if not worst:
        sys.exit(f"{args.run}: no plan ranked first with M of {LEAST_M} or more and a ratio; is it a suite's run?")
    head = ["M x N x K", "plan", "then", "now"] + [c[0] for c in COLUMNS]
    lines, raw, failed = [head], [], []
    for before in worst:
        row, text = measured(args.rooftile, before, args.rounds)
        if row is None:
            failed.append(f"{flags_of(before)[1]}: {text}")
            continue
        raw.append(text)
        lines.append(line_of(before, row))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    table = "\n".join("  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths)))
                      for line in lines)
    table = ("Times of cuBLASLt's best of 8 over ours, in the suite's run (then) and now; counters of one launch, "
             "ours and cuBLASLt's best\n\n" + table + "\n" + "".join(f"failed: {f}\n" for f in failed))
    gpu = worst[0]["machine"]["id"]
    with open(os.path.join(args.out, f"{gpu}-worst.jsonl"), "w") as file:
        file.writelines(raw)
    with open(os.path.join(args.out, f"{gpu}-worst.txt"), "w") as file:
        file.write(table)
    print(table, end="")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
