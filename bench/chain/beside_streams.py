#!/usr/bin/env python3
"""A product and a memory-bound function at the same time: two streams, the product on some of the SMs, beside one after the other.

    bench/chain/beside_streams.py [ROOFTILE]

Needs PyTorch on a GPU whose cuBLAS takes a count of SMs. With ROOFTILE, a program, each line ends with what `plan beside` predicts.
"""
import json
import subprocess
import sys

import torch

PAIRS = [(8192, 8192, 8192, 16384), (8192, 8192, 8192, 65536), (4096, 4096, 4096, 16384), (8192, 2048, 8192, 32768)]  # m, n, k; rows of 8192 columns
COLUMNS = 8192
CARVED = (0, 16, 32, 48, 64)


def milliseconds(run, times=8):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times


def predicted(program, m, n, k, rows):
    function = f'fuse "y = gelu(x)" --tensor "x:bf16[{rows},{COLUMNS}]"'
    out = subprocess.run([program, "plan", "beside", f"gemm --m {m} --n {n} --k {k}", function, "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        return out.stderr.strip()
    document = json.loads(out.stdout)
    return f'predicted {document["gain"]:.3f}, ceiling {document["ceiling"]:.3f}, {document["second"]["sms"]} SMs for the function'


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    product_stream, function_stream = torch.cuda.Stream(), torch.cuda.Stream()
    for m, n, k, rows in PAIRS:
        a, b = torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        x = torch.randn(rows, COLUMNS, device="cuda", dtype=torch.bfloat16)
        c, y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16), torch.empty_like(x)
        product = lambda: torch.mm(a, b.t(), out=c)
        function = lambda: torch.ops.aten.gelu.out(x, out=y)

        def together():
            main_stream = torch.cuda.current_stream()
            for stream, work in ((product_stream, product), (function_stream, function)):
                stream.wait_stream(main_stream)
                with torch.cuda.stream(stream):
                    work()
            for stream in (product_stream, function_stream):
                main_stream.wait_stream(stream)

        alone = milliseconds(product), milliseconds(function)
        in_turn = milliseconds(lambda: (product(), function()))
        found = []
        for carved in CARVED:
            torch._C._set_sm_carveout_experimental(carved if carved else None)
            found.append((milliseconds(together), carved))
        torch._C._set_sm_carveout_experimental(None)
        best, carved = min(found)
        print(f"{m}x{n}x{k} beside gelu {rows}x{COLUMNS}: alone {alone[0]:.3f} and {alone[1]:.3f} ms, in turn {in_turn:.3f}, together "
              + ", ".join(f"{time:.3f} ({sms} SMs apart)" for time, sms in found)
              + f"; gain {in_turn / best:.3f}" + (f"; {predicted(program, m, n, k, rows)}" if program else ""), flush=True)


if __name__ == "__main__":
    main()
