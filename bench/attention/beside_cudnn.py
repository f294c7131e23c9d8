#!/usr/bin/env python3
"""Attention beside PyTorch's cuDNN and FlashAttention back ends, in one run, in CUDA graphs.

usage: bench/attention/beside_cudnn.py LIBRARY [--suite FILE.toml] [--draw N --seed S --program ROOFTILE] [--filter TEXT]
       [--others cudnn,flash,graph] [--top N] [--packed] [--skip N] [--seconds S] [--engine-seconds S] [--out FILE.jsonl] [--prepare]

LIBRARY is librooftile.so. Without --suite or --draw: 16,384 tokens in sequences of 1,024, 4,096 and 16,384, dim 64, 128 and 256,
heads of their own and eight sharing keys, full and causal. --draw takes the problems of `ROOFTILE sweep attention --draw N --seed S`.
Needs one GPU of sm_90 and PyTorch 2.9 or later; `graph` is cuDNN's graph API, the fastest of the engines that it offers, and needs
nvidia-cudnn-frontend: windows have no other competitor. Kernels are compiled beforehand, in as many processes as there are
processors; --prepare does that alone. Tensors lie as [batch, heads, rows, dim]; a set of them is taken after the other, together several L2; competitors
alternate in blocks of some milliseconds, all from CUDA graphs. A ratio is the other's time over ours in the same round, median of
the rounds. --top N times plans 1 to N: what plan 1 loses to the fastest of them is told by rounds of those two alone. --packed: batches of unlike lengths, packed and padded to the longest. Results are compared with the others' (fp64 at every element: `rooftile measure attention`). One line a problem, then
geometric means; `best` is the faster of cuDNN's two.
"""
import argparse
import concurrent.futures
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from beside import Kernel, Library, Rounds, graph_of, mean, prediction_text, ratio, seconds, sets_for, where  # noqa: E402

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
OTHERS = ("cudnn", "flash", "graph")
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def compile_into_cache(path, fields, top):
    library = Library(path)
    plans, documents = library.plans("attention", fields, top)
    for rank in range(1, len(documents) + 1):
        try:
            library.compiled(plans, rank)
        except RuntimeError as error:
            print(f"plan {rank} of {fields}: {str(error).splitlines()[0]}", flush=True)


class CudnnGraph:
    """cuDNN's graph API on one set of tensors' shapes: the fastest of its engines, or of those built in `seconds_at_most`."""

    def __init__(self, mask, sets, seconds_at_most):
        import cudnn
        q, k, v, o = sets[0]
        kind = {torch.bfloat16: cudnn.data_type.BFLOAT16, torch.float16: cudnn.data_type.HALF}[q.dtype]
        self.cudnn, self.handle = cudnn, cudnn.create_handle()
        self.graph = cudnn.pygraph(io_data_type=kind, intermediate_data_type=cudnn.data_type.FLOAT,
                                   compute_data_type=cudnn.data_type.FLOAT, handle=self.handle)
        self.tensors = [self.graph.tensor(name=name, dim=list(t.size()), stride=list(t.stride()), data_type=kind)
                        for name, t in zip("qkv", (q, k, v))]
        bounds = {} if mask == "none" else {"diagonal_alignment": cudnn.diagonal_alignment.BOTTOM_RIGHT if q.size(2) != k.size(2)
                                            else cudnn.diagonal_alignment.TOP_LEFT, "diagonal_band_right_bound": 0}
        if mask.startswith("window:"):
            bounds["diagonal_band_left_bound"] = int(mask.split(":")[1])
        out, _ = self.graph.sdpa(name="sdpa", q=self.tensors[0], k=self.tensors[1], v=self.tensors[2],
                                 attn_scale=q.size(3) ** -0.5, generate_stats=False, **bounds)
        out.set_output(True).set_dim(list(o.size())).set_stride(list(o.stride()))
        self.tensors.append(out)
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([cudnn.heur_mode.A])
        self.graph.check_support()
        begin, best, self.engines = time.monotonic(), math.inf, 0
        for i in range(self.graph.get_execution_plan_count()):
            if self.engines and time.monotonic() - begin > seconds_at_most:
                break
            try:
                self.graph.build_plan_at_index(i)
                size = self.graph.get_workspace_size_plan_at_index(i)
                workspace = torch.empty(max(16, size), dtype=torch.uint8, device="cuda")
                took = seconds(graph_of(lambda *tensors: self.launch(i, workspace, *tensors), sets[:1]), 5)
            except Exception:  # an engine that refuses, each version in its own way
                continue
            self.engines += 1
            if took < best:
                best, self.index, self.workspace = took, i, workspace
        if not self.engines:
            raise RuntimeError("cuDNN's graph API has no engine")

    def launch(self, index, workspace, *tensors):
        self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        self.graph.execute_plan_at_index(dict(zip(self.tensors, tensors)), workspace, index, handle=self.handle)

    def __call__(self, *tensors):
        self.launch(self.index, self.workspace, *tensors)


