#!/usr/bin/env python3
"""Gradients of convolutions of two axes that a sweep measured, next to cuDNN's, through PyTorch's convolution_backward with `cudnn.benchmark`.

usage: bench/conv/gradients_beside_cudnn.py FILE...

FILE: what `rooftile sweep conv --law weights|data --out FILE` wrote on this GPU. Tensors are channels-last; five calls are a CUDA graph, which is replayed
ten times. One line a problem, then geometric means of cuDNN's time over ours. Needs one GPU and PyTorch 2.9 or later.
"""
import json
import math
import sys

import torch

REPLAYS, CALLS = 10, 5


def pair(problem, key):
    numbers = [int(part) for part in str(problem[key]).split('x')]
    return numbers * 2 if len(numbers) == 1 else numbers


def microseconds(problem):
    stride, padding, dilation, taps = (pair(problem, key) for key in ('stride', 'padding', 'dilation', 'kernel_size'))

    def random(*extents):
        return torch.randn(*extents, device='cuda', dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)

    x, w = random(problem['batch'], problem['channels'], problem['height'], problem['width']), random(problem['filters'], problem['channels'], *taps)
    dy = torch.randn_like(torch.nn.functional.conv2d(x, w, stride=stride, padding=padding, dilation=dilation))
    of = [problem['gradient'] == 'data', problem['gradient'] == 'weights', False]

    def call():
        torch.ops.aten.convolution_backward(dy, x, w, None, stride, padding, dilation, False, [0, 0], 1, of)

    for _ in range(3):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / (REPLAYS * CALLS)


def main():
    torch.backends.cudnn.benchmark = True
    ratios = {}
    for path in sys.argv[1:]:
        for row in map(json.loads, open(path)):
            problem = row.get('problem')
            if not problem or not row.get('time_us') or problem.get('depth') or not problem.get('height'):
                continue
            theirs = microseconds(problem)
            few = 'channels or filters below 128' if min(problem['channels'], problem['filters']) < 128 else 'channels and filters of 128 and more'
            ratios.setdefault((problem['gradient'], few), []).append(theirs / row['time_us'])
            print(f"{problem['gradient']:8} {problem['batch']:3} {problem['channels']:5} {problem['height']:4}x{problem['width']:<4} {problem['filters']:5} {problem['kernel_size']:>4} s{problem['stride']:4} "
                  f"{row['time_us']:8.1f} us ({row['predicted_time_us']:8.1f})  cudnn {theirs:8.1f}  {theirs / row['time_us']:.2f}", flush=True)
    for (gradient, few), of in sorted(ratios.items()):
        print(f'{gradient}, {few}: {len(of)} problems, {math.exp(sum(map(math.log, of)) / len(of)):.2f} in the mean, least {min(of):.2f}')


if __name__ == '__main__':
    main()
