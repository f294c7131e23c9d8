"""Tensors whose memory holds the negative of what they say: views of conjugated complex numbers, and torch._neg_view."""

import random
import unittest

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt


def negative(x):
    """x, whose memory holds -x."""
    return torch._neg_view(-x)


def functions():
    """Functions of ours, what torch has in their place, and inputs."""
    yield rt.linear, F.linear, [rand(33, 64), rand(48, 64), rand(48)]
    yield rt.gemm, torch.matmul, [rand(33, 64), rand(64, 48)]
    yield (
        lambda a, b, c: rt.gemm(a, b, epilogue="d = relu(acc) + z", z=c),
        lambda a, b, c: torch.relu(a @ b) + c,
        [rand(40, 64), rand(64, 96), rand(40, 96)],
    )
    yield (
        lambda a, b, offsets: rt.gemm(a, b, offsets=offsets.int()),
        lambda a, b, _: torch.cat([a[:20] @ b[0], a[20:] @ b[1]]),
        [rand(64, 64), rand(2, 64, 48), torch.tensor([0, 20, 64], device="cuda")],
    )
    yield lambda x: rt.fuse("y = softmax(x)", x=x), lambda x: torch.softmax(x, -1), [rand(64, 200)]
    yield lambda x, s: rt.fuse("y = gelu(x * s)", x=x, s=s), lambda x, s: F.gelu(x * s), [rand(64, 200), rand(64, 1)]
    yield rt.attention, F.scaled_dot_product_attention, [rand(2, 4, 65, 64) for _ in range(3)]
    if hasattr(rt, "chain"):
        weights = [rand(4096, 128), rand(512, 128) / 8, rand(128, 512) / 16]
        yield lambda x, u, v: rt.chain(x, u, v, act="relu"), lambda x, u, v: torch.relu(x @ u.t()) @ v.t(), weights


class Lazy(unittest.TestCase):
    def test_every_function_reads_what_a_tensor_says(self):
        drawn = random.Random(4)
        for function, theirs, inputs in functions():
            exact = theirs(*[x.double() if x.is_floating_point() else x for x in inputs])
            plain = function(*inputs)
            for _ in range(4):
                bits = [x.is_floating_point() and drawn.random() < 0.6 for x in inputs]
                lazy = [negative(x) if bit else x for x, bit in zip(inputs, bits)]
                result = function(*lazy)
                self.assertTrue(torch.equal(result, plain), (function, bits))
                assert_close(result, exact, scale=16)
                again = torch.compile(function, fullgraph=True, backend="aot_eager")(*lazy)  # inductor itself reads what lies there
                self.assertTrue(torch.equal(again, plain), (function, bits))

    def test_every_kernel_reads_what_a_tensor_says(self):
        for function, _, inputs in functions():
            function(*inputs)
        for found in list(rt._found.values()):
            kernel = getattr(found, "kernel", None)
            if kernel is None:
                continue
            inputs = [
                rand(1 + sum((n - 1) * s for n, s in zip(t.shape, t.strides)), dtype=rt._DTYPES[t.type]).as_strided(t.shape, t.strides)
                for t in kernel.plan.tensors if not t.is_output and t.type != "int32"
            ]  # fmt: skip
            if len(inputs) != sum(not t.is_output for t in kernel.plan.tensors):
                continue  # its groups are told by a tensor
            plain = kernel(*inputs)
            for i, x in enumerate(inputs):
                if x.is_contiguous():  # a copy of another one would lie in another way
                    lazy = [*inputs[:i], negative(x), *inputs[i + 1 :]]
                    self.assertTrue(torch.equal(kernel(*lazy), plain))
                    with self.assertRaisesRegex(rooftile.RequestError, "negative bit"):
                        kernel(*lazy, stream=torch.cuda.Stream())
            with self.assertRaisesRegex(rooftile.RequestError, "negative bit"):
                kernel(*inputs, out=torch._neg_view(torch.empty_like(plain)))

    def test_of_complex_numbers(self):
        for dtype in (torch.float16, torch.float32):
            z = torch.view_as_complex(torch.randn(64, 96, 2, device="cuda").to(dtype)).conj()
            self.assertTrue(z.imag.is_neg())
            assert_close(rt.fuse("y = x * 2", x=z.imag), 2 * z.imag.double())
            with self.assertRaises(rooftile.RequestError):
                rt.fuse("y = x * 2", x=z)

    def test_gradients(self):
        for function, theirs, inputs in functions():
            ours = [negative(x).detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
            exact = [x.detach().double().requires_grad_() if x.is_floating_point() else x for x in inputs]
            try:
                y = function(*ours)
                given = negative(rand(*y.shape))
                y.backward(given)
            except NotImplementedError:
                continue
            theirs(*exact).backward(given.double())
            for mine, his in zip(ours, exact):
                if mine.is_floating_point():
                    assert_close(mine.grad, his.grad, scale=64)


if __name__ == "__main__":
    unittest.main()