def drawn(program, count, seed):
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        subprocess.run([program, "sweep", "attention", "--draw", str(count), "--seed", str(seed), "--save", file.name, "--plan-only",
                        "--machine", "h200-sxm"], check=True, stdout=subprocess.DEVNULL)
        return list(suite(file.name))


def grid():
    for dim in (64, 128, 256):
        for group in (1, 8):
            for mask in ("none", "causal"):
                for q in (1024, 4096, 16384):
                    heads = 2048 // dim
                    yield {"batch": 16384 // q, "heads": heads, "kv_heads": max(1, heads // group), "q": q, "dim": dim, "mask": mask}


def suite(path):
    import tomllib
    with open(path, "rb") as file:
        for row in tomllib.load(file)["problem"]:
            fields = {key: value for key, value in row.items() if key not in ("name", "model", "layer", "layers", "rounds")}
            yield {key: int(value) if str(value).isdigit() else value for key, value in fields.items()}


def measured(library, fields, others, top, engine_seconds):
    batch, heads, q, dim = (int(fields[key]) for key in ("batch", "heads", "q", "dim"))
    kv_heads, kv = int(fields.get("kv_heads", heads)), int(fields.get("kv", q))
    mask, dtype = fields.get("mask", "none"), TYPES[fields.get("type", "bf16")]
    plans, documents = library.plans("attention", fields, top)
    kernels = [Kernel(library, plans, document) for document in documents]
    kernel = kernels[0]
    bytes_of_set = 2 * batch * dim * (2 * heads * q + 2 * kv_heads * kv)
    count = sets_for(bytes_of_set)
    sets = []
    for _ in range(count):
        tensors = [torch.randn(batch, h, rows, dim, device="cuda", dtype=dtype) for h, rows in ((heads, q), (kv_heads, kv), (kv_heads, kv))]
        sets.append((*tensors, torch.empty(batch, heads, q, dim, device="cuda", dtype=dtype)))

    def launch_of(own):
        return lambda q_, k, v, o: own.launch(q_, k, v, o)

    ours = launch_of(kernel)

    def theirs(backend):
        def run(q_, k, v, _):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q_, k, v, is_causal=mask == "causal", enable_gqa=kv_heads < heads)
        return run

    functions, missing, results = {"ours": ours}, [], {}
    for name in others:
        try:
            if name == "graph":
                functions[name] = CudnnGraph(mask, sets, engine_seconds)
                functions[name](*sets[0])
                results[name] = sets[0][3].clone()
            elif mask == "none" or mask == "causal" and q == kv:
                results[name] = theirs(BACKENDS[name])(*sets[0])
                functions[name] = theirs(BACKENDS[name])
        except Exception as error:
            functions.pop(name, None)
            missing.append(f"{name}: {(str(error) or repr(error)).splitlines()[0][:80]}")
    ours(*sets[0])
    worst = max((apart(result, sets[0][3]) for result in results.values()), default=0.0)
    results.clear()
    for i, own in enumerate(kernels[1:], 2):
        functions[f"plan{i}"] = launch_of(own)
    graphs = {name: graph_of(function, sets) for name, function in functions.items()}
    rounds = Rounds(graphs, count)
    times = rounds.microseconds()
    window = int(mask.split(":")[1]) if mask.startswith("window:") else kv
    short = max(0, window - (kv - q)) - 1  # the first queries see fewer keys, one more each
    pairs = batch * heads * (q * kv if mask == "none" else q * window - short * (short + 1) / 2)
    row = {"fields": fields, "config": kernel.config, "predicted_us": kernel.predicted_us, "difference": worst, "missing": missing,
           "tflops": 4 * pairs * dim / statistics.median(times["ours"]) / 1e6}
    if len(kernels) > 1:
        own = ["ours"] + [f"plan{i}" for i in range(2, len(kernels) + 1)]
        row["plans"] = [{"config": k.config, "predicted_us": k.predicted_us, "us": statistics.median(times.pop(name) if name != "ours" else times[name])}
                        for k, name in zip(kernels, own)]
        fastest = min(range(len(own)), key=lambda i: row["plans"][i]["us"])
        again = rounds.microseconds(["ours", own[fastest]]) if fastest else {}
        row["behind_best"] = ratio(again["ours"], again[own[fastest]]) if fastest else 1.0
    for name in times:
        row[name + "_us"] = statistics.median(times[name])
        if name != "ours":
            row[name + "_ratio"] = ratio(times[name], times["ours"])
    return row


