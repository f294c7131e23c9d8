"""A small Llama made on the spot reads a prompt and writes tokens, every matrix, norm and attention by planned kernels; its logits are held
against fp64 and next to PyTorch's. Decoding is one captured graph: how long each cache is, is read on the device. Needs a Hopper GPU.

    python examples/python/generate.py
"""

import sys

if __name__ == "__main__" and len(sys.argv) > 1:
    sys.exit(print(f"generate.py: {sys.argv[1]}: it takes no arguments; its sizes are at the top of the file", file=sys.stderr) or 2)
try:
    import torch
    import torch.nn.functional as F

    from rooftile import torch as rt
except ImportError as missing:
    sys.exit(print(f"skipped: {missing}") or 4)

WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, FFN, VOCAB = 512, 4, 8, 2, 64, 1536, 4096
PROMPTS, PROMPT, WRITTEN = 4, 48, 16  # sequences, tokens of each, and those that are written
ROOM = PROMPT + WRITTEN


class Ours:
    linear = staticmethod(rt.linear)
    norm = staticmethod(lambda x, w: rt.fuse("y = rmsnorm(x, w, eps=1e-5)", x=x, w=w))
    add_linear = staticmethod(lambda x, w, r: rt.gemm(x, w.T, epilogue="d = acc + r", r=r))
    gated = staticmethod(lambda x, w: rt.gemm(x, w.T, pairs="split", epilogue="d = silu(gate) * up"))

    @staticmethod
    def attend(q, k_cache, v_cache, lengths, first):
        if q.shape[2] > 1:
            return rt.attention(q, k_cache[:, :, : q.shape[2]], v_cache[:, :, : q.shape[2]], mask="causal")
        return rt.attention(q, k_cache, v_cache, lengths=lengths)


class Torch:
    linear = staticmethod(F.linear)
    norm = staticmethod(lambda x, w: F.rms_norm(x, w.shape, w, 1e-5))
    add_linear = staticmethod(lambda x, w, r: r + F.linear(x, w))

    @staticmethod
    def gated(x, w):
        gate, up = F.linear(x, w).chunk(2, -1)
        return F.silu(gate) * up

    @staticmethod
    def attend(q, k_cache, v_cache, lengths, first):
        keys = first + q.shape[2]
        k, v = k_cache[:, :, :keys], v_cache[:, :, :keys]
        return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=True)


class Model:
    """The weights in one type, and caches of its own."""

    def __init__(self, how, weights, dtype):
        self.how = how
        self.w = {name: value.to(dtype) for name, value in weights.items()}
        self.caches = [torch.zeros(2, PROMPTS, KV_HEADS, ROOM, HEAD, device="cuda", dtype=dtype) for _ in range(LAYERS)]
        frequencies = 10000.0 ** (-torch.arange(HEAD // 2, device="cuda").double() * 2 / HEAD)
        angles = torch.arange(ROOM, device="cuda").double()[:, None] * frequencies
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def rotated(self, x, positions):
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        half = HEAD // 2
        turns = self.turns[positions]
        cosine, sine = turns.real.to(wide), turns.imag.to(wide)
        a, b = x[..., :half].to(wide), x[..., half:].to(wide)
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(x.dtype)

    def __call__(self, tokens, positions, lengths, first):
        """Logits of the last of tokens [PROMPTS, n] at `positions` [n], of which `first` is the first; `lengths` count them already."""
        w, how = self.w, self.how
        n = tokens.shape[1]
        x = w["embedding"][tokens].reshape(-1, WIDTH)
        for i, cache in enumerate(self.caches):
            rows = how.linear(how.norm(x, w[f"norm1.{i}"]), w[f"qkv.{i}"]).view(PROMPTS, n, HEADS + 2 * KV_HEADS, HEAD).transpose(1, 2)
            q, k, v = rows.split([HEADS, KV_HEADS, KV_HEADS], 1)
            cache[0].index_copy_(2, positions, self.rotated(k, positions))
            cache[1].index_copy_(2, positions, v)
            mixed = how.attend(self.rotated(q, positions), cache[0], cache[1], lengths, first)
            x = how.add_linear(mixed.transpose(1, 2).reshape(-1, WIDTH), w[f"out.{i}"], x)
            x = how.add_linear(how.gated(how.norm(x, w[f"norm2.{i}"]), w[f"gate_up.{i}"]), w[f"down.{i}"], x)
        last = x.view(PROMPTS, n, WIDTH)[:, -1].contiguous()
        return how.linear(how.norm(last, w["norm"]), w["head"])


def random_weights():
    def matrix(rows, columns):
        return (torch.randn(rows, columns, device="cuda") * columns**-0.5).bfloat16()

    w = {"embedding": torch.randn(VOCAB, WIDTH, device="cuda").bfloat16(), "head": matrix(VOCAB, WIDTH)}
    w["norm"] = torch.ones(WIDTH, device="cuda").bfloat16()
    for i in range(LAYERS):
        w |= {f"norm{n}.{i}": torch.rand(WIDTH, device="cuda").bfloat16() + 0.5 for n in (1, 2)}
        w |= {f"qkv.{i}": matrix((HEADS + 2 * KV_HEADS) * HEAD, WIDTH), f"out.{i}": matrix(WIDTH, HEADS * HEAD),
              f"gate_up.{i}": matrix(2 * FFN, WIDTH), f"down.{i}": matrix(WIDTH, FFN)}  # fmt: skip
    return w


def off(logits, exact):
    """The worst row's: root mean square of errors over that of the row."""
    return ((logits.double() - exact).square().mean(-1).sqrt() / exact.square().mean(-1).sqrt()).max().item()


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return print("skipped: no GPU of sm_90") or 4
    torch.manual_seed(1)
    weights = random_weights()
    ours, theirs, exact = Model(Ours, weights, torch.bfloat16), Model(Torch, weights, torch.bfloat16), Model(Torch, weights, torch.float64)
    prompt = torch.randint(VOCAB, (PROMPTS, PROMPT), device="cuda")
    positions = torch.arange(PROMPT, device="cuda")
    lengths = torch.full((PROMPTS,), PROMPT, device="cuda", dtype=torch.int32)
    logits = ours(prompt, positions, lengths, 0)
    wanted = exact(prompt, positions, lengths, 0)
    errors = [(off(logits, wanted), off(theirs(prompt, positions, lengths, 0), wanted))]

    # One step as a graph: tokens, position and lengths are data that each replay finds changed.
    token, position = logits.argmax(-1, keepdim=True), torch.tensor([PROMPT], device="cuda")
    lengths += 1
    ours(token, position, lengths, PROMPT)  # plans and compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stepped = ours(token, position, lengths, PROMPT)
    written = [token.clone()]
    for step in range(WRITTEN - 1):
        graph.replay()
        wanted = exact(token, position, lengths, PROMPT + step)
        errors.append((off(stepped, wanted), off(theirs(token, position, lengths, PROMPT + step), wanted)))
        token.copy_(stepped.argmax(-1, keepdim=True))
        written.append(token.clone())
        position += 1
        lengths += 1
    for row in torch.cat(written, 1).tolist():
        print("wrote", *row)
    worst, worst_of_torch = (max(pair[side] for pair in errors) for side in (0, 1))
    print(f"logits of {len(errors)} steps: off fp64 by {worst:.2e} of a row, PyTorch's by {worst_of_torch:.2e}")
    return 0 if worst < 1.5 * worst_of_torch else 3


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main())
