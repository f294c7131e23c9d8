#!/usr/bin/env python3
"""Attention of one query a sequence over a cache, beside PyTorch's back ends: cold, in CUDA graphs over rotated buffers, in turns.

    python3 bench/attention/decode.py --rooftile build/rooftile [--seed 1 --count 24] [--out rows.jsonl]

Without --count: a list of usual caches. Ours is measured (and verified at every element) by `rooftile measure attention`; theirs here.
"""

import argparse
import json
import math
import random
import subprocess

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

USUAL = [(1, 32, 8, 1024, 128), (1, 32, 8, 8192, 128), (1, 32, 8, 131072, 128), (16, 32, 8, 2048, 128), (64, 32, 8, 8192, 128),
         (64, 64, 8, 1024, 128), (16, 16, 16, 4096, 128), (2, 40, 8, 3000, 128), (3, 28, 4, 5001, 64), (8, 16, 2, 777, 64), (1, 8, 1, 40000, 128)]
L2_BYTES = 64 << 20
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def drawn(seed, count):
    draw = random.Random(seed)
    out = []
    while len(out) < count:
        kv_heads = 2 ** draw.randint(0, 5)
        heads = kv_heads * draw.choice([1, 2, 4, 4, 7, 8, 8, 16])
        batch, keys, dim = round(2 ** draw.uniform(0, 7)), round(2 ** draw.uniform(7, 17)), draw.choice([64, 128, 128, 128])
        if heads <= 128 and batch * kv_heads * keys * dim * 4 <= 2 << 30:
            out.append((batch, heads, kv_heads, keys, dim))
    return out


def theirs(problem, backend):
    batch, heads, kv_heads, keys, dim = problem
    cache_bytes = batch * kv_heads * keys * dim * 4
    sets = 2 + 3 * L2_BYTES // cache_bytes
    sets = min(sets, 64)
    new = lambda rows, heads: torch.randn(batch, heads, rows, dim, device="cuda", dtype=torch.bfloat16)
    buffers = [(new(1, heads), new(keys, kv_heads), new(keys, kv_heads)) for _ in range(sets)]

    def run():
        for q, k, v in buffers:
            F.scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv_heads)

    with sdpa_kernel(BACKENDS[backend]):
        run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
    times = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / sets)
    return sorted(times)[len(times) // 2]


def ours(program, problem, extra=()):
    batch, heads, kv_heads, keys, dim = problem
    command = [program, "measure", "attention", "--batch", str(batch), "--heads", str(heads), "--kv-heads", str(kv_heads), "--q", "1", "--kv", str(keys),
               "--dim", str(dim), "--json", *extra]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if not run.stdout.strip():
        return {"time_us": None, "invalid": run.stderr.strip()[-200:]}
    return json.loads(run.stdout)["rows"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rooftile", default="build/rooftile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    parser.add_argument("--out")
    given = parser.parse_args()
    rows = []
    for problem in drawn(given.seed, given.count) if given.count else USUAL:
        row = ours(given.rooftile, problem)
        others = {}
        for name in BACKENDS:
            try:
                others[name] = theirs(problem, name)
            except RuntimeError as error:
                others[name] = None
                print(f"  {name}: {str(error).splitlines()[0][:100]}")
            torch.cuda.empty_cache()
        batch, heads, kv_heads, keys, dim = problem
        cache = batch * kv_heads * keys * dim * 4
        best = min((us for us in others.values() if us), default=None)
        time = row.get("time_us")
        rows.append({"problem": problem, "cache_bytes": cache, "time_us": time, "predicted_us": row.get("predicted_time_us"), "config": row.get("config"),
                     "invalid": row.get("invalid"), **others})
        if time:
            print(f"{batch:3d}x{heads}/{kv_heads}x{keys}x{dim}: {cache / 1e6:8.1f} MB {time:8.2f} us {cache / time / 1e6:5.2f} TB/s, predicted {row.get('predicted_time_us') or 0:8.2f}; "
                  + ", ".join(f"{name} {us:.2f}" for name, us in others.items() if us) + (f"; ratio {best / time:.3f}" if best else "")
                  + f"; {row.get('label')} {row.get('invalid') or ''}")
        else:
            print(f"{problem}: {row.get('invalid')}")
    good = [row for row in rows if row["time_us"] and min(filter(None, (row["cudnn"], row["flash"])), default=None)]
    if good:
        ratios = [min(filter(None, (row["cudnn"], row["flash"]))) / row["time_us"] for row in good]
        errors = [abs(row["predicted_us"] / row["time_us"] - 1) for row in good if row["predicted_us"]]
        print(f"{len(good)} of {len(rows)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of the better one's speed, least {min(ratios):.3f}; "
              f"predictions {sum(errors) / max(1, len(errors)):.1%} off")
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
