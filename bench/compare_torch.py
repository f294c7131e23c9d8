#!/usr/bin/env python3
"""Memory-bound kernels six ways in one run: our operators one by one, ours fused, PyTorch eager, torch.compile in its
default mode and with max-autotune, and hand-written Triton kernels, each as a share of the bandwidth of a copy.

usage: bench/compare_torch.py --rooftile build/rooftile --out FOLDER [--filter TEXT] [--require]

Needs one NVIDIA GPU, PyTorch 2.11 or so, and a `rooftile` for that GPU; Triton is used where it is installed.
Everything of one problem is launched from CUDA graphs over sets of buffers that together are several times
L2, in blocks whose order changes from round to round: no host time is measured for anyone, and nothing finds
its input in L2 but what it left there itself. torch.compile has static shapes; what it
autotunes, it times itself, alone on the GPU.
Writes FOLDER/comparison.json and comparison.svg; prints one table. Exit codes as `rooftile`: 3 a result of
ours is wrong, 4 no GPU or no PyTorch, 6 a problem could not be run, 8 a bar is missed under --require.
"""
import argparse
import gc
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from fuse_chart import THEIRS, WAYS, figures, svg, table, told  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
L2_FACTOR = 4            # the inputs of all sets together are this many L2: what is read may go last there
BLOCK_SECONDS = 0.004    # of one competitor in one round
SETTLE_SECONDS = 0.3     # load before the first round of a problem
MOST_SETS = 64

try:
    import torch
    import torch.nn.functional as F
    from fuse_driver import TYPES, Chain, Copies, Driver, Kernel
except ImportError as error:
    torch = None
    TORCH_MISSING = str(error)
try:
    import triton
    from triton_kernels import launch_for
except ImportError as error:
    triton = None
    TRITON_MISSING = str(error)


def say(text):
    print(f"compare_torch: {text}", file=sys.stderr, flush=True)


# ---- what is computed: the groups of bench/suites/memory.toml as one writes them with PyTorch

def layernorm_chain(x, residual, gamma, beta):
    y = F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5) + residual
    return F.gelu(F.dropout(y, 0.1, training=True))


FUNCTIONS = {
    "softmax": lambda x: F.softmax(x, -1),
    "layernorm": lambda x, gamma, beta: F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5),
    "rmsnorm": lambda x, gamma: F.rms_norm(x, (x.shape[-1],), gamma, 1e-6),
    "layernorm_chain": layernorm_chain,
    "sum": lambda x: x.sum(-1, keepdim=True),
    "max": lambda x: x.amax(-1, keepdim=True),
    "gelu": lambda x: F.gelu(x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "bias_gelu": lambda x, bias: F.gelu(x + bias),
    "chain_of_ten": lambda x, a, b:
        torch.abs(torch.tanh(torch.sigmoid((x + a) * 0.5) - b) * x + 1.0) * 0.25 - a,
}


COMPILE_MODES = {"compile": "default", "max_autotune": "max-autotune-no-cudagraphs"}  # graphs are made here


def compiled_by(way, function):
    return torch.compile(function, dynamic=False, mode=COMPILE_MODES[way])


def before_dropout(x, residual, gamma, beta):
    return F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5) + residual


# ---- tensors of one problem

def tensors_of(problem, random_values=True):
    make = torch.randn if random_values else torch.empty
    inputs = {t["name"]: make(t["shape"], dtype=TYPES[t["type"]], device="cuda")
              for t in problem["problem"]["tensors"]}
    outputs = {t["name"]: torch.full(t["shape"], math.nan, dtype=TYPES[t["type"]], device="cuda")
               for t in problem["problem"]["outputs"]}
    return inputs, outputs


def set_bytes(problem):
    p = problem["problem"]
    return (sum(t["bytes"] for t in p["tensors"]), sum(t["bytes"] for t in p["outputs"]))


# ---- is it right?

def stated_error(group, exact, wanted):
    """What kernels/expression/math.cuh states of the functions that it makes only as exact as bf16 asks: a rounding
    alone already takes the whole `unit` where the significand is 1."""
    x = exact[0]
    argument = {"gelu": lambda: x, "bias_gelu": lambda: x + exact[1],
                "layernorm_chain": lambda: before_dropout(*exact) / 0.9}.get(group)
    if argument:
        return (32 + argument().square()) * 1.1e-5 * wanted.abs()
    if group == "chain_of_ten":  # tanh, times x / 4
        return 2.0 ** -11 * x.abs() / 4
    return torch.zeros_like(wanted)


