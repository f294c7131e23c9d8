#!/usr/bin/env python3
"""A product and a memory-bound function at the same time, each on its own SMs (green contexts), or by two streams, beside one after the other.

    bench/chain/beside_streams.py [ROOFTILE] [--json FILE]

Needs PyTorch and a driver that knows green contexts. With ROOFTILE, a program, each line ends with what `plan beside` predicts.
"""
import argparse
import ctypes
import json
import subprocess

import torch

# m, n, k of a product; rows of 8192 columns of a gelu
PAIRS = [(8192, 8192, 8192, 16384), (8192, 8192, 8192, 65536), (4096, 4096, 4096, 16384), (8192, 2048, 8192, 32768), (16384, 4096, 1024, 32768),
         (2048, 8192, 2048, 16384), (4096, 4096, 16384, 65536), (32768, 512, 512, 8192)]
COLUMNS = 8192
APART = (8, 16, 24, 32, 48, 64)  # SMs for the function: whole groups of eight
SECONDS = 0.12  # that each candidate runs, so that power settles


class Resource(ctypes.Structure):
    """CUdevResource of cuda.h, version 1."""
    _fields_ = [("type", ctypes.c_int), ("padding", ctypes.c_ubyte * 92), ("sm_count", ctypes.c_uint), ("rest", ctypes.c_ubyte * 44)]


class Split:
    """Two streams, one on `apart` SMs, the other on what is left."""

    def __init__(self, apart):
        driver = ctypes.CDLL("libcuda.so.1")

        def call(name, *arguments):
            code = getattr(driver, name)(*arguments)
            if code != 0:
                raise RuntimeError(f"{name}: CUDA error {code}")

        device = ctypes.c_int(torch.cuda.current_device())
        whole, few, left, groups = Resource(), Resource(), Resource(), ctypes.c_uint(1)
        call("cuDeviceGetDevResource", device, ctypes.byref(whole), 1)
        call("cuDevSmResourceSplitByCount", ctypes.byref(few), ctypes.byref(groups), ctypes.byref(whole), ctypes.byref(left), 0, apart)
        self.streams, self.sms = [], []
        for resource in (few, left):
            description, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            call("cuDevResourceGenerateDesc", ctypes.byref(description), ctypes.byref(resource), 1)
            call("cuGreenCtxCreate", ctypes.byref(context), description, device, 1)
            call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, 1, 0)
            self.streams.append(torch.cuda.ExternalStream(stream.value))
            self.sms.append(resource.sm_count)


def milliseconds(run):
    def timed(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(times):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / times

    timed(3)
    once = timed(5)
    times = max(5, int(SECONDS * 1000 / once))
    timed(times)
    return timed(times)


def together(function, product, function_stream, product_stream):
    """Both from now on; the current stream goes on behind both."""
    def run():
        main = torch.cuda.current_stream()
        for stream, work in ((product_stream, product), (function_stream, function)):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                work()
        for stream in (product_stream, function_stream):
            main.wait_stream(stream)
    return run


def alone_on(work, stream):
    def run():
        main = torch.cuda.current_stream()
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            work()
        main.wait_stream(stream)
    return run


def predicted(program, m, n, k, rows):
    function = f'fuse "y = gelu(x)" --tensor "x:bf16[{rows},{COLUMNS}]"'
    out = subprocess.run([program, "plan", "beside", f"gemm --m {m} --n {n} --k {k}", function, "--json"], capture_output=True, text=True)
    return json.loads(out.stdout) if out.stdout else {"refusal": out.stderr.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    plain = torch.cuda.Stream(), torch.cuda.Stream()
    splits = [Split(apart) for apart in APART]
    rows_out = []
    for m, n, k, rows in PAIRS:
        a, b = torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        x = torch.randn(rows, COLUMNS, device="cuda", dtype=torch.bfloat16)
        c, y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16), torch.empty_like(x)

        def product():
            torch.mm(a, b.t(), out=c)

        def function():
            torch.ops.aten.gelu.out(x, out=y)

        row = {"gpu": torch.cuda.get_device_name(), "m": m, "n": n, "k": k, "rows": rows, "columns": COLUMNS,
               "product_ms": milliseconds(product), "function_ms": milliseconds(function), "in_turn_ms": milliseconds(lambda: (product(), function())),
               "two_streams_ms": milliseconds(together(function, product, *plain)), "splits": []}
        for split in splits:
            torch._C._set_sm_carveout_experimental(split.sms[0])
            row["splits"].append({"sms": split.sms, "together_ms": milliseconds(together(function, product, *split.streams)),
                                  "function_ms": milliseconds(alone_on(function, split.streams[0])),
                                  "product_ms": milliseconds(alone_on(product, split.streams[1]))})
        torch._C._set_sm_carveout_experimental(None)
        best = min(row["splits"], key=lambda s: s["together_ms"])
        row["in_turn_again_ms"] = milliseconds(lambda: (product(), function()))
        in_turn = (row["in_turn_ms"] + row["in_turn_again_ms"]) / 2
        row["gain"] = in_turn / best["together_ms"]
        row["gain_of_two_streams"] = in_turn / row["two_streams_ms"]
        if arguments.program:
            row["predicted"] = predicted(arguments.program, m, n, k, rows)
        rows_out.append(row)
        said = row.get("predicted", {})
        print(f'{m}x{n}x{k} beside gelu {rows}x{COLUMNS}: alone {row["product_ms"]:.3f} and {row["function_ms"]:.3f} ms, in turn {in_turn:.3f}; two streams '
              f'{row["two_streams_ms"]:.3f}; ' + ", ".join(f'{s["sms"][0]} SMs {s["together_ms"]:.3f} ({s["product_ms"]:.3f} and {s["function_ms"]:.3f} alone there)' for s in row["splits"])
              + f'; gain {row["gain"]:.3f}' + (f'; predicted {said["gain"]:.3f}, {said["second"]["sms"]} SMs' if said.get("gain") else ""), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows_out, file, indent=1)


if __name__ == "__main__":
    main()
