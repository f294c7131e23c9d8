#!/usr/bin/env python3
"""Convolutions beside cuDNN's, through PyTorch with `cudnn.benchmark`, and beside our own product of the same M, N, K, in CUDA graphs.

usage: bench/conv/beside_cudnn.py LIBRARY [--suite FILE.toml] [--draw N --seed S --program ROOFTILE] [--top N] [--skip N] [--seconds S]
       [--out FILE.jsonl] [--prepare] [--most-channels C] [--kernel NAME]

LIBRARY is librooftile_c.so. Without --draw: bench/suites/conv.toml. --draw takes the problems of `ROOFTILE sweep conv --draw N --seed S`. Needs one
GPU of sm_90 and PyTorch 2.9 or later. Tensors are channels-last everywhere; `nchw` is what the same call takes of tensors that are not, which no
ratio is made of. A set of tensors is taken after the other, together several L2; competitors alternate in blocks of some milliseconds. A ratio is the
other's time over ours in the same round, median of the rounds; `product` is ours of the same M, N, K over the convolution; of a kernel
that multiplies directly `copy` is what PyTorch takes to copy as many bytes. Results are compared with
PyTorch's (fp64 at every element: `rooftile measure conv`). One line a problem, then geometric means by what binds them. --most-channels leaves out images of
more; --kernel fixes the form of all products, sm90_gemm or sm80_gemm.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from beside import Kernel, Library, Rounds, graph_of, mean, prediction_text, ratio, sets_for, where  # noqa: E402

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
TORCHS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "suites", "conv.toml")


def suite(path):
    import tomllib
    with open(path, "rb") as file:
        for row in tomllib.load(file)["problem"]:
            yield {key: int(value) if str(value).isdigit() else value for key, value in row.items() if key not in ("name", "model")}


def drawn(program, count, seed):
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        subprocess.run([program, "sweep", "conv", "--draw", str(count), "--seed", str(seed), "--save", file.name, "--plan-only", "--machine", "h200-sxm"],
                       check=True, stdout=subprocess.DEVNULL)
        return list(suite(file.name))


def numbers(fields, key, plain, axes):
    parts = [int(part) for part in str(fields.get(key, plain)).split("x")]
    return parts * axes if len(parts) == 1 else parts


def product_of(document):
    """The product of the same M, N, K; None of a convolution that is multiplied directly, by a memory-bound kernel."""
    product = document["prediction"].get("product")
    return product and {key: product[key] for key in "mnk"}


def compile_into_cache(path, fields, top):
    library = Library(path)
    plans, documents = library.plans("conv", fields, top)
    jobs = [(plans, rank) for rank in range(1, len(documents) + 1)]
    if product := product_of(documents[0]):
        jobs.append((library.plans("gemm", product, 1)[0], 1))
    for of, rank in jobs:
        try:
            library.compiled(of, rank)
        except RuntimeError as error:
            print(f"plan {rank} of {fields}: {str(error).splitlines()[0]}", flush=True)


def measured(library, fields, top):
    sides = [int(fields[key]) for key in ("depth", "height", "width") if key in fields]
    axes, dtype = len(sides), TYPES[fields.get("type", "bf16")]
    taps, stride, padding, dilation = (numbers(fields, key, plain, axes) for key, plain in (("kernel_size", 1), ("stride", 1), ("padding", 0), ("dilation", 1)))
    batch, channels, filters, groups = int(fields.get("batch", 1)), int(fields["channels"]), int(fields["filters"]), int(fields.get("groups", 1))
    places = [(side + 2 * p - (t - 1) * d - 1) // s + 1 for side, p, t, d, s in zip(sides, padding, taps, dilation, stride)]
    plans, documents = library.plans("conv", fields, top)
    kernels = [Kernel(library, plans, document) for document in documents]
    product = product_of(documents[0])
    m, n, k = batch * torch.Size(places).numel(), filters, torch.Size(taps).numel() * (channels // groups)

    def one_set():
        x = torch.randn(batch, *sides, channels, device="cuda", dtype=dtype)
        w = torch.randn(filters, *taps, channels // groups, device="cuda", dtype=dtype) * k ** -0.5
        return x, w, torch.empty(batch, *places, filters, device="cuda", dtype=dtype)

    bytes_of_set = 2 * (batch * channels * torch.Size(sides).numel() + filters * k + m * filters)
    count = sets_for(bytes_of_set)
    sets = [one_set() for _ in range(count)]

    def theirs(x, w, _):
        return TORCHS[axes](x.movedim(-1, 1), w.movedim(-1, 1), stride=stride, padding=padding, dilation=dilation, groups=groups)

    functions = {"ours": kernels[0].launch, "cudnn": theirs}
    for i, kernel in enumerate(kernels[1:], 2):
        functions[f"plan{i}"] = kernel.launch
    kernels[0].launch(*sets[0])
    torch.cuda.synchronize()
    worst = (theirs(*sets[0]).movedim(1, -1).float() - sets[0][2].float()).abs().max().item()
    graphs = {name: graph_of(function, sets) for name, function in functions.items()}
    own, missing = Rounds(graphs, count), []
    times = own.microseconds()
    row = {"fields": fields, "config": kernels[0].config, "predicted_us": kernels[0].predicted_us, "difference": worst, "missing": missing, "m": m, "n": n, "k": k,
           "tflops": 2 * m * n * k / statistics.median(times["ours"]) / 1e6}
    if len(kernels) > 1:
        names = ["ours"] + [f"plan{i}" for i in range(2, len(kernels) + 1)]
        row["plans"] = [{"config": kernel.config, "predicted_us": kernel.predicted_us, "us": statistics.median(times[name])} for kernel, name in zip(kernels, names)]
        for name in names[1:]:
            times.pop(name)
    del graphs, own
    # The same product with its left operand written out, and the same call of tensors whose channels are outermost.
    try:
        if not product:
            halves = [(torch.randint(0, 255, (bytes_of_set // 2,), device="cuda", dtype=torch.uint8), torch.empty(bytes_of_set // 2, device="cuda", dtype=torch.uint8))
                      for _ in range(count)]
            copied = graph_of(lambda a, b: b.copy_(a), halves)
            row["copy_us"] = statistics.median(Rounds({"copy": copied}, count).microseconds()["copy"])
            del halves
        elif 2 * (m * k + n * k + m * n) < 20e9:
            of, documents = library.plans("gemm", product, 1)
            gemm = Kernel(library, of, documents[0])
            few = sets_for(2 * (m * k + n * k + m * n), 4)
            matrices = [tuple(torch.randn(*shape, device="cuda", dtype=dtype) for shape in ((m, k), (n, k))) for _ in range(few)]
            matrices = [(a, b.t(), torch.empty(m, n, device="cuda", dtype=dtype)) for a, b in matrices]
            row["product_us"] = statistics.median(Rounds({"product": graph_of(gemm.launch, matrices)}, few).microseconds()["product"])
            del matrices
        outermost = [(x.movedim(-1, 1).contiguous(), w.movedim(-1, 1).contiguous()) for x, w, _ in sets]
        call = graph_of(lambda x, w: TORCHS[axes](x, w, stride=stride, padding=padding, dilation=dilation, groups=groups), outermost)
        row["nchw_us"] = statistics.median(Rounds({"nchw": call}, count).microseconds()["nchw"])
    except Exception as error:  # what a library refuses, each in its own way
        missing.append((str(error) or repr(error)).splitlines()[0][:80])
    for name in times:
        row[name + "_us"] = statistics.median(times[name])
    row["cudnn_ratio"] = ratio(times["cudnn"], times["ours"])
    for other in ("product", "copy"):
        if f"{other}_us" in row:
            row[f"{other}_ratio"] = row[f"{other}_us"] / row["ours_us"]
    return row


def kind_of(row):
    if "copy_ratio" in row:
        return "direct"
    least = min(int(row["fields"]["channels"]), int(row["fields"]["filters"]))
    few = row["m"] <= 14 * 14 * int(row["fields"].get("batch", 1))
    return "few places" if few else "C or F <= 64" if least <= 64 else "C or F < 128" if least < 128 else "C, F >= 128"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--suite", default=SUITE)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="rooftile")
    parser.add_argument("--top", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--most-channels", type=int, default=1 << 31)
    parser.add_argument("--kernel")
    args = parser.parse_args()
    problems = (drawn(args.program, args.draw, args.seed) if args.draw else list(suite(args.suite)))[args.skip:]
    problems = [fields | ({"kernel": args.kernel} if args.kernel else {}) for fields in problems if int(fields["channels"]) <= args.most_channels]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        list(pool.map(compile_into_cache, *zip(*((args.library, fields, args.top) for fields in problems))))
    if args.prepare:
        return
    torch.backends.cudnn.benchmark = True
    library, rows, begin = Library(args.library), [], time.monotonic()
    print(where())
    for fields in problems:
        if time.monotonic() - begin > args.seconds:
            print(f"stopped after {len(rows)} of {len(problems)}")
            break
        try:
            row = measured(library, fields, args.top)
        except Exception as error:
            print(f"{fields}: {(str(error) or repr(error)).splitlines()[0][:150]}", flush=True)
            continue
        rows.append(row)
        if args.out:
            with open(args.out, "a") as file:
                file.write(json.dumps(row) + "\n")
        shape = " ".join(str(fields.get(key, "")) for key in ("batch", "channels", "depth", "height", "width", "filters", "kernel_size", "stride"))
        print(f"{shape:34} {row['ours_us']:8.2f} us ({row['predicted_us']:8.2f})  cudnn {row['cudnn_us']:8.2f} {row['cudnn_ratio']:.3f}  "
              f"{'copy' if 'copy_ratio' in row else 'product'} {row.get('copy_ratio', row.get('product_ratio', float('nan'))):.3f}  nchw {row.get('nchw_us', float('nan')):8.2f}  {row['tflops']:5.0f} TFLOP/s  off {row['difference']:.3g}", flush=True)
        torch.cuda.empty_cache()
    for kind in sorted({kind_of(row) for row in rows}):
        of = [row for row in rows if kind_of(row) == kind]
        print(f"{kind}: {len(of)} problems, cuDNN {mean([row['cudnn_ratio'] for row in of]):.3f}, least {min(row['cudnn_ratio'] for row in of):.3f}")
    if rows:
        print(f"all {len(rows)}: cuDNN {mean([row['cudnn_ratio'] for row in rows]):.3f}")
        print(prediction_text([(row["predicted_us"], row["ours_us"]) for row in rows]))


if __name__ == "__main__":
    main()
