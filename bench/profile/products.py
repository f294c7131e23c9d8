#!/usr/bin/env python3
"""Drawn products by the vendor's library, cold, for the profiler to explain: each in an NVTX range "product".

    rooftile profile --range product --json -o products.json -- python3 bench/profile/products.py --seed 1 --count 320
    python3 bench/profile/judge_products.py products.json

Sizes are drawn log-uniformly, most of them multiples of 8; operands rotate over more memory than L2 holds.
"""

import argparse
import math
import random

import torch

KINDS = ["bf16"] * 6 + ["fp16"] * 2 + ["fp8", "bias", "gelu", "batch", "nn", "nt", "tt"]
L2_BYTES = 64 << 20  # more than any GPU this runs on has; operands take four times that
CALLS = 12


def size(draw, low, high, aligned):
    value = round(2 ** draw.uniform(math.log2(low), math.log2(high)))
    return max(aligned, value // aligned * aligned)


def product(draw, kind):
    """A function that computes it on the i-th set of operands, and how many sets there are."""
    aligned = 16 if kind == "fp8" else 8 if draw.random() < 0.9 else 1
    m, n, k = (size(draw, low, 16384, aligned) for low in (8, 64, 64))
    batch = draw.randint(2, 16) if kind == "batch" else 1
    if batch > 1:
        m, n, k = (min(extent, 2048) for extent in (m, n, k))
    while batch * m * n * k > 2**39:
        k = max(aligned, k // 2 // aligned * aligned)
    dtype = torch.float16 if kind == "fp16" else torch.bfloat16
    element = 1 if kind == "fp8" else 2
    sets = min(64, 1 + 4 * L2_BYTES // (batch * (m * k + n * k) * element + batch * m * n * 2))

    def random_matrix(*shape):
        matrix = torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        return matrix.to(torch.float8_e4m3fn if kind == "fp8" else dtype)

    lead = (batch,) if batch > 1 else ()
    rows_of_a = (k, m) if kind in ("nt", "tt") else (m, k)
    rows_of_b = (k, n) if kind in ("nn", "tt") else (n, k)
    operands = [(random_matrix(*lead, *rows_of_a), random_matrix(*lead, *rows_of_b)) for _ in range(sets)]
    bias = random_matrix(n) if kind in ("bias", "gelu") else None
    one = torch.ones(1, device="cuda")

    def run(i):
        a, b = operands[i % sets]
        if kind == "fp8":
            return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        a = a.transpose(-1, -2) if kind in ("nt", "tt") else a
        b = b if kind in ("nn", "tt") else b.transpose(-1, -2)
        if kind == "bias":
            return torch.addmm(bias, a, b)
        if kind == "gelu":
            return torch._addmm_activation(bias, a, b, use_gelu=True)
        return torch.matmul(a, b)

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=320)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    torch.manual_seed(given.seed)
    for _ in range(given.count):
        run = product(draw, draw.choice(KINDS))
        for i in range(3):
            run(i)
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push("product")
        for i in range(3, 3 + CALLS):
            run(i)
        torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
