#!/usr/bin/env python3
"""Gives every problem of a suite other values than those it was drawn with: types, scales, an epilogue, a batch.

    rooftile sweep gemm --draw 60 --seed S --save law.toml --plan-only
    bench/dress.py law.toml 'types = "fp8_e4m3,fp8_e4m3,bf16"' 'scales = "tensor"' --multiple 16 > fp8.toml
    rooftile measure gemm --suite fp8.toml --out fp8.jsonl

Sizes stay those of the law; with --multiple N problems whose n or k is no multiple of N are left out, and the suite says so.
"""
import argparse
import re
import sys


def problems_of(text):
    head, *rows = text.split("[[problem]]\n")
    return head, [dict(line.split(" = ", 1) for line in row.strip().splitlines()) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("values", nargs="+", help="KEY = VALUE as a suite has it")
    parser.add_argument("--multiple", type=int, default=1)
    parser.add_argument("--first", type=int, help="no more problems than this")
    asked = parser.parse_args()
    with open(asked.suite, encoding="utf-8") as file:
        head, problems = problems_of(file.read())
    values = dict(value.split(" = ", 1) for value in asked.values)
    fitting = [p for p in problems if int(p["n"]) % asked.multiple == 0 and int(p["k"]) % asked.multiple == 0]
    kept = fitting[: asked.first]
    if not kept:
        sys.exit("no problem is left")
    what = "; ".join(f"{key} {value}" for key, value in values.items()).replace('"', "'")
    if asked.multiple > 1:
        what += f"; n and k multiples of {asked.multiple}, {len(problems) - len(fitting)} of {len(problems)} left out"
    head = re.sub(r'^law = "(.*)"$', lambda m: f'law = "{m.group(1)}; {what}"'[:200].rstrip('"') + '"', head, flags=re.M)
    sys.stdout.write(head.rstrip() + "\n")
    for problem in kept:
        if "types" in values:
            problem.pop("type", None)
        problem.update(values)
        sys.stdout.write("\n[[problem]]\n" + "".join(f"{key} = {value}\n" for key, value in problem.items()))


if __name__ == "__main__":
    main()