def padded_of(fields):
    """The same sequences, each as long as the longest."""
    lengths = [int(n) for n in fields["lengths"].split(",")]
    return {**{k: v for k, v in fields.items() if k != "lengths"}, "batch": len(lengths), "q": max(lengths)}


def measured_packed(library, fields):
    """Packed sequences beside the same ones padded to the longest: ours, and cuDNN's through PyTorch."""
    heads, dim, lengths = int(fields["heads"]), int(fields["dim"]), [int(n) for n in fields["lengths"].split(",")]
    kv_heads, mask, dtype = int(fields.get("kv_heads", heads)), fields.get("mask", "none"), TYPES[fields.get("type", "bf16")]
    longest, rows = max(lengths), sum(lengths)
    kernels = {}
    for name, of in (("ours", fields), ("padded", padded_of(fields))):
        plans, documents = library.plans("attention", of)
        kernels[name] = Kernel(library, plans, documents[0])
    cu = torch.tensor([0] + [sum(lengths[:i + 1]) for i in range(len(lengths))], dtype=torch.int32, device="cuda")

    def tensors(batch, count):
        return [torch.randn(batch, h, count, dim, device="cuda", dtype=dtype) for h in (heads, kv_heads, kv_heads)]

    sets = sets_for(2 * rows * dim * 2 * (heads + kv_heads), 8)
    packed = [(*tensors(1, rows), cu, torch.empty(1, heads, rows, dim, device="cuda", dtype=dtype)) for _ in range(sets)]
    padded = [(*tensors(len(lengths), longest), torch.empty(len(lengths), heads, longest, dim, device="cuda", dtype=dtype)) for _ in range(sets)]

    def cudnn(q, k, v, _):
        with sdpa_kernel(BACKENDS["cudnn"]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal", enable_gqa=kv_heads < heads)

    graphs = {"ours": graph_of(kernels["ours"].launch, packed), "padded": graph_of(kernels["padded"].launch, padded),
              "cudnn": graph_of(cudnn, padded)}
    # The first sequence with rows, against cuDNN on it alone.
    at = next(i for i, n in enumerate(lengths) if n > 0)
    begin, end = sum(lengths[:at]), sum(lengths[:at + 1])
    worst = apart(cudnn(*(t[:, :, begin:end].contiguous() for t in packed[0][:3]), None), packed[0][4][:, :, begin:end])
    times = Rounds(graphs, sets).microseconds()
    pairs = heads * sum(n * n if mask == "none" else n * (n + 1) / 2 for n in lengths)
    row = {"fields": fields, "config": kernels["ours"].config, "predicted_us": kernels["ours"].predicted_us, "difference": worst, "missing": [],
           "tflops": 4 * pairs * dim / statistics.median(times["ours"]) / 1e6, "filled": rows / (longest * len(lengths))}
    for name in times:
        row[name + "_us"] = statistics.median(times[name])
        if name != "ours":
            row[name + "_ratio"] = ratio(times[name], times["ours"])
    return row


def packed_problems():
    """Lengths between a sixteenth of the longest and it, each as likely; one is the longest, one 0."""
    import random
    chance = random.Random(1)
    for longest, batch, heads, kv_heads, dim in ((2048, 16, 16, 16, 128), (1024, 64, 32, 4, 64), (4096, 12, 16, 2, 128), (8192, 6, 8, 8, 256), (512, 128, 16, 4, 96)):
        for mask in ("none", "causal"):
            lengths = [chance.randint(longest // 16, longest) for _ in range(batch)]
            lengths[0], lengths[1] = longest, 0
            yield {"lengths": ",".join(map(str, lengths)), "heads": heads, "kv_heads": kv_heads, "dim": dim, "mask": mask}


def apart(a, b):
    """The largest difference, head by head: the whole in fp32 may be more than is left."""
    return max((x.float() - y.float()).abs().max().item() for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--suite")
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="rooftile")
    parser.add_argument("--others", default="cudnn,flash")
    parser.add_argument("--top", type=int, default=1)
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--engine-seconds", type=float, default=2.0)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    library, rows, begin = Library(given.library), [], time.monotonic()
    out = open(given.out, "w") if given.out else None
    problems = packed_problems() if given.packed else drawn(given.program, given.draw, given.seed) if given.draw else suite(given.suite) if given.suite else grid()
    named = {" ".join(f"{key}={str(value)[:40]}" for key, value in fields.items()): fields for fields in problems}
    named = dict([(name, fields) for name, fields in named.items() if given.filter in name][given.skip:])
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        wanted = [*named.values(), *(padded_of(fields) for fields in named.values() if given.packed)]
        compiling = [pool.submit(compile_into_cache, given.library, fields, given.top) for fields in wanted]
        for one in compiling:
            one.result()
    if given.prepare:
        return 0
    torch.manual_seed(1)
    for name, fields in named.items():
        if time.monotonic() - begin > given.seconds:
            print("stopped: no time left")
            break
        try:
            row = (measured_packed(library, fields) if given.packed
                   else measured(library, fields, [name for name in given.others.split(",") if name], given.top,
                                    given.engine_seconds))
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(f"{name}: {str(error).splitlines()[0][:100]}", flush=True)
            torch.cuda.empty_cache()
            continue
        rows.append(row)
        if out:
            print(json.dumps(row), file=out, flush=True)
        c = row["config"]
        print(f"{name}: {c['tile_q']}x{c['tile_kv']}/{c['stages']} {row['ours_us']:.1f} us ({row['predicted_us']:.1f}), {row['tflops']:.0f} TFLOP/s"
              + "".join(f", {other} {row[other + '_us']:.1f} = {row[other + '_ratio']:.3f}" for other in (*OTHERS, "padded") if other + "_us" in row)
              + (f", plan 1 {row['behind_best']:.3f} of the fastest" if "behind_best" in row else "")
              + f", apart {row['difference']:.2g}" + "".join(f", {m}" for m in row["missing"]), flush=True)
    print(where())
    for row in rows:
        if "graph_ratio" in row:
            row["best_ratio"] = min(row["graph_ratio"], row.get("cudnn_ratio", math.inf))
    for other in (*OTHERS, "best", "padded"):
        ratios = [row[other + "_ratio"] for row in rows if other + "_ratio" in row]
        if ratios:
            print(f"{other}: {len(ratios)} problems, geometric mean {mean(ratios):.3f}, least {min(ratios):.3f}, "
                  f"below 0.90 {100 * sum(r < 0.9 for r in ratios) / len(ratios):.0f} %, below 0.70 {sum(r < 0.7 for r in ratios)}")
    behind = [row["behind_best"] for row in rows if "behind_best" in row]
    if behind:
        print(f"plan 1 of the fastest of {given.top}: {mean(behind):.4f}, within 3 % on {100 * sum(b <= 1.03 for b in behind) / len(behind):.0f} %, worst {max(behind):.3f}")
    if told := prediction_text((row["predicted_us"], row["ours_us"]) for row in rows):
        print(told)
    return 0 if rows else 8


if __name__ == "__main__":
    sys.exit(main())
