import torch
import triton
import triton.language as tl


@triton.jit
def gelu(y, x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < count).to(tl.float32)
    tl.store(y + at, (0.5 * v * (1 + tl.erf(v * 0.70710678))).to(y.dtype.element_ty), mask=at < count)


def call(x):
    y = torch.empty_like(x)
    gelu[(triton.cdiv(x.numel(), 1024),)](y, x, x.numel(), BLOCK=1024)
    return y
