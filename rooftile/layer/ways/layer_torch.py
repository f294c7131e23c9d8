"""PyTorch's way of a model's layer for `rooftile measure layer`: python3 layer_torch.py REQUEST.json

The layer is written as models are, by PyTorch's own operators. Each way of running it is held against fp64 on the same numbers. Then as
many layers as the request says, each with weights and a cache of its own, are captured one after the other in one graph, and the graph is
timed: what is read is cold, as in a model. Where there is no GPU, a way's result is checked and nothing is timed.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ways import Absent, answer, asked, one_line, say, torch_for

WARM_SECONDS = 1.0  # of all ways, before the first is timed
ROUNDS = 5
TIMED_SECONDS = 0.1  # of one way in one round
UNITS = {"bf16": 2.0**-8, "fp16": 2.0**-11}  # of rounding
# Operators one by one round more often than one kernel of several does: twice the bound of ten roundings.
ALLOWED_UNITS = 2 * 10**0.5


class Layer:
    """Weights and a cache of one layer, and how it is computed."""

    def __init__(self, torch, request, generator):
        self.torch, self.r = torch, request
        r, device = request, request["device"]
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[r["type"]]

        def make(*shape, scale=1.0, mean=0.0):
            return (torch.randn(shape, generator=generator, device=device, dtype=torch.float32) * scale + mean).to(self.dtype)

        self.heads, self.kv_heads, self.dim = r["heads"], r["kv_heads"], r["head_dim"]
        self.tokens = r["context"] if r["prefill"] else 1
        q, kv = self.heads * self.dim, self.kv_heads * self.dim
        self.norms = [make(r["hidden"], scale=0.25, mean=1.0) for _ in range(2)]
        self.qkv = make(q + 2 * kv, r["hidden"], scale=r["hidden"] ** -0.5)
        self.bias = make(q + 2 * kv, scale=0.25) if r["qkv_bias"] else None
        self.head_norms = [make(self.dim, scale=0.25, mean=1.0) for _ in range(2)] if r["query_key_norms"] else None
        # A mean over many keys is small: what it adds to the residual must not be lost there.
        keys = r["context"] / 2 if r["prefill"] else r["context"]
        self.o = make(r["hidden"], q, scale=q**-0.5 * max(1.0, (keys / 2.718281828) ** 0.5))
        self.experts, dense = r["experts"], r["intermediate"]
        if self.experts:
            e, dense = self.experts, self.experts["shared_intermediate"]
            self.router = make(e["count"] + e["shared_gate"], r["hidden"], scale=r["hidden"] ** -0.5)
            self.experts_gate_up = make(e["count"], 2 * e["intermediate"], r["hidden"], scale=r["hidden"] ** -0.5)
            self.experts_down = make(e["count"], r["hidden"], e["intermediate"], scale=e["intermediate"] ** -0.5)
        if dense:
            self.gate_up = make(2 * dense, r["hidden"], scale=r["hidden"] ** -0.5)
            self.down = make(r["hidden"], dense, scale=dense**-0.5)
        self.k_cache, self.v_cache = (make(r["batch"], self.kv_heads, r["context"], self.dim) for _ in range(2))
        first = 0 if r["prefill"] else r["context"] - 1
        self.positions = torch.arange(first, r["context"], device=device)
        angles = self.positions[:, None].double() * torch.tensor(r["frequencies"], dtype=torch.float64, device=device)
        self.cosine, self.sine = r["amplitude"] * angles.cos(), r["amplitude"] * angles.sin()
        window = r["window"]
        if window and window < r["context"] and r["prefill"]:
            raise Absent("windows over prefilled tokens are not written here")
        self.seen = min(window, r["context"]) if window else r["context"]

    def rotated(self, x):
        """Of [batch, heads, tokens, dim]; pairs are half of the rotated elements apart."""
        half = self.r["rotated"] // 2
        cosine, sine = (t.to(x.dtype if x.dtype == self.torch.float64 else self.torch.float32) for t in (self.cosine, self.sine))
        a, b, rest = x[..., :half].to(cosine.dtype), x[..., half : 2 * half].to(cosine.dtype), x[..., 2 * half :]
        return self.torch.cat([(a * cosine - b * sine).to(x.dtype), (b * cosine + a * sine).to(x.dtype), rest], dim=-1)

    def norm(self, x, weight):
        return self.torch.nn.functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), self.r["eps"])

    def attend(self, q, grouped):
        """Queries over the cache; `grouped`: heads that share keys as rows of one head, as one would write it by hand for one query."""
        f = self.torch.nn.functional.scaled_dot_product_attention
        k, v = self.k_cache, self.v_cache
        if not self.r["prefill"]:
            k, v = k[:, :, -self.seen :], v[:, :, -self.seen :]
        if not grouped:
            return f(q, k, v, is_causal=self.r["prefill"], enable_gqa=True)
        rows = q.reshape(q.shape[0], self.kv_heads, -1, self.dim)
        return f(rows, k, v).reshape(q.shape)

    def __call__(self, x, attend):
        linear, r = self.torch.nn.functional.linear, self.r
        rows = linear(self.norm(x, self.norms[0]), self.qkv.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))
        rows = rows.view(r["batch"], self.tokens, self.heads + 2 * self.kv_heads, self.dim).transpose(1, 2)
        q, k, v = rows.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        if self.head_norms:
            q, k = self.norm(q, self.head_norms[0]), self.norm(k, self.head_norms[1])
        q, k = self.rotated(q), self.rotated(k)
        x = x + linear(attend(q, k, v).transpose(1, 2).reshape(x.shape[0], -1), self.o.to(x.dtype))
        normed = self.norm(x, self.norms[1])
        return x + (self.chosen(normed) if self.experts else self.gated(linear, normed, self.gate_up, self.down))

    def gated(self, product, x, gate_up, down):
        gate, up = product(x, gate_up.to(x.dtype)).chunk(2, dim=-1)
        f = self.torch.nn.functional
        act = f.silu(gate) if self.r["activation"] == "silu" else f.gelu(gate, approximate="tanh")
        return product(act * up, down.to(x.dtype))

    def chosen(self, x):
        """What a token's experts make of it. Rows of the same expert are brought together, and each expert's matrix meets its own."""
        torch, e, linear = self.torch, self.experts, self.torch.nn.functional.linear
        logits = linear(x, self.router.to(x.dtype))
        shares = logits[:, : e["count"]].to(torch.float64 if x.dtype == torch.float64 else torch.float32).softmax(-1)
        if x.dtype == torch.float64:  # whom the rounded router chose: two logits may be closer than its rounding
            numbers = self.numbers
            weights = shares.gather(1, numbers)
        else:
            weights, numbers = shares.topk(e["per_token"], dim=-1)
            self.numbers = numbers
        if e["renormalized"]:
            weights = weights / weights.sum(-1, keepdim=True)
        order = numbers.flatten().argsort(stable=True)
        tokens = order // e["per_token"]
        counts = (numbers.flatten()[:, None] == torch.arange(e["count"], device=x.device)).sum(0)
        rows = x[tokens]
        if x.dtype == torch.float64 or not x.is_cuda:
            made, begin = torch.empty_like(rows), 0
            for expert, count in enumerate(counts.tolist()):
                one = slice(begin, begin + count)
                made[one] = self.gated(linear, rows[one], self.experts_gate_up[expert], self.experts_down[expert])
                begin += count
        else:
            ends = counts.cumsum(0).to(torch.int32)

            def grouped(a, b):
                return torch._grouped_mm(a, b.transpose(1, 2), offs=ends)

            made = self.gated(grouped, rows, self.experts_gate_up, self.experts_down)
        out = torch.zeros(x.shape, dtype=shares.dtype, device=x.device)
        out.index_add_(0, tokens, made.to(shares.dtype) * weights.flatten()[order, None])
        if e["shared_intermediate"]:
            gate = logits[:, e["count"] :].sigmoid() if e["shared_gate"] else 1
            out = out + gate * self.gated(linear, x, self.gate_up, self.down)
        return out.to(x.dtype)

    def run(self, x, grouped=False):
        def attend(q, k, v):
            self.k_cache.index_copy_(2, self.positions, k)
            self.v_cache.index_copy_(2, self.positions, v)
            return self.attend(q, grouped)

        return self(x, attend)

    def exact(self, x):
        """In fp64, and softmax by hand, a sequence at a time; this step's keys are not rounded."""
        torch = self.torch

        def attend(q, k, v):
            out = []
            for i in range(q.shape[0]):
                keys, values = self.k_cache[i].double(), self.v_cache[i].double()
                keys.index_copy_(1, self.positions, k[i])
                values.index_copy_(1, self.positions, v[i])
                share = self.heads // self.kv_heads
                keys, values = (t[:, -self.seen :].repeat_interleave(share, dim=0) for t in (keys, values))
                scores = q[i] @ keys.transpose(1, 2) * self.dim**-0.5
                if self.r["prefill"]:
                    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
                    scores = scores.masked_fill(hidden, float("-inf"))
                out.append(scores.softmax(-1) @ values)
            return torch.stack(out)

        return self(x.double(), attend)


