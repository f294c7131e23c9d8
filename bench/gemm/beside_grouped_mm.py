#!/usr/bin/env python3
"""Groups of a matrix product beside PyTorch's torch._grouped_mm, in one run, in CUDA graphs.

usage: bench/gemm/beside_grouped_mm.py LIBRARY [--draw N --seed S] [--filter TEXT] [--seconds S] [--out FILE.jsonl]

LIBRARY is librooftile.so. Without --draw: the expert layers of DeepSeek-V3 (256 experts, hidden 7168, 2048 an expert, eight of them a
token) and Mixtral 8x7B (8 experts, 4096, 14336, two a token), gate and up together and down, each with as many rows a group, with
counts as a skewed router sends them, and with few rows. With it N layers whose widths, experts, tokens and counts are drawn.
Needs one GPU of sm_90 and PyTorch 2.8 or later. Weights lie [group, n, k]; sets of tensors, together several L2, are taken one after
the other; competitors alternate in blocks of some milliseconds. A ratio is the other's time over ours in the same round, median
of the rounds. Results are compared with the other's (fp64 at every element: `rooftile measure gemm --groups`). One line a
problem, then geometric means.
"""
import argparse
import json
import math
import os
import random
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import torch  # noqa: E402
from beside import Kernel, Library, Rounds, graph_of, mean, prediction_text, ratio, sets_for, where  # noqa: E402


def uniform(groups, rows):
    return [rows // groups + (g < rows % groups) for g in range(groups)]


def skewed(rng, groups, rows):
    """Shares that fall as 1 / place, in any order; some groups stay empty where rows are few."""
    weights = [1 / (1 + g) for g in range(groups)]
    rng.shuffle(weights)
    counts = [0] * groups
    for g in rng.choices(range(groups), weights, k=rows):
        counts[g] += 1
    return counts


def routed(rng, groups, rows):
    """Each row to any group alike."""
    counts = [0] * groups
    for g in rng.choices(range(groups), k=rows):
        counts[g] += 1
    return counts


def layers():
    rng = random.Random(1)
    for model, groups, hidden, inner, chosen in (("deepseek-v3", 256, 7168, 2048, 8), ("mixtral", 8, 4096, 14336, 2)):
        for layer, n, k in (("gate_up", 2 * inner, hidden), ("down", hidden, inner)):
            for tokens in (64, 1024, 8192):
                rows = tokens * chosen
                for kind, counts in (("uniform", uniform(groups, rows)), ("skewed", skewed(rng, groups, rows))):
                    yield f"{model} {layer} {tokens} tokens {kind}", counts, n, k


def drawn(count, seed):
    rng = random.Random(seed)

    def log_uniform(low, high):
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    while count > 0:
        groups = round(log_uniform(2, 256))
        n, k = (64 * max(1, round(log_uniform(512, 16384) / 64)) for _ in range(2))
        rows = max(1, round(log_uniform(16, 65536)))
        flop, weights = 2 * rows * n * k, 2 * groups * n * k
        if not 5e8 <= flop <= 1e13 or weights > 40e9:
            continue
        kind = rng.choice((routed, skewed, lambda _, g, r: uniform(g, r)))
        counts = kind(rng, groups, rows)
        count -= 1
        yield f"{groups} groups {rows}x{n}x{k}", counts, n, k


def measured(library, counts, n, k):
    groups, rows = len(counts), sum(counts)
    plans, documents = library.plans("gemm", {"groups": ",".join(map(str, counts)), "n": n, "k": k})
    kernel = Kernel(library, plans, documents[0])
    bytes_of_set = 2 * (sum(c > 0 for c in counts) * n * k + rows * (n + k))
    count = sets_for(bytes_of_set)
    ends = [sum(counts[: g + 1]) for g in range(groups)]
    offsets = torch.tensor([0, *ends], dtype=torch.int32, device="cuda")
    offs = offsets[1:].clone()
    sets = []
    for _ in range(count):
        a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
        b = torch.empty(groups, n, k, device="cuda", dtype=torch.bfloat16)
        for part in b:
            part.normal_()
        sets.append((a, b, torch.zeros(rows, n, device="cuda", dtype=torch.bfloat16)))

    def ours(a, b, c):
        kernel.launch(a, b, offsets, c)

    def theirs(a, b, c):
        return torch._grouped_mm(a, b.transpose(-2, -1), offs=offs)

    ours(*sets[0])
    other, mine = theirs(*sets[0]), sets[0][2]
    difference = max((other[i:i + 4096].float() - mine[i:i + 4096].float()).abs().max().item() for i in range(0, rows, 4096))
    del other
    times = Rounds({"ours": graph_of(ours, sets), "grouped_mm": graph_of(theirs, sets)}, count).microseconds()
    return {"counts": counts, "n": n, "k": k, "config": kernel.config, "predicted_us": kernel.predicted_us,
            # Two results of one value each rounded to 8 bits of a sum whose deviation is sqrt(k).
            "difference": difference / math.sqrt(k),
            "us": {name: statistics.median(t) for name, t in times.items()},
            "tflops": 2 * rows * n * k / statistics.median(times["ours"]) * 1e-6,
            "ratio": ratio(times["grouped_mm"], times["ours"])}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out")
    asked = parser.parse_args()
    library, begun, rows = Library(asked.library), time.time(), []
    out = open(asked.out, "w") if asked.out else None
    for name, counts, n, k in drawn(asked.draw, asked.seed) if asked.draw else layers():
        if asked.filter not in name:
            continue
        if time.time() - begun > asked.seconds:
            print("out of time", flush=True)
            break
        try:
            row = {"name": name, **measured(library, counts, n, k)}
        except RuntimeError as error:
            print(f"{name:45} {str(error).splitlines()[0][:100]}", flush=True)
            continue
        rows.append(row)
        c = row["config"]
        wrong = "" if row["difference"] < 0.1 else f"  differs by {row['difference']:.3g} of the deviation"
        print(f"{name:45} {row['us']['ours']:9.2f} us ({row['predicted_us']:9.2f} predicted) {row['tflops']:6.1f} TFLOP/s  grouped_mm "
              f"{row['ratio']:.3f}  {c['tile_m']}x{c['tile_n']} {c['schedule'][:4]}{' swapped' if c['swap_ab'] else ''}{wrong}", flush=True)
        if out:
            out.write(json.dumps(row) + "\n")
            out.flush()
        torch.cuda.empty_cache()
    if rows:
        print(where())
        told = prediction_text((r["predicted_us"], r["us"]["ours"]) for r in rows)
        print(f"{len(rows)} problems: {mean([r['ratio'] for r in rows]):.3f} of grouped_mm, least {min(r['ratio'] for r in rows):.3f}; {told}", flush=True)
    return 1 if any(r["difference"] >= 0.1 for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
