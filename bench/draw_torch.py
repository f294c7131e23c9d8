#!/usr/bin/env python3
"""Drawn memory-bound problems: ours fused beside PyTorch eager, torch.compile in its default mode and with max-autotune.

usage: bench/draw_torch.py --rooftile build/rooftile --out FOLDER [--draw 100] [--seed S] [--max-seconds S]
       bench/draw_torch.py --pool FILE...

The problems are those of `rooftile sweep fuse --draw N --seed S`, whose own run verifies ours; here each is written as PyTorch from
its own text. Timing as in bench/compare_torch.py: CUDA graphs over sets of buffers that together are several times L2, in
blocks whose order changes from round to round. Theirs are compared with ours, not verified: a sample must agree, where no
dropout draws differently. Writes FOLDER/draw-SEED.json, prints the worst and the figures; --pool prints those of several runs.
"""
import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import compare_torch as base  # noqa: E402
from fuse_driver import TYPES, Driver, Kernel  # noqa: E402

base.BLOCK_SECONDS, base.SETTLE_SECONDS = 0.002, 0.1


def promoted(*tensors):
    """Of one type, as PyTorch's norms ask."""
    if len({t.dtype for t in tensors}) > 1:
        return [t.float() for t in tensors]
    return list(tensors)


def layernorm(x, gamma=None, beta=None, eps=1e-5):
    x, *weights = promoted(*[t for t in (x, gamma, beta) if t is not None])
    return F.layer_norm(x, (x.shape[-1],), *(weights + [None, None])[:2], eps)


def rmsnorm(x, gamma=None, eps=1e-6):
    x, *weights = promoted(*[t for t in (x, gamma) if t is not None])
    return F.rms_norm(x, (x.shape[-1],), *(weights + [None])[:1], eps)


FUNCTIONS = {
    "softmax": lambda x: F.softmax(x, -1), "log_softmax": lambda x: F.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1, keepdim=True),
    "layernorm": layernorm, "rmsnorm": rmsnorm,
    "sum": lambda x: x.sum(-1, keepdim=True), "mean": lambda x: x.mean(-1, keepdim=True),
    "max": lambda x: x.amax(-1, keepdim=True), "argmax": lambda x: x.argmax(-1, keepdim=True),
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "relu": F.relu,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "erf": torch.erf, "abs": torch.abs, "exp": torch.exp,
    "log": torch.log, "sqrt": torch.sqrt, "where": torch.where,
    "dropout": lambda x, p, seed=0, offset=0: F.dropout(x, p, training=True),
    "fp32": lambda x: x.float(), "bf16": lambda x: x.to(torch.bfloat16), "fp16": lambda x: x.half()}


def function_of(problem):
    """The problem's own text, as a function of its tensors in order."""
    p = problem["problem"]
    body = p["expression"].split("=", 1)[1].strip()
    names = ", ".join(t["name"] for t in p["tensors"])
    scope = dict(FUNCTIONS, result=TYPES[p["outputs"][0]["type"]])
    exec(f"def computed({names}):\n    return ({body}).to(result)\n", scope)
    return scope["computed"]


def warm(options):
    base.set_inductor()
    problems = json.load(open(os.path.join(options.out, "kernels.json")))["problems"]
    for problem in problems[options.warm[0]::options.warm[1]]:
        try:
            inputs, _ = base.tensors_of(problem, False)
            torch._dynamo.reset()
            with torch.no_grad():
                for way in base.COMPILE_MODES:
                    base.compiled_by(way, function_of(problem))(*inputs.values())
            torch.cuda.synchronize()
        except Exception as error:  # said by the process that times
            print(f"{problem['name']}: {error}", file=sys.stderr)
        inputs = None
        torch.cuda.empty_cache()


