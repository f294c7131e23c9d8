import torch
import triton
import triton.language as tl


@triton.jit
def attention(o, q, k, v, tokens, scale, DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * tokens * DIM
    row = tl.program_id(0) * M + tl.arange(0, M)
    dim = tl.arange(0, DIM)
    inside = (row < tokens)[:, None]
    queries = tl.load(q + head + row[:, None] * DIM + dim[None, :], mask=inside, other=0.0)
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, DIM), tl.float32)
    for first in range(0, tokens, N):
        key = first + tl.arange(0, N)
        keys = tl.load(k + head + key[None, :] * DIM + dim[:, None], mask=(key < tokens)[None, :], other=0.0)
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        scores = tl.where((key < tokens)[None, :], scores, -1e30)
        larger = tl.maximum(most, tl.max(scores, axis=1))
        weights = tl.exp2(scores - larger[:, None])
        shrunk = tl.exp2(most - larger)
        total = total * shrunk + tl.sum(weights, axis=1)
        values = tl.load(v + head + key[:, None] * DIM + dim[None, :], mask=(key < tokens)[:, None], other=0.0)
        out = tl.dot(weights.to(values.dtype), values, out * shrunk[:, None])
        most = larger
    tl.store(o + head + row[:, None] * DIM + dim[None, :], (out / total[:, None]).to(o.dtype.element_ty), mask=inside)


def call(q, k, v):
    o = torch.empty_like(q)
    batch, heads, tokens, dim = q.shape
    attention[(triton.cdiv(tokens, 128), batch * heads)](o, q, k, v, tokens, dim**-0.5, DIM=dim, M=128, N=64, num_warps=8, num_stages=3)
    return o
