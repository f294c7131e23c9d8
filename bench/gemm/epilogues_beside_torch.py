#!/usr/bin/env python3
"""A product's epilogue beside cuBLASLt's own, torch.compile, and a product and a kernel of ours, in one run, in CUDA graphs.

usage: bench/gemm/epilogues_beside_torch.py LIBRARY PROGRAM [--draw N --seed S] [--form NAME] [--seconds S] [--out FILE.jsonl]

LIBRARY is librooftile.so, PROGRAM the rooftile of the same build: it draws the problems (`sweep gemm --law epilogue`), of which those of
the forms bias_gelu, bias_residual and swiglu (interleaved, split) with M >= 2048 are kept, N of each. Needs one GPU of sm_90 and PyTorch. Data
is random; sets of tensors, together several L2, are taken one after the other; competitors alternate in blocks of some
milliseconds. cuBLASLt is the best of eight algorithms; of pairs of columns it has no epilogue. torch.compile is PyTorch's default
mode. Ours in two: a product and a kernel behind it (of pairs two products in one batch), each its plan 1, the sums stored in bf16 between
them. `plain` is our product of the same M, N and K without an epilogue, and `bytes` the time of what the epilogue reads besides, and of
pairs does not store, at a copy's rate: `over` is our time over their sum. A ratio is the other's time over ours in the same round, median of the
rounds. One line a problem, then geometric means and the least by form.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from beside import Kernel, Library, Rounds, graph_of, mean, ratio, seconds, sets_for, where  # noqa: E402
from cublaslt import Product  # noqa: E402

LEAST_ROWS = 2048
FORMS = {"d = gelu(acc + bias)": "bias_gelu", "d = acc + bias + residual": "bias_residual", "d = silu(gate) * up": "swiglu"}


def planned(library, fields, op="gemm"):
    """Plan 1, for the GPU at hand."""
    plans, documents = library.plans(op, fields)
    return Kernel(library, plans, documents[0])


def drawn(program, count, seed, form):
    """`count` problems of each form, of as many draws as that takes."""
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        subprocess.run([program, "sweep", "gemm", "--law", "epilogue", "--draw", str(min(10000, 150 * count + 200)), "--seed", str(seed), "--save", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        with open(file.name, "rb") as saved:
            problems = tomllib.load(saved)["problem"]
    kept = {}
    for p in problems:
        name = FORMS.get(p["epilogue"])
        if not name or (form and form != name) or p["m"] < LEAST_ROWS or len(kept.setdefault(name, [])) >= count:
            continue
        kept[name].append(p)
    # Forms in turn, so that a run that is cut has all.
    for i in range(count):
        for name, own in kept.items():
            if i < len(own):
                yield name, own[i]


def torch_function(form, pairs):
    if form == "bias_gelu":
        return lambda a, b, bias: F.gelu(F.linear(a, b, bias))
    if form == "bias_residual":
        return lambda a, b, bias, residual: F.linear(a, b, bias) + residual

    def swiglu(a, b):
        sums = F.linear(a, b)
        gate, up = (sums[:, 0::2], sums[:, 1::2]) if pairs == "interleaved" else sums.chunk(2, -1)
        return F.silu(gate) * up

    return swiglu


class Competitors:
    """Of one problem: name -> function of (a, b, d, product, *operands); `product` has room for A B."""

    def __init__(self, library, form, p):
        m, n, k, pairs = p["m"], p["n"], p["k"], p.get("pairs", "none")
        self.width = n if pairs == "none" else n // 2
        gemm = {"m": m, "n": n, "k": k}
        self.fused = planned(library, {**gemm, **{key: p[key] for key in ("epilogue", "pairs", "tensor") if key in p}})
        plain = planned(library, gemm)
        self.functions = {"ours": lambda a, b, d, product, *operands: self.fused.launch(a, b, *operands, d),
                          "plain": lambda a, b, d, product, *operands: plain.launch(a, b, product)}
        self.add_two_kernels(library, form, gemm, pairs, plain)
        if pairs == "none":
            self.add_cublaslt(form, m, n, k)
        compiled = torch.compile(torch_function(form, pairs), dynamic=False)
        self.functions["compile"] = lambda a, b, d, product, *operands: compiled(a, b, *operands)

    def add_two_kernels(self, library, form, gemm, pairs, plain):
        m, n, k = gemm["m"], gemm["n"], gemm["k"]
        size = f"bf16[{m},{n}]"
        if form == "bias_gelu":
            behind = planned(library, {"expression": "y = gelu(x + bias)", "tensor": [f"x:{size}", f"bias:bf16[{n}]"]}, "fuse")
        elif form == "bias_residual":
            behind = planned(library, {"expression": "y = x + bias + r", "tensor": [f"x:{size}", f"bias:bf16[{n}]", f"r:{size}"]}, "fuse")
        else:
            half = f"bf16[{m},{n // 2}]"
            behind = planned(library, {"expression": "y = silu(g) * u", "tensor": [f"g:{half}", f"u:{half}"]}, "fuse")
            split = pairs == "split"
            plain = planned(library, {"m": m, "n": n // 2, "k": k, "batch": 2, "stride_a": 0, "ldb": k if split else 2 * k,
                                     "stride_b": n // 2 * k if split else k})

            def gate_and_up(a, b, d, product):
                parts = product.view(2, m, n // 2)
                plain.launch(a, b, parts)
                behind.launch(parts[0], parts[1], d)

            self.functions["two_kernels"] = gate_and_up
            return

        def product_and_kernel(a, b, d, product, *operands):
            plain.launch(a, b, product)
            behind.launch(product, *operands, d)

        self.functions["two_kernels"] = product_and_kernel

    def add_cublaslt(self, form, m, n, k):
        library = Product(m, n, k, bias=True, gelu=form == "bias_gelu", added=form == "bias_residual")

        def of(index):
            return lambda a, b, d, product, *operands: library.launch(index, a, b, d, *operands)

        for index in range(len(library.algorithms)):
            self.functions[f"cublaslt_{index}"] = of(index)


def check(form, pairs, tensors):
    """Error of a sample of rows against fp64, as a share of a rounding's step."""
    a, b, d, _, *operands = tensors
    rows = torch.randperm(a.shape[0], device="cuda")[:64]
    exact = torch_function(form, pairs)(a[rows].double(), b.double(), *(t.double() if t.dim() == 1 else t[rows].double() for t in operands))
    return ((d[rows].double() - exact).abs() / (2.0**-8 * exact.abs() + 1e-3 * exact.abs().mean())).max().item()


