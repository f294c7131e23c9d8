#!/usr/bin/env python3
"""Fits the five numbers stream.* of fused rows to recorded times, and tells the error on problems that the fit did not see.

usage: bench/fuse/fit.py PROGRAM [MACHINE]    default: h200-sxm; from the repository's root, Python 3.11 or later; no GPU

Data: the ledgers of bench/results/ledger and the drawn suites of bench/results, whose recorded plans are predicted anew. Every second
problem fits, the others judge. Made small is the mean error of prediction, of all members of a problem: one number after the other by
shrinking factors, as long as that falls. What plan 1 loses is shown and not fitted.
"""
import glob
import json
import math
import subprocess
import sys
import tempfile
import tomllib

SHORT_US = 5  # below, ratios say little: as `rooftile validate` has it
LEAST_GAIN = 0.0003
KEYS = ["overlap_exponent", "thread_instructions", "reduction", "grid.reduction", "ring.chunk"]


def as_ledger(name, head, out):
    """A drawn suite's rows as a ledger whose problems have one member each: the plan that was timed."""
    lines, places = [dict(head)], {}
    for row in map(json.loads, list(open(name))[1:]):
        config, us = row.get("config"), row.get("time_us")
        if not config or not us or row.get("rank") != 1:
            continue
        lines[0]["keys"] = list(config)
        values = list(config.values())
        new = json.dumps(values) not in places
        place = places.setdefault(json.dumps(values), len(places))
        lines.append({"problem": row["problem"], "configurations": [values] if new else [], "members": [place], "first_us": [us],
                      "predicted_us": [None], "kept": 1, "picks": {}, "failed": [], "wrong": [], "not_compared": [], "again": [],
                      "duplicate": None, "duplicate_first_us": None, "notes": [], "seconds": 0})
    out.writelines(json.dumps(line) + "\n" for line in lines)


def start_of(machine):
    found = tomllib.load(open(f"machines/calibration/{machine}.toml", "rb"))["kernels"]["stream"]
    numbers = {}
    for key in KEYS:
        fact = found
        for part in key.split("."):
            fact = fact[part]
        numbers["stream." + key] = (fact["value"], "" if fact["unit"] == "1" else " " + fact["unit"])
    return numbers


class Data:
    def __init__(self, program, machine):
        ledgers = sorted(glob.glob(f"bench/results/ledger/{machine}-fuse-*.jsonl"))
        draws = sorted(glob.glob(f"bench/results/*/*{machine.split('-')[0]}*-fuse-draw-*.jsonl"))
        if not ledgers:
            sys.exit(f"no ledger of fuse for {machine} in bench/results/ledger")
        self.command = [program, "validate", "--machine", machine, "--json"]
        self.folder = tempfile.TemporaryDirectory()
        head = json.loads(open(ledgers[0]).readline())
        for number, name in enumerate(draws):
            ledgers.append(f"{self.folder.name}/{number}.jsonl")  # validate takes files in the order of their names
            with open(ledgers[-1], "w") as out:
                as_ledger(name, head, out)
        for name in ledgers:
            self.command += ["--ledger", name]

    def problems(self, numbers):
        settings = [text for key, (value, unit) in numbers.items() for text in ("--set", f"{key}={value:.6g}{unit}")]
        done = subprocess.run(self.command + settings, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return json.loads(done.stdout)["operations"][0]["rows"]


def half(rows, which):
    """Mean error, and mean logarithm of the regret of problems with a space, of every second problem."""
    chosen = [row for i, row in enumerate(rows)
              if i % 2 == which and row["best_us"] >= SHORT_US and row["prediction_error_all"] is not None]
    errors = [row["prediction_error_all"] for row in chosen]
    regrets = [math.log(row["regret"]) for row in chosen if row["members"] > 1 and row["regret"]]
    return len(chosen), sum(errors) / len(errors), sum(regrets) / max(1, len(regrets))


def loss(rows):
    return half(rows, 0)[1]


def shown(name, rows):
    for which, word in enumerate(("fit", "unseen")):
        count, error, regret = half(rows, which)
        print(f"{name}, {word}: {count} problems, {100 * error:.1f} % off, plan 1 {math.exp(regret):.3f} of the fastest", flush=True)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    machine = sys.argv[2] if len(sys.argv) == 3 else "h200-sxm"
    data, numbers = Data(sys.argv[1], machine), start_of(machine)
    rows = data.problems(numbers)
    shown("before", rows)
    least, factor = loss(rows), 1.5
    while factor > 1.08:
        fell = False
        for key, (value, unit) in list(numbers.items()):
            for step in (factor, 1 / factor):
                if key.endswith("exponent") and value * step < 1:
                    continue  # nothing overlaps less than not at all
                tried = numbers | {key: (float(f"{value * step:.3g}"), unit)}
                other = data.problems(tried)
                if loss(other) < least - LEAST_GAIN:
                    numbers, least, rows, fell = tried, loss(other), other, True
                    print(f"{key} = {numbers[key][0]:g}{unit}: {least:.4f}", flush=True)
                    break
        if not fell:
            factor = math.sqrt(factor)
    shown("after", rows)
    for key, (value, unit) in numbers.items():
        print(f'{key} = {{value = {value:g}, unit = "{unit.strip() or "1"}", fit = "rows"}}')


if __name__ == "__main__":
    main()
