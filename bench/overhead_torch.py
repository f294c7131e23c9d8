#!/usr/bin/env python3
"""What a call of rooftile.torch takes beside PyTorch's own, on the host: small operands, so that the GPU waits for the calls.

usage: bench/overhead_torch.py [GROUPS]

Needs one NVIDIA GPU, PyTorch and the rooftile package. Medians of GROUPS (61) groups of 100 calls, both in turn. Prints one table; us.
"""
import itertools
import os
import statistics
import sys
import tempfile
import time
from unittest import mock

import torch
import torch.nn.functional as F

import rooftile
from rooftile import torch as rt

OPERATIONS = rooftile.operations().values()
PRODUCT = next(op.name for op in OPERATIONS if op.array_function == "matmul")
expression = next(getattr(rt, op.name) for op in OPERATIONS if any(field.kind == "positional" for field in op.fields))
CALLS = 100
WARM_S = 0.3  # both, before they are timed


def us(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    took = time.perf_counter() - begin
    torch.cuda.synchronize()
    return 1e6 * took / CALLS


def beside(name, ours, theirs, groups):
    end = time.perf_counter() + WARM_S
    while time.perf_counter() < end:
        us(ours), us(theirs)
    pairs = [(us(ours), us(theirs)) for _ in range(groups)]
    a, b = (statistics.median(column) for column in zip(*pairs))
    beyond = statistics.median(x - y for x, y in pairs)
    print(f"{name:44} {a:8.2f} {b:8.2f} {beyond:+8.2f}")


def tensors(*wanted):
    shapes = {"x": (512, 512), "w": (1024, 512), "b": (1024,)}
    return [torch.randn(shapes[name], device="cuda").bfloat16().requires_grad_(name in wanted) for name in "xwb"]


def backward(function, given, *operands):
    def call():
        function(*operands).backward(given)
        for operand in operands:
            operand.grad = None

    return call


def first_of_a_shape():
    """Planned and compiled, with an empty cache."""
    took = []
    for n in (1000, 1528, 2056, 3080, 4104, 6152, 8200):
        x, w = torch.randn(n // 2, 1024, device="cuda").bfloat16(), torch.randn(n, 1024, device="cuda").bfloat16()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, ROOFTILE_CACHE_DIR=folder):
            begin = time.perf_counter()
            rt.linear(x, w)
            took.append(1e6 * (time.perf_counter() - begin))
    took.sort()
    print(f"{'linear, first call of a shape, nothing cached':44} {statistics.median(took):8.0f} {'':8} {took[-1]:8.0f}   (median, most)")


def first_calls(m_range):
    """Of numbers of rows that were not asked for before."""
    w = torch.randn(1024, 512, device="cuda").bfloat16()
    make = lambda m: torch.randn(m, 512, device="cuda").bfloat16()  # noqa: E731
    begin = time.perf_counter()
    rt.linear(make(100), w, m_range=m_range)
    ahead = time.perf_counter() - begin
    sizes = [m for m in range(m_range[0] + 4, m_range[1], 7) if m != 100][:400]
    inputs = [make(m) for m in sizes]
    rt.linear(inputs[0], w, m_range=m_range)
    firsts, laters = [], []
    torch.cuda.synchronize()
    for took in (firsts, laters):
        for x in inputs[1:]:
            begin = time.perf_counter()
            rt.linear(x, w, m_range=m_range)
            took.append(1e6 * (time.perf_counter() - begin))
            torch.cuda.synchronize()
    plan = rooftile.plan(PRODUCT, m=f"{m_range[0]}..{m_range[1]}", n=1024, k=512)
    kernels = rooftile.compile(plan)
    found, again = [], []
    for took in (found, again):
        for m in sizes:
            begin = time.perf_counter()
            kernels.at(m)
            took.append(1e6 * (time.perf_counter() - begin))
    print(f"rows {m_range[0]}..{m_range[1]}: {plan.kernels} kernels in {len(plan.parts)} parts, the first call of all {ahead:.2f} s")
    for name, values in (
        ("linear, first call of another M", firsts), ("linear, the same M again", laters),
        ("finding the kernel of another M", found), ("finding it again", again),
    ):  # fmt: skip
        values.sort()
        print(f"{name:44} {statistics.median(values):8.2f} {values[-1 - len(values) // 20]:8.2f} {values[-1]:8.2f}   (median, 95 %, most)")


def main():
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else 61
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; us a call {'ours':>14} {'torch':>8} {'beyond':>8}")
    x, w, b = tensors()
    with torch.no_grad():
        beside("linear", lambda: rt.linear(x, w), lambda: F.linear(x, w), groups)
        beside("linear with a bias", lambda: rt.linear(x, w, b), lambda: F.linear(x, w, b), groups)
    for wanted, biased in itertools.product(("w", "xw", "xwb", "wb"), (False, True)):
        if "b" in wanted and not biased:
            continue
        operands = tensors(*wanted)[: 3 if biased else 2]
        title = f"{'linear with a bias' if biased else 'linear'}, gradients of {' '.join(wanted)}"
        beside(title, lambda o=operands: rt.linear(*o), lambda o=operands: F.linear(*o), groups)
    given = torch.randn(512, 1024, device="cuda").bfloat16()
    for wanted in ("xw", "xwb"):
        operands = tensors(*wanted)[: len(wanted)]
        beside(
            f"forward and backward of {' '.join(wanted)}", backward(rt.linear, given, *operands), backward(F.linear, given, *operands),
            max(3, groups // 6),
        )  # fmt: skip
    text = "y = gelu(x + b)"
    xs = torch.randn(64, 1024, device="cuda").bfloat16()
    with torch.no_grad():
        beside("gelu(x + b)", lambda: expression(text, x=xs, b=b), lambda: F.gelu(xs + b), groups)
    first_of_a_shape()
    first_calls((1, 2048))


if __name__ == "__main__":
    main()
