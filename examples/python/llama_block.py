"""A block of Llama 3 8B with every layer but attention by planned kernels, beside the same in torch. Needs a Hopper GPU."""

import sys

try:
    import torch
    import torch.nn.functional as F

    from rooftile import torch as rt
except ImportError as missing:
    sys.exit(print(f"skipped: {missing}") or 4)

WIDTH, HEADS, KV_HEADS, HEAD, FFN = 4096, 32, 8, 128, 14336


class Ours:
    linear = staticmethod(rt.linear)
    norm = staticmethod(lambda x, gain: rt.fuse("y = rmsnorm(x, gain, eps=1e-5)", x=x, gain=gain))
    gate = staticmethod(lambda gate, up: rt.fuse("y = silu(gate) * up", gate=gate, up=up))
    add = staticmethod(lambda x, y: rt.fuse("z = x + y", x=x, y=y))


class Torch:
    linear = staticmethod(F.linear)
    norm = staticmethod(lambda x, gain: F.rms_norm(x, gain.shape, gain, 1e-5))
    gate = staticmethod(lambda gate, up: F.silu(gate) * up)
    add = staticmethod(torch.add)


def block(layers, w, x):
    qkv = layers.linear(layers.norm(x, w["norm1"]), w["qkv"]).view(*x.shape[:2], HEADS + 2 * KV_HEADS, HEAD)
    q, k, v = (part.transpose(1, 2) for part in qkv.split([HEADS, KV_HEADS, KV_HEADS], 2))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).reshape(x.shape)
    x = layers.add(x, layers.linear(mixed, w["out"]))
    hidden = layers.norm(x, w["norm2"])
    inner = layers.gate(layers.linear(hidden, w["gate"]), layers.linear(hidden, w["up"]))
    return layers.add(x, layers.linear(inner, w["down"]))


def main():
    torch.manual_seed(1)
    matrices = {"qkv": ((HEADS + 2 * KV_HEADS) * HEAD, WIDTH), "out": (WIDTH, WIDTH), "gate": (FFN, WIDTH), "up": (FFN, WIDTH), "down": (WIDTH, FFN)}
    w = {name: (torch.randn(shape, device="cuda") * shape[-1] ** -0.5).bfloat16() for name, shape in matrices.items()}
    w |= {name: torch.rand(WIDTH, device="cuda").bfloat16() for name in ("norm1", "norm2")}
    x = torch.randn(1, 2048, WIDTH, device="cuda").bfloat16()
    exact = block(Torch, {name: value.float() for name, value in w.items()}, x.float())
    off = {}
    for layers in (Ours, Torch):
        off[layers] = ((block(layers, w, x).float() - exact).norm() / exact.norm()).item()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            block(layers, w, x)
        stop.record()
        stop.synchronize()
        print(f"{layers.__name__:6} {start.elapsed_time(stop) / 20 * 1e3:8.1f} us a block, off the fp32 block by {off[layers]:.2e}")
    return 0 if off[Ours] < 1.5 * off[Torch] else 3


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main() if torch.cuda.is_available() else print("skipped: no device") or 4)