def ways_of(torch, request):
    """Names, the back end of SDPA that each asks for, whether heads are grouped, and whether it is compiled."""
    backend = torch.nn.attention.SDPBackend
    out = []
    for compiled in (False, True):
        word = "compiled" if compiled else "eager"
        for name, one in (("flash", backend.FLASH_ATTENTION), ("cuDNN", backend.CUDNN_ATTENTION), ("math", backend.MATH)):
            if name == "math" and request["device"] == "cuda":
                continue  # it holds all scores in memory
            if name != "math" and request["device"] != "cuda":
                continue
            out.append((f"{word}, {name}", one, False, compiled))
            if not request["prefill"]:
                out.append((f"{word}, {name}, heads of one key as rows", one, True, compiled))
    return out


def checked(torch, layer, run, x):
    got = run(layer, x).double()
    exact = layer.exact(x)
    error = ((got - exact).square().mean(-1).sqrt() / exact.square().mean(-1).sqrt()).max().item()
    allowed = ALLOWED_UNITS * UNITS[layer.r["type"]]
    if not error <= allowed:  # NaN too
        raise Absent(f"its result is off by {error:.3g} of a row, and {allowed:.3g} is allowed")
    return error


def captured(torch, layers, run, x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            for layer in layers:
                run(layer, x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in layers:
            run(layer, x)
    return graph


def seconds_of(torch, graph, seconds):
    """Of one replay, many of them in a row."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    count = max(3, int(seconds / max(time.perf_counter() - begin, 1e-6)))
    start.record()
    for _ in range(count):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def measure(torch, request):
    generator = torch.Generator(request["device"]).manual_seed(request["seed"])
    on_gpu = request["device"] == "cuda"
    layers = [Layer(torch, request, generator) for _ in range(request["sets"] if on_gpu else 1)]
    x = torch.randn(request["batch"] * layers[0].tokens, request["hidden"], generator=generator, device=request["device"])
    x = x.to(layers[0].dtype)
    ways, graphs = [], {}
    for name, backend, grouped, compiled in ways_of(torch, request):
        say(f"layer: {name}")
        way = {"name": name}
        ways.append(way)
        try:
            torch._dynamo.reset()
            whole = torch.compile(Layer.run, dynamic=False) if compiled and on_gpu else Layer.run

            def run(layer, x, whole=whole, backend=backend, grouped=grouped):
                with torch.nn.attention.sdpa_kernel(backend):
                    return whole(layer, x, grouped)

            way["error"] = checked(torch, layers[0], run, x)
            if on_gpu:
                graphs[name] = captured(torch, layers, run, x)
        except Exception as error:  # a way that cannot run here is left out, and said
            way["absent"] = one_line(error)
    if graphs:
        end = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < end:
            for graph in graphs.values():
                graph.replay()
            torch.cuda.synchronize()
        taken = {name: [] for name in graphs}
        for _ in range(ROUNDS):
            for name, graph in graphs.items():
                taken[name].append(seconds_of(torch, graph, TIMED_SECONDS))
        for way in ways:
            if way["name"] in taken:
                way["time_us"] = sorted(taken[way["name"]])[ROUNDS // 2] / len(layers) * 1e6
    return ways


def main():
    request, result = asked()
    result |= {"ways": []}
    try:
        torch = torch_for(request, result)
        with torch.no_grad():
            result["ways"] = measure(torch, request)
    except Absent as error:
        result["absent"] = str(error)
    answer(request, result)


if __name__ == "__main__":
    main()
