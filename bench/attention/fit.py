#!/usr/bin/env python3
"""Fits softmax.stretch, softmax.latency, softmax.turn and softmax.flops to measured plans of attention.

usage: bench/attention/fit.py LIBRARY FILE.jsonl ... [--judge FILE.jsonl ...]

LIBRARY is librooftile.so. FILE, or MACHINE:FILE where it is of another than h200-sxm: lines or documents of `rooftile measure attention
--json`, or of beside_cudnn.py --out, whose plans all count, every problem alike. Problems are dealt in turn: even ones are fitted, odd ones judge; those of --judge only judge. The numbers go
one by one, by shrinking factors, while the mean error of the fitted ones, and what the plan of the least prediction loses, fall together. Of problems of more than one plan it says what the plan of
the least prediction loses to the fastest. Needs no GPU.
"""
import ctypes
import json
import math
import statistics
import sys

UNITS = {"softmax.stretch": "", "softmax.latency": " clk", "softmax.turn": " clk", "softmax.flops": ""}
START = {"softmax.stretch": 2.0, "softmax.latency": 643.0, "softmax.turn": 1285.0, "softmax.flops": 80.0}
FIXED = ("tile_q", "tile_kv", "stages", "schedule", "section_heads")


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.rooftile_error_message.restype = ctypes.c_char_p

    def predicted(self, row, numbers):
        request = {"op": "attention", "machine": row["machine"], "top": 1, "exhaustive": True,
                   "set": [f"{key}={value:.6g}{UNITS[key]}" for key, value in numbers.items()], **row["problem"]}
        for key in FIXED:
            request[key] = row["config"][key]
        plans, text = ctypes.c_void_p(), ctypes.c_char_p()
        if self.c.rooftile_plan(json.dumps(request).encode(), ctypes.byref(plans)):
            raise RuntimeError(self.c.rooftile_error_message().decode())
        self.c.rooftile_plans_json(plans, ctypes.byref(text))
        prediction = json.loads(text.value)["plans"][0]["prediction"]["time_us"]
        self.c.rooftile_free_text(text)
        self.c.rooftile_free_plans(plans)
        return prediction


def documents(path):
    decoder, text, at = json.JSONDecoder(), open(path).read(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
        yield from value["rows"] if "rows" in value else [value]


def rows_of(path):
    machine, colon, file = path.rpartition(":")
    for row in documents(file if colon else path):
        if "fields" in row:
            for plan in row.get("plans") or [{"config": row["config"], "us": row["ours_us"]}]:
                yield {"machine": machine or "h200-sxm", "problem": row["fields"], "config": plan["config"], "time_us": plan["us"]}
        elif row.get("time_us") and not row["invalid"]:
            problem = {key: value for key, value in row["problem"].items() if key != "op"}
            problem["log_sum_exp"] = "on" if problem.get("log_sum_exp") else "off"
            yield {"machine": machine or "h200-sxm", "problem": problem, "config": row["config"], "time_us": row["time_us"]}


def errors(library, rows, numbers):
    """Of plans whose configuration still is one."""
    out = []
    for row in rows:
        try:
            out.append(library.predicted(row, numbers) / row["time_us"] - 1)
        except (RuntimeError, IndexError):
            continue
    return out


def regret(library, rows, numbers):
    """Of problems of more than one plan: the time of the plan of the least prediction over the least time."""
    plans = {}
    for row in rows:
        try:
            plans.setdefault(json.dumps(row["problem"]), []).append((library.predicted(row, numbers), row["time_us"]))
        except (RuntimeError, IndexError):
            continue
    lost = [min(of)[1] / min(us for _, us in of) for of in plans.values() if len(of) > 1]
    if not lost:
        return ""
    return (f"; the plan of the least prediction takes {math.exp(statistics.fmean(map(math.log, lost))):.3f} of the least time over {len(lost)} problems, "
            f"within 3 % on {100 * sum(x <= 1.03 for x in lost) / len(lost):.0f} %")


def told(values):
    sizes = sorted(map(abs, values))
    return (f"{100 * statistics.fmean(sizes):.1f} % off in the mean, {100 * sizes[math.ceil(0.95 * len(sizes)) - 1]:.1f} % at the 95th percentile of "
            f"{len(sizes)}, {100 * statistics.fmean(values):+.1f} % on balance")


def main():
    arguments, judged = sys.argv[2:], []
    if "--judge" in arguments:
        at = arguments.index("--judge")
        arguments, judged = arguments[:at], arguments[at + 1:]
    library = Library(sys.argv[1])
    least_us = 5
    rows = [row for file in arguments for row in rows_of(file) if row["time_us"] >= least_us]
    number = {problem: i for i, problem in enumerate(dict.fromkeys(json.dumps(row["problem"]) for row in rows))}
    fitted = [row for row in rows if number[json.dumps(row["problem"])] % 2 == 0]
    judges = [row for row in rows if number[json.dumps(row["problem"])] % 2 == 1]
    by_problem = {}
    for row in fitted:
        by_problem.setdefault(json.dumps(row["problem"]), []).append(row)

    def cost(numbers):
        off, lost = [], []
        for of in by_problem.values():
            e = errors(library, of, numbers)
            if e:
                off.append(statistics.fmean(map(abs, e)))
            if len(e) == len(of) > 1:
                least = min(range(len(of)), key=lambda i: e[i] * of[i]["time_us"] + of[i]["time_us"])
                lost.append(of[least]["time_us"] / min(row["time_us"] for row in of) - 1)
        return statistics.fmean(off) + (statistics.fmean(lost) if lost else 0)

    numbers = dict(START)
    for file in judged:
        of = [row for row in rows_of(file) if row["time_us"] >= least_us]
        print(f"{file} as shipped:", told(errors(library, of, {})) + regret(library, of, {}), flush=True)
    best, factor = cost(numbers), 1.12
    while factor > 1.02:
        moved = False
        for key in UNITS:
            for by in (factor, 1 / factor):
                tried = {**numbers, key: max(1.0, numbers[key] * by)}
                error = cost(tried)
                if error < best:
                    best, numbers, moved = error, tried, True
                    break
        print(f"{ {key: round(value, 3) for key, value in numbers.items()} }: {100 * best:.2f} %", flush=True)
        if not moved:
            factor = math.sqrt(factor)
    print("fitted:", told(errors(library, fitted, numbers)))
    if judges:
        print("unseen:", told(errors(library, judges, numbers)))
    for file in judged:
        of = [row for row in rows_of(file) if row["time_us"] >= least_us]
        print(f"{file}:", told(errors(library, of, numbers)) + regret(library, of, numbers))


if __name__ == "__main__":
    main()
