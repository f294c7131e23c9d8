#!/usr/bin/env python3
"""Products of packed weights of 4 bits beside humming-kernels' and PyTorch's in bf16, in CUDA graphs.

usage: bench/gemm/packed_beside.py LIBRARY [--shapes NxK,NxK,...] [--rows M,M,...] [--top N] [--seconds S] [--out FILE.jsonl]

LIBRARY is librooftile_c.so. Needs one GPU of sm_90 and PyTorch 2.9 or later; humming-kernels where installed, with the kernels that it chooses itself.
Weights are int4 in groups of 128 with bf16 scales, activations bf16. Sets of tensors are taken one after the other, together several L2;
competitors alternate in blocks of some milliseconds. A ratio is the other's time over ours in the same round, median of the rounds.
Whether ours is right: `rooftile measure gemm --types bf16,int4,bf16`; of humming-kernels' the largest error beside its own unpacked weights is
printed. One line a product, then geometric means by the size of the weights.
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import torch  # noqa: E402
from beside import Kernel, Library, Rounds, graph_of, mean, prediction_text, ratio, sets_for, where  # noqa: E402

ROWS, COLUMNS, GROUP = 64, 128, 128


def packed(n, k):
    """Random weights as Rooftile packs them: a header, then blocks of 64 rows by 128 of K with their scales (kernels/gemm/quantised_weights.hpp)."""
    blocks = -(-n // ROWS) * -(-k // COLUMNS)
    weights = torch.randint(0, 256, (blocks, ROWS * COLUMNS // 2), device="cuda", dtype=torch.uint8)
    scales = (torch.rand(blocks, ROWS, device="cuda") * 0.02 + 0.001).bfloat16().view(torch.uint8)
    version, int4 = 1, 1
    header = torch.zeros(32, dtype=torch.int32)
    header[0], header[1], header[2] = 0x51540000 | version << 12 | int4 << 10 | GROUP, n, k
    return torch.cat([header.cuda().view(torch.uint8), torch.cat([weights, scales], 1).flatten()])


def humming_layers(n, k, count):
    try:
        from humming.layer import HummingLayer
    except ImportError as error:
        return str(error), []
    layers = []
    for _ in range(count):
        layer = HummingLayer(shape_n=n, shape_k=k, weight_config={"dtype": "int4", "group_size": GROUP}, torch_dtype=torch.bfloat16).cuda()
        layer.load_from_unquantized(torch.randn(n, k, device="cuda", dtype=torch.bfloat16))
        layer.transform()
        layers.append(layer)
    return "", layers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--shapes", default="8192x8192,28672x8192,4096x14336")
    parser.add_argument("--rows", default="1,16,64,256")
    parser.add_argument("--top", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out")
    args = parser.parse_args()
    library, done, begin = Library(args.library), [], time.monotonic()
    print(where())
    for n, k in ([int(side) for side in shape.split("x")] for shape in args.shapes.split(",")):
        count = sets_for(n * k // 2)
        missing, layers = humming_layers(n, k, count)
        if missing:
            print(f"no humming-kernels: {missing}")
        weights = [packed(n, k) for _ in range(count)]
        plain = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(min(count, 4))]
        for m in map(int, args.rows.split(",")):
            if time.monotonic() - begin > args.seconds:
                break
            fields = {"m": m, "n": n, "k": k, "types": "bf16,int4,bf16"}
            plans, documents = library.plans("gemm", fields, args.top)
            kernels = [Kernel(library, plans, document) for document in documents]
            activations = [torch.randn(m, k, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
            results = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
            sets = [(s,) for s in range(count)]
            functions = {f"plan{i}": (lambda kernel: lambda s: kernel.launch(activations[s], weights[s], results[s]))(kernel) for i, kernel in enumerate(kernels, 1)}
            functions["bf16"] = lambda s: torch.mm(activations[s], plain[s % len(plain)].t(), out=results[s])
            if layers:
                functions["humming"] = lambda s: layers[s](activations[s], outputs=results[s])
            graphs = {}
            for name, function in functions.items():
                try:
                    function(0)
                    torch.cuda.synchronize()
                    graphs[name] = graph_of(function, sets)
                except Exception as error:  # what a library refuses, each in its own way
                    print(f"{name} of {fields}: {(str(error) or repr(error)).splitlines()[0][:120]}", flush=True)
            if "plan1" not in graphs:
                continue
            times = Rounds(graphs, count).microseconds()
            us = {name: statistics.median(of) for name, of in times.items()}
            row = {**fields, "packed_bytes": weights[0].numel(), "predicted_us": kernels[0].predicted_us, "config": kernels[0].config, "us": us,
                   "plans": [{"config": kernel.config, "predicted_us": kernel.predicted_us, "us": us.get(f"plan{i}")} for i, kernel in enumerate(kernels, 1)],
                   "ratios": {name: ratio(of, times["plan1"]) for name, of in times.items() if name != "plan1"}}
            done.append(row)
            if args.out:
                with open(args.out, "a") as file:
                    file.write(json.dumps(row) + "\n")
            print(f"{m:4}x{n}x{k}  " + "  ".join(f"{name} {of:7.2f}" for name, of in us.items()) + f"  predicted {kernels[0].predicted_us:7.2f}  "
                  + "  ".join(f"{name} {of:.3f}" for name, of in row["ratios"].items()), flush=True)
        del layers, weights, plain
        torch.cuda.empty_cache()
    for name in ("humming", "bf16"):
        for kind, is_of in (("up to 64 MB", lambda b: b <= 64e6), ("larger", lambda b: b > 64e6)):
            of = [row["ratios"][name] for row in done if name in row["ratios"] and is_of(row["packed_bytes"])]
            if of:
                print(f"{name}, {kind}: {mean(of):.3f} of {len(of)}, least {min(of):.3f}")
    if done:
        print(prediction_text([(row["predicted_us"], row["us"]["plan1"]) for row in done]))


if __name__ == "__main__":
    main()
