#!/usr/bin/env python3
"""One block of a Llama in PyTorch, in steps, for profilers: eager, compiled, or as a CUDA graph.

    rooftile profile --range step -- python3 bench/profile/llama_block.py graph
    python3 bench/profile/llama_block.py eager --torch-profiler top.json     # the same steps by torch.profiler

Each step of the last run is an NVTX range "step". Prints the median time of a step by the host's clock.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

HIDDEN, HEADS, KEY_HEADS, INNER = 4096, 32, 8, 14336
HEAD = HIDDEN // HEADS


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(HIDDEN, heads * HEAD, bias=False) for heads in (HEADS, KEY_HEADS, KEY_HEADS))
        self.out, self.gate, self.up = (torch.nn.Linear(HIDDEN, width, bias=False) for width in (HIDDEN, INNER, INNER))
        self.down = torch.nn.Linear(INNER, HIDDEN, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(HIDDEN) for _ in range(2))

    @staticmethod
    def rotated(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def forward(self, x, cos, sin):
        batch, tokens, _ = x.shape
        h = self.norms[0](x)
        q, k, v = (linear(h).view(batch, tokens, -1, HEAD).transpose(1, 2) for linear in (self.query, self.key, self.value))
        q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=["eager", "compiled", "graph"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--runs", type=int, default=8, help="before the one whose ranges are called step")
    parser.add_argument("--torch-profiler", metavar="FILE", help="write the kernels' times by torch.profiler")
    given = parser.parse_args()
    torch.manual_seed(1)
    block = Block().cuda().to(torch.bfloat16).requires_grad_(False)
    x = torch.randn(given.batch, given.tokens, HIDDEN, device="cuda", dtype=torch.bfloat16)
    angles = torch.arange(given.tokens, device="cuda")[:, None] * 10000 ** (-torch.arange(0, HEAD, 2, device="cuda") / HEAD)
    cos, sin = (torch.cat((f(angles),) * 2, dim=-1).to(torch.bfloat16) for f in (torch.cos, torch.sin))
    step = torch.compile(block) if given.mode == "compiled" else block
    for _ in range(5):
        step(x, cos, sin)
    torch.cuda.synchronize()
    if given.mode == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            block(x, cos, sin)

        def step(*_):
            graph.replay()

    def run(name):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(given.steps):
            with torch.cuda.nvtx.range(name):
                step(x, cos, sin)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / given.steps * 1e6

    # The GPU first comes to the clock that its power limit leaves.
    times = [run("warm") for _ in range(given.runs)]
    if given.torch_profiler:
        from torch.profiler import ProfilerActivity, profile

        with profile(acc_events=True, activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            for _ in range(given.runs):
                run("warm")
        events = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith("warm")]
        events.sort(key=lambda event: event.time_range.start)
        kernels = {}
        for event in events[-(len(events) // given.runs) :]:
            calls, us = kernels.get(event.name, (0, 0.0))
            kernels[event.name] = (calls + 1, us + event.device_time_total)
        with open(given.torch_profiler, "w", encoding="utf-8") as file:
            json.dump({"steps": given.steps, "kernels": kernels}, file)
    else:
        times.append(run("step"))
    print(f"{given.mode}: {statistics.median(times[1:]):.1f} us a step")


if __name__ == "__main__":
    main()
