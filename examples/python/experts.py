"""A layer of experts (MoE), forward: rows sorted by expert, two grouped products whose counts are read on the device, the whole
captured once in a CUDA graph and replayed with other counts. Needs a Hopper GPU.

    python examples/python/experts.py
"""

import sys

try:
    import torch
    import torch.nn.functional as F

    from rooftile import torch as rt
except ImportError as missing:
    sys.exit(print(f"skipped: {missing}") or 4)

EXPERTS, CHOSEN, TOKENS, WIDTH, INNER = 32, 4, 1024, 1024, 2048


def layer(x, w, sources, offsets):
    """Rows of x, [TOKENS, WIDTH], go to the experts in the order of `sources`; offsets, int32 [EXPERTS + 1], say where each begins."""
    rows = x[sources]
    hidden = rt.gemm(rows, w["up"], offsets=offsets, epilogue="d = gelu(acc + bias)", bias=w["bias"])
    out = rt.gemm(hidden, w["down"], offsets=offsets)
    return torch.zeros_like(x).index_add_(0, sources, out)


def reference(x, w, sources, counts):
    parts = []
    for expert, rows in enumerate(x[sources].float().split(counts)):
        hidden = F.gelu(rows @ w["up"][expert].float() + w["bias"][expert].float()).bfloat16().float()
        parts.append(hidden @ w["down"][expert].float())
    return torch.zeros_like(x, dtype=torch.float32).index_add_(0, sources, torch.cat(parts))


def routed(skew):
    """Which expert every token goes to, and so the rows' order and the experts' counts; a router would say it."""
    shares = torch.arange(1, EXPERTS + 1, device="cuda").float() ** -skew
    chosen = torch.multinomial(shares.expand(TOKENS, EXPERTS), CHOSEN)
    order = chosen.flatten().argsort()
    return order // CHOSEN, torch.bincount(chosen.flatten(), minlength=EXPERTS)


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return print("skipped: no GPU of sm_90") or 4
    torch.manual_seed(1)
    w = {"up": torch.randn(EXPERTS, WIDTH, INNER, device="cuda") * WIDTH**-0.5, "down": torch.randn(EXPERTS, INNER, WIDTH, device="cuda") * INNER**-0.5,
         "bias": torch.randn(EXPERTS, 1, INNER, device="cuda")}  # fmt: skip
    w = {name: value.bfloat16() for name, value in w.items()}
    x = torch.randn(TOKENS, WIDTH, device="cuda").bfloat16()
    sources, counts = routed(0)
    offsets = F.pad(counts.cumsum(0), (1, 0)).int()
    layer(x, w, sources, offsets)  # plans and compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x, w, sources, offsets)
    worst = 0.0
    for skew in (0, 0.5, 1, 2):
        others, counts = routed(skew)
        sources.copy_(others)
        offsets.copy_(F.pad(counts.cumsum(0), (1, 0)))
        graph.replay()
        exact = reference(x, w, sources, counts.tolist())
        off = ((y.float() - exact).norm() / exact.norm()).item()
        worst = max(worst, off)
        print(f"shares as 1 / place^{skew}: {counts.min().item():4} to {counts.max().item():4} rows an expert, off by {off:.2e}")
    return 0 if worst < 1e-2 else 3


if __name__ == "__main__":
    sys.exit(main())
