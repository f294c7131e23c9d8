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
import ctypes
import json
import math
import random
import statistics
import sys
import time

import torch

L2_FACTOR = 4
L2_BYTES = 60 * 2**20
ROUNDS = 7
BLOCK_SECONDS = 0.006


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.rooftile_error_message.restype = ctypes.c_char_p

    def __call__(self, function, *arguments):
        if getattr(self.c, function)(*arguments):
            raise RuntimeError(self.c.rooftile_error_message().decode())


class Kernel:
    """Plan 1 of a problem, loaded on device 0."""

    def __init__(self, library, fields):
        self.library = library
        plans, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        request = {"op": "gemm", "machine": "h200-sxm", "top": 1, **fields}
        library("rooftile_plan", json.dumps(request).encode(), ctypes.byref(plans))
        text = ctypes.c_char_p()
        library("rooftile_plans_json", plans, ctypes.byref(text))
        plan = json.loads(text.value)["plans"][0]
        self.config, self.predicted_us = plan["config"], plan["prediction"]["time_us"]
        library("rooftile_compile", plans, 1, ctypes.byref(self.kernel))
        library("rooftile_load", self.kernel, 0)
        size = ctypes.c_size_t()
        library("rooftile_workspace_bytes", self.kernel, 0, ctypes.byref(size))
        self.workspace = torch.zeros(max(16, size.value), dtype=torch.uint8, device="cuda")

    def launch(self, *tensors):
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        self.library("rooftile_launch", self.kernel, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), pointers,
                     len(tensors), ctypes.c_void_p(self.workspace.data_ptr()))


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


def graph_of(function, sets):
    """All sets once, as a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for tensors in sets:
            function(*tensors)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for tensors in sets:
            function(*tensors)
    return graph


def seconds(graph, count):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def measured(library, counts, n, k):
    groups, rows = len(counts), sum(counts)
    kernel = Kernel(library, {"groups": ",".join(map(str, counts)), "n": n, "k": k})
    bytes_of_set = 2 * (sum(c > 0 for c in counts) * n * k + rows * (n + k))
    count = max(1, min(16, -(-L2_FACTOR * L2_BYTES // bytes_of_set)))
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
    graphs = {"ours": graph_of(ours, sets), "grouped_mm": graph_of(theirs, sets)}
    repeats = {name: max(1, round(BLOCK_SECONDS / seconds(graph, 2))) for name, graph in graphs.items()}
    times = {name: [] for name in graphs}
    for round_ in range(ROUNDS):
        for name in (list(graphs) if round_ % 2 else list(reversed(graphs))):
            times[name].append(seconds(graphs[name], repeats[name]) / count * 1e6)
    return {"counts": counts, "n": n, "k": k, "config": kernel.config, "predicted_us": kernel.predicted_us,
            # Two results of one value each rounded to 8 bits of a sum whose deviation is sqrt(k).
            "difference": difference / math.sqrt(k),
            "us": {name: statistics.median(t) for name, t in times.items()},
            "tflops": 2 * rows * n * k / statistics.median(times["ours"]) * 1e-6,
            "ratio": statistics.median(b / a for a, b in zip(times["ours"], times["grouped_mm"]))}


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
        errors = sorted(abs(r["predicted_us"] / r["us"]["ours"] - 1) for r in rows)
        print(f"{len(rows)} problems: {math.exp(statistics.fmean(math.log(r['ratio']) for r in rows)):.3f} of grouped_mm, least "
              f"{min(r['ratio'] for r in rows):.3f}; predicted {statistics.fmean(errors):.1%} off, 95th "
              f"{errors[min(len(errors) - 1, int(0.95 * len(errors)))]:.1%}", flush=True)
    return 1 if any(r["difference"] >= 0.1 for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