def agrees(ours, theirs):
    """Of a sample the share that is alike, to what 16 bits and another order of additions leave."""
    step = max(1, ours.numel() // 2 ** 20)
    a, b = ours.flatten()[::step].double(), theirs.flatten()[::step].double()
    near = (a - b).abs() <= 0.05 * b.abs() + 0.05 * b.abs().mean()
    return (near | (a.isnan() & b.isnan()) | (a == b)).double().mean().item()


def measure(problem, driver, options, sms, l2):
    reads, writes = base.set_bytes(problem)
    count = max(2, min(base.MOST_SETS, math.ceil(base.L2_FACTOR * l2 / reads)))
    sets = [base.tensors_of(problem) for _ in range(count)]
    output = problem["problem"]["outputs"][0]["name"]
    row = {"name": problem["name"], "problem": problem["problem"], "bytes": reads + writes, "absent": {},
           "kind": "along rows" if problem["fused"]["config"]["form"] == "row" else "point-wise",
           "predicted_us": problem["fused"]["predicted_time_us"], "config": problem["fused"]["config"]}
    eager = function_of(problem)
    fused = Kernel(driver, os.path.join(options.out, "kernels"), problem["fused"], sms)
    launches = {"fused": [lambda s=s: fused.launch({**s[0], **s[1]}) for s in sets],
                "eager": [lambda s=s: eager(*s[0].values()) for s in sets]}
    torch._dynamo.reset()
    for way in base.COMPILE_MODES:
        compiled = base.compiled_by(way, eager)
        launches[way] = [lambda s=s, c=compiled: c(*s[0].values()) for s in sets]
    launches["fused"][0]()
    competitors, row["agrees"] = [], {}
    for way, run in launches.items():
        try:
            if way != "fused" and "dropout" not in problem["problem"]["expression"]:
                row["agrees"][way] = agrees(sets[0][1][output], run[0]())
            competitors.append(base.Competitor(way, run))
        except Exception as error:
            if way == "fused":
                raise
            row["absent"][way] = str(error).split("\n")[0][:200]
    timed = base.time_all(competitors, options.rounds, options.seed)
    row["time_us"] = {way: statistics.median(c.times) for way, c in timed.items()}
    row["ratio"] = {way: statistics.median(a / b for a, b in zip(c.times, timed["fused"].times))
                    for way, c in timed.items() if way != "fused"}
    row["best"], row["times"] = min(row["ratio"].items(), key=lambda item: item[1])
    return row


def told(rows):
    good = [r for r in rows if "times" in r]
    def line(name, part):
        if not part:
            return
        ratios = sorted(r["times"] for r in part)
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        below = [sum(x < limit for x in ratios) / len(ratios) for limit in (0.95, 0.8)]
        print(f"{name:<12} {len(part):>4} problems  {mean:6.3f} x the best of PyTorch, least {ratios[0]:.3f}, "
              f"below 0.95: {100 * below[0]:.1f} %, below 0.80: {100 * below[1]:.1f} %")
    for way in ("eager", *base.COMPILE_MODES):
        known = [r["ratio"][way] for r in good if way in r["ratio"]]
        if known:
            print(f"{way}: {math.exp(statistics.mean(map(math.log, known))):.3f} on {len(known)}")
    for r in sorted(good, key=lambda r: r["times"])[:12]:
        print(f"  {r['times']:.3f}  {r['time_us']['fused']:8.1f} us, {r['best']} {r['time_us'][r['best']]:8.1f}  "
              f"{r['problem']['expression'][:70]}  {r['problem']['tensors'][0]['type']}{r['problem']['tensors'][0]['shape']}  "
              f"{r['config']['row_storage']}")
    unlike = [r["name"] for r in good if any(v < 0.98 for v in r["agrees"].values())]
    print(f"unlike theirs: {', '.join(unlike) or 'none'}; not run: "
          + (", ".join(f"{r['name']} ({r['error'][:80]})" for r in rows if 'error' in r) or "none"))
    line("all", good)
    for kind in ("along rows", "point-wise"):
        line(kind, [r for r in good if r["kind"] == kind])


def main():
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rooftile")
    parser.add_argument("--out")
    parser.add_argument("--draw", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--max-seconds", type=float, default=0, help="stop in order before; 0: never")
    parser.add_argument("--pool", nargs="+")
    parser.add_argument("--warm", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pool:
        told([r for file in options.pool for r in json.load(open(file))["rows"]])
        return 0
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(options.out, "inductor"))
    if options.warm:
        warm(options)
        return 0
    suite, kernels = os.path.join(options.out, "draw.toml"), os.path.join(options.out, "kernels.json")
    subprocess.run([options.rooftile, "sweep", "fuse", "--draw", str(options.draw), "--seed", str(options.seed),
                    "--save", suite], check=True)
    subprocess.run([options.rooftile, "build", "suite", suite, "--into", os.path.join(options.out, "kernels"),
                    "--out", kernels], check=True)
    document = json.load(open(kernels))
    built = time.monotonic()
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")
    for process in [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--out", options.out, "--warm", str(i),
                                      str(options.jobs)], env=environment) for i in range(options.jobs)]:
        process.communicate()
    warmed = time.monotonic()
    base.say(f"built in {built - start:.0f} s, torch.compile beforehand in {warmed - built:.0f} s")
    base.set_inductor()
    torch.manual_seed(options.seed)
    device = torch.cuda.get_device_properties(0)
    torch.empty(1, device="cuda")
    driver, rows, longest = Driver(), [], 0
    for problem in document["problems"]:
        if options.max_seconds and time.monotonic() - start + longest > options.max_seconds:
            break
        began = time.monotonic()
        try:
            with torch.no_grad():
                rows.append(measure(problem, driver, options, device.multi_processor_count, device.L2_cache_size))
        except Exception as error:
            rows.append({"name": problem["name"], "error": str(error).split("\n")[0][:300]})
        gc.collect()
        torch.cuda.empty_cache()
        longest = max(longest, time.monotonic() - began)
    with open(os.path.join(options.out, f"draw-{options.seed}.json"), "w") as file:
        json.dump({"command": " ".join(sys.argv), "gpu": device.name, "torch": torch.__version__, "context": document["context"],
                   "rounds": options.rounds, "rows": rows}, file)
    told(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
