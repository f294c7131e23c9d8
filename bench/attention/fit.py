#!/usr/bin/env python3
"""Fits softmax.stretch, softmax.latency, softmax.turn and softmax.flops to measured plans of attention.

usage: bench/attention/fit.py PROGRAM FILE.jsonl ...

FILE: lines or documents of `rooftile measure attention --json`, each row with the plan's configuration. Problems are dealt in turn: even
ones are fitted, odd ones judge. The numbers go one by one, by shrinking factors while the mean error of the fitted ones falls. Needs no GPU.
"""
import json
import math
import statistics
import subprocess
import sys

KEYS = {"softmax.stretch": (1.5, ""), "softmax.latency": (300.0, "clk"), "softmax.turn": (500.0, "clk"), "softmax.flops": (150.0, "")}
FIXED = ("tile_q", "tile_kv", "stages", "schedule", "section_heads")


def rows_of(path):
    decoder, text, at = json.JSONDecoder(), open(path).read(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
        yield from value["rows"] if "rows" in value else [value]


def predicted(program, row, numbers):
    arguments = [program, "plan", "attention", "--machine", "h200-sxm", "--top", "1", "--json", "--exhaustive"]
    for key, value in row["problem"].items():
        if key != "op":
            arguments += [f"--{key.replace('_', '-')}", {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)]
    for key in FIXED:
        arguments += [f"--{key.replace('_', '-')}", str(row["config"][key])]
    for key, value in numbers.items():
        arguments += ["--set", f"{key}={value:.6g}{KEYS[key][1]}"]
    answer = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["plans"][0]["prediction"]["time_us"]


def errors(program, rows, numbers):
    return [abs(predicted(program, row, numbers) / row["time_us"] - 1) for row in rows]


def told(values):
    values = sorted(values)
    return f"{100 * statistics.fmean(values):.1f} % in the mean, {100 * values[math.ceil(0.95 * len(values)) - 1]:.1f} % at the 95th percentile of {len(values)}"


def main():
    program, *files = sys.argv[1:]
    rows = [row for file in files for row in rows_of(file) if row.get("time_us") and row["time_us"] >= 5 and not row["invalid"]]
    problems = {json.dumps(row["problem"]): None for row in rows}
    number = {problem: i for i, problem in enumerate(problems)}
    fitted = [row for row in rows if number[json.dumps(row["problem"])] % 2 == 0]
    judges = [row for row in rows if number[json.dumps(row["problem"])] % 2 == 1]
    numbers = {key: value for key, (value, _) in KEYS.items()}
    best, factor = statistics.fmean(errors(program, fitted, numbers)), 1.25
    while factor > 1.02:
        moved = False
        for key in KEYS:
            for by in (factor, 1 / factor):
                tried = {**numbers, key: max(1.0, numbers[key] * by)}
                error = statistics.fmean(errors(program, fitted, tried))
                if error < best:
                    best, numbers, moved = error, tried, True
                    break
        print(f"{ {key: round(value, 3) for key, value in numbers.items()} }: {100 * best:.2f} %", flush=True)
        if not moved:
            factor = math.sqrt(factor)
    print("fitted:", told(errors(program, fitted, numbers)))
    if judges:
        print("unseen:", told(errors(program, judges, numbers)))


if __name__ == "__main__":
    main()