def copy_rate():
    """Bytes a second, read and written, of a copy that L2 does not hold."""
    x = torch.empty(1 << 29, device="cuda", dtype=torch.uint8)
    graph = graph_of(lambda source, to: to.copy_(source), [(x, torch.empty_like(x))])
    seconds(graph, 3)
    return 2 * x.numel() / min(seconds(graph, 5) for _ in range(3))


def measured(library, form, p, rate):
    m, n, k, pairs = p["m"], p["n"], p["k"], p.get("pairs", "none")
    competitors = Competitors(library, form, p)
    width = competitors.width

    def made(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    operands = {"bias_gelu": [(n,)], "bias_residual": [(n,), (m, n)], "swiglu": []}[form]
    set_bytes = 2 * (m * k + n * k + m * width + sum(math.prod(o) for o in operands))
    count = sets_for(set_bytes)

    def zeros(*shape):
        return torch.zeros(*shape, device="cuda", dtype=torch.bfloat16)

    sets = [(made(m, k), made(n, k), zeros(m, width), zeros(m, n), *(made(*o) for o in operands)) for _ in range(count)]
    competitors.functions["ours"](*sets[0])
    error = check(form, pairs, sets[0])
    graphs = {name: graph_of(function, sets) for name, function in competitors.functions.items()}
    alone = {name: seconds(graph, 2) for name, graph in graphs.items()}
    # Of cuBLASLt's algorithms the best alone goes on.
    algorithms = [name for name in graphs if name.startswith("cublaslt")]
    for name in sorted(algorithms, key=alone.get)[1:]:
        del graphs[name]
    times = Rounds(graphs, count).microseconds()
    named = {"cublaslt" if name.startswith("cublaslt") else name: t for name, t in times.items()}
    us = {name: statistics.median(t) for name, t in named.items()}
    more_bytes = 2 * sum(math.prod(o) for o in operands) - 2 * m * (n - width)
    floor = us["plain"] + more_bytes / rate * 1e6
    ratios = {name: ratio(t, named["ours"]) for name, t in named.items() if name not in ("ours", "plain")}
    return {"form": form, "pairs": pairs, "m": m, "n": n, "k": k, "config": competitors.fused.config, "predicted_us": competitors.fused.predicted_us, "us": us,
            "ratio": ratios, "best": min(ratios.values()), "over": us["ours"] / floor, "over_plain": us["ours"] / us["plain"], "error": error}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("--draw", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out")
    asked = parser.parse_args()
    library, rows, begun = Library(asked.library), [], time.time()
    out = open(asked.out, "w") if asked.out else None
    rate = copy_rate()
    print(f"{where()}, a copy {rate / 1e12:.2f} TB/s", flush=True)
    wrong = 0
    for form, p in drawn(asked.program, asked.draw, asked.seed, asked.form):
        if time.time() - begun > asked.seconds:
            print("out of time", flush=True)
            break
        name = f"{form} {p['m']}x{p['n']}x{p['k']}{' ' + p['pairs'] if 'pairs' in p else ''}"
        try:
            row = measured(library, form, p, rate)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(f"{name:45} {str(error).splitlines()[0][:140]}", flush=True)
            torch.cuda.empty_cache()
            continue
        rows.append(row)
        wrong += row["error"] > 1
        c, us = row["config"], row["us"]
        others = "  ".join(f"{other} {value:.3f}" for other, value in row["ratio"].items())
        print(f"{name:45} {us['ours']:8.1f} us ({row['predicted_us']:8.1f} predicted)  {others}  plain {us['plain']:8.1f}  over {row['over']:.3f}  "
              f"{c['tile_m']}x{c['tile_n']} {c['schedule'][:4]}{' swapped' if c['swap_ab'] else ''}{'  WRONG' if row['error'] > 1 else ''}", flush=True)
        if out:
            out.write(json.dumps(row) + "\n")
            out.flush()
        torch.cuda.empty_cache()
    for form in dict.fromkeys(row["form"] for row in rows):
        own = [row for row in rows if row["form"] == form]
        others = {name for row in own for name in row["ratio"]}
        errors = [abs(row["predicted_us"] / row["us"]["ours"] - 1) for row in own]
        print(f"{form}: {len(own)} problems; " + "; ".join(
            f"{name} {mean([r['ratio'][name] for r in own if name in r['ratio']]):.3f}, least {min(r['ratio'][name] for r in own if name in r['ratio']):.3f}"
            for name in sorted(others)) + f"; the best of them {mean([r['best'] for r in own]):.3f}, least {min(r['best'] for r in own):.3f}; over plain and bytes "
            f"{mean([r['over'] for r in own]):.3f}, most {max(r['over'] for r in own):.3f}; predicted {statistics.fmean(errors):.1%} off", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