def check(group, inputs, got, steps):
    """Error as a share of its bound over a sample of rows, against fp64; above 1 it is wrong. `steps`: how
    often a result was rounded to the tensors' type on the way."""
    x = inputs["x"]
    rows = max(1, min(x.shape[0], 2 ** 21 // x.shape[1]))
    sample = torch.randperm(x.shape[0], device="cuda")[:rows]
    exact = [(t[sample] if t.dim() == 2 else t).double() for t in inputs.values()]
    got = got[sample].double()
    narrow = x.dtype != torch.float32
    unit = 2.0 ** -8 if narrow else 2.0 ** -20  # an ulp of bf16; fp32: some for the functions' own errors
    if not torch.isfinite(got).all():
        return math.inf, "not finite"
    if group == "layernorm_chain":
        before = before_dropout(*exact)
        kept, dropped = F.gelu(before / 0.9), torch.zeros_like(before)
        share = (got == 0).double().mean().item()
        error = torch.minimum((got - kept).abs(), (got - dropped).abs())
        wanted, spread = kept, 5 * math.sqrt(0.09 / got.numel()) + 2e-4
        if abs(share - 0.1) > spread + (got == 0).logical_and(kept.abs() < 1e-6).double().mean().item():
            return math.inf, f"dropout rate {share:.4f}"
    else:
        wanted = FUNCTIONS[group](*exact)
        error = (got - wanted).abs()
    # fp32 inside, where sums of some units cancel; a softmax has none. A step that is stored in between
    # rounds numbers of up to 8 or so.
    floor = (2e-5 if group != "softmax" else 1e-9) + (steps - 1) * unit / 2 * 8
    bound = steps * unit * wanted.abs() + floor
    if x.dtype == torch.bfloat16:
        bound = bound + stated_error(group, exact, wanted)
    if group == "sum":
        bound = bound + 2e-7 * exact[0].abs().sum(-1, keepdim=True)
    return (error / bound).max().item(), ""


# ---- timing

class Competitor:
    """Something captured as a graph over all sets."""

    def __init__(self, name, launches, keep=None):
        self.name, self.sets, self.keep, self.times = name, len(launches), [], []
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                launches[0]()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            # Results stay alive, so that every launch writes a buffer of its own as ours do.
            self.keep = [launch() for launch in launches]
        torch.cuda.synchronize()
        self.us = self.block(1)
        self.replays = max(1, round(BLOCK_SECONDS * 1e6 / (self.us * self.sets)))

    def block(self, replays):
        """Microseconds of one launch."""
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(replays):
            self.graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3 / (replays * self.sets)


def time_all(competitors, rounds, seed):
    order = random.Random(seed)
    end = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end:
        for c in competitors:
            c.block(c.replays)
    for _ in range(rounds):
        for c in order.sample(competitors, len(competitors)):
            c.graph.replay()  # untimed: what the one before left in L2 goes
            c.times.append(c.block(c.replays))
    return {c.name: c for c in competitors}


def checked(group, tensors, launch, output, steps):
    inputs, outputs = tensors
    for t in outputs.values():
        t.fill_(math.nan)  # what is not written shows
    result = launch()
    torch.cuda.synchronize()
    got = result if torch.is_tensor(result) else outputs[output]
    share, note = check(group, inputs, got, steps)
    return {"error_of_bound": share if math.isfinite(share) else None, "note": note, "right": share <= 1}


def measure(problem, context, options):
    """One problem's row."""
    driver, folder, sms, l2 = context["driver"], context["folder"], context["sms"], context["l2"]
    group, name = problem["group"], problem["name"]
    reads, writes = set_bytes(problem)
    count = max(2, min(MOST_SETS, math.ceil(L2_FACTOR * l2 / reads)))
    sets = [tensors_of(problem) for _ in range(count)]
    output = problem["problem"]["outputs"][0]["name"]
    shape = problem["problem"]["tensors"][0]["shape"]
    row = {"name": name, "group": group, "bytes": reads + writes, "sets": count,
           "predicted_time_us": problem["fused"]["predicted_time_us"], "absent": {}, "checks": {},
           "time_us": {}}
    fused = Kernel(driver, folder, problem["fused"], sms)
    chain = Chain(driver, folder, problem, sms)
    eager = FUNCTIONS[group]
    launches = {
        "fused": [lambda s=s: fused.launch({**s[0], **s[1]}) for s in sets],
        "unfused": [lambda s=s: chain.launch({**s[0], **s[1]}) for s in sets],
        "eager": [lambda s=s: eager(*s[0].values()) for s in sets],
    }
    torch._dynamo.reset()
    for way in COMPILE_MODES:
        compiled = compiled_by(way, eager)
        launches[way] = [lambda s=s, c=compiled: c(*s[0].values()) for s in sets]
    if triton:
        by_hand = launch_for(group, *shape)
        launches["triton"] = [lambda s=s: by_hand(list(s[0].values()), s[1][output]) for s in sets]
    else:
        row["absent"]["triton"] = "Triton is not installed"
    half = (reads + writes) // 2 // 16 * 16
    buffers = [(torch.randint(0, 255, (half,), dtype=torch.uint8, device="cuda"),
                torch.empty(half, dtype=torch.uint8, device="cuda")) for _ in range(count)]
    copies = context["copies"]
    if writes * 8 < reads:
        word = torch.empty(4, dtype=torch.int32, device="cuda")
        row["roof"] = "read"
        forms = {name: [lambda s=s, f=form: copies.read(f, s[0]["x"], word) for s in sets]
                 for name, form in copies.forms["read"].items()}
    else:
        row["roof"] = "copy"
        forms = {name: [lambda b=b, f=form: copies.copy(f, b[1], b[0]) for b in buffers]
                 for name, form in copies.forms["copy"].items()}
        forms["memcpy"] = [lambda b=b: copies.memcpy(b[1], b[0]) for b in buffers]
        forms["torch_copy"] = [lambda b=b: b[1].copy_(b[0]) for b in buffers]
    launches.update(forms)
    # An operator of PyTorch may take two steps.
    steps = {"unfused": len(chain.steps), "eager": len(chain.steps) + 1}
    competitors = []
    for way, run in launches.items():
        try:
            if way in WAYS:
                row["checks"][way] = checked(group, sets[0], run[0], output, steps.get(way, 1))
            competitors.append(Competitor(way, run))
        except Exception as error:  # a baseline that cannot run is left out, and said
            if way in ("fused", "unfused"):
                raise
            row["absent"][way] = str(error).split("\n")[0][:160]
            try:
                torch.cuda.synchronize()
            except Exception as lost:  # nothing can be run in this process any more
                raise RuntimeError(f"{way}: {lost}") from error
    timed = time_all(competitors, options.rounds, options.seed)
    for way, c in timed.items():
        row["time_us"][way] = statistics.median(c.times)
    known = [row["time_us"][r] for r in forms if r in row["time_us"]]
    row["roof_us"] = min(known) if known else None
    row["share_of_roof"] = {w: row["roof_us"] / row["time_us"][w] for w in WAYS if w in row["time_us"]}
    # Of theirs only what is right counts; the ratios are of blocks of one round.
    row["times_of"] = {way: statistics.median(a / b for a, b in zip(timed[way].times, timed["fused"].times))
                       for way in THEIRS if way in timed and row["checks"][way]["right"]}
    if row["times_of"]:
        row["best"], row["times_of"]["best"] = min(row["times_of"].items(), key=lambda item: item[1])
    return row


# ---- torch.compile beforehand, in processes side by side; they fill the caches that this one reads

def set_inductor():
    import torch._inductor.config as config
    if hasattr(config, "autotune_local_cache"):
        config.autotune_local_cache = False  # choices are timed by the one process that has the GPU to itself


def warm(options):
    """The part of one helper process."""
    set_inductor()
    problems = json.load(open(os.path.join(options.out, "kernels.json")))["problems"]
    for problem in problems[options.warm[0]::options.warm[1]]:
        inputs, _ = tensors_of(problem, False)
        torch._dynamo.reset()
        with torch.no_grad():
            for way in COMPILE_MODES:
                compiled_by(way, FUNCTIONS[problem["group"]])(*inputs.values())
        torch.cuda.synchronize()
        del inputs
        torch.cuda.empty_cache()


def warm_all(options, count):
    jobs = max(1, min(options.jobs, count))
    command = [sys.executable, os.path.abspath(__file__), "--rooftile", options.rooftile, "--out",
               options.out]
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")  # the helpers are the threads
    running = [subprocess.Popen(command + ["--warm", str(i), str(jobs)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, env=environment) for i in range(jobs)]
    for process in running:
        _, errors = process.communicate()
        if process.returncode != 0:
            say(f"a helper that compiles beforehand failed; compiled here instead: {errors.strip()[-200:]}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rooftile", required=True, help="the program")
    parser.add_argument("--out", required=True, help="folder for kernels, JSON and chart")
    parser.add_argument("--suite", default=os.path.join(HERE, "suites", "memory.toml"))
    parser.add_argument("--filter", default="", help='problems whose "group ROWSxCOLUMNS type" holds this')
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1), help="helpers that compile")
    parser.add_argument("--max-seconds", type=float, default=0, help="stop in order before; 0: never")
    parser.add_argument("--require", action="store_true", help="exit code 8 where a bar is missed")
    parser.add_argument("--warm", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    return options


def build(options):
    command = [options.rooftile, "build", "suite", options.suite, "--into",
               os.path.join(options.out, "kernels"), "--out", os.path.join(options.out, "kernels.json")]
    if options.filter:
        command += ["--filter", options.filter]
    code = subprocess.run(command).returncode
    if code != 0:
        sys.exit(code)
    with open(os.path.join(options.out, "kernels.json")) as file:
        return json.load(file)


def main():
    start = time.monotonic()
    options = arguments()
    if torch is None or not torch.cuda.is_available():
        say("PyTorch is missing (" + TORCH_MISSING + ")" if torch is None else "PyTorch sees no GPU")
        say("without it, `rooftile measure fuse --suite bench/suites/memory.toml` times all that is ours")
        return 4
    os.makedirs(options.out, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(options.out, "inductor"))
    if options.warm:
        return warm(options) or 0
    if not triton:
        say(f"Triton is missing ({TRITON_MISSING}): no column for it, nor for torch.compile, which needs it")
    document = build(options)
    built = time.monotonic()
    problems = [p for p in document["problems"] if p["group"] in FUNCTIONS]
    for p in document["problems"]:
        if p["group"] not in FUNCTIONS:
            say(f"{p['name']}: not written with PyTorch here, left out")
    if triton:
        warm_all(options, len(problems))
    warmed = time.monotonic()
    say(f"built in {built - start:.0f} s, torch.compile beforehand in {warmed - built:.0f} s")
    set_inductor()
    torch.manual_seed(options.seed)
    device = torch.cuda.get_device_properties(0)
    torch.empty(1, device="cuda")
    driver = Driver()
    folder = os.path.join(options.out, "kernels")
    context = {"driver": driver, "folder": folder, "sms": device.multi_processor_count,
               "l2": device.L2_cache_size,
               "copies": Copies(driver, folder, document["roofs"])}
    rows, longest = [], 0
    for i, problem in enumerate(problems):
        if options.max_seconds and time.monotonic() - start + longest > options.max_seconds:
            say(f"stopped before {options.max_seconds:.0f} s: {len(problems) - i} problems are left out: "
                + ", ".join(p["name"] for p in problems[i:]))
            break
        began = time.monotonic()
        try:
            with torch.no_grad():
                rows.append(measure(problem, context, options))
        except Exception as error:
            rows.append({"name": problem["name"], "error": str(error).split("\n")[0][:300]})
            say(f"{problem['name']}: {rows[-1]['error']}")
        gc.collect()
        torch.cuda.empty_cache()
        longest = max(longest, time.monotonic() - began)
    total = figures(rows)
    result = {"schema": "rooftile/comparison/1", "command": " ".join(sys.argv), "gpu": device.name,
              "torch": torch.__version__, "triton": triton.__version__ if triton else None,
              "torch_compile_modes": COMPILE_MODES, "rooftile": document["context"],
              "seconds": time.monotonic() - start, "rounds": options.rounds, "times_of": total,
              "rows": rows}
    with open(os.path.join(options.out, "comparison.json"), "w") as file:
        json.dump(result, file, indent=1)
    with open(os.path.join(options.out, "comparison.svg"), "w") as file:
        file.write(svg(rows, f"{device.name}: memory-bound kernels six ways"))
    lines, missed = told(rows, total, result)
    print(table(rows))
    print("\n".join(lines))
    ours = [r["checks"][way]["right"] for r in rows if "error" not in r for way in ("fused", "unfused")]
    if not all(ours):
        return 3
    if any("error" in r for r in rows):
        return 6
    return 8 if options.require and (missed or len(rows) < len(problems)) else 0


if __name__ == "__main__":
    sys.exit(main())
