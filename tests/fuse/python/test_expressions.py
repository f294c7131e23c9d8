"""Expressions on PyTorch's tensors."""

import unittest

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt

CASES = {
    "y = gelu(x + b)": lambda x, b: F.gelu(x + b),
    "y = silu(x) * b": lambda x, b: F.silu(x) * b,
    "y = x / (1 + exp(-b))": lambda x, b: x / (1 + torch.exp(-b)),
    "y = softmax(x * b)": lambda x, b: torch.softmax(x * b, -1),
    "y = log_softmax(x + b)": lambda x, b: torch.log_softmax(x + b, -1),
    "y = layernorm(x, b)": lambda x, b: F.layer_norm(x, x.shape[-1:]) * b,
    "y = rmsnorm(x, b)": lambda x, b: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * b,
    "y = where(x > b, x, 2 * b) ** 2 - minimum(x, 0.5)": lambda x, b: torch.where(x > b, x, 2 * b) ** 2 - x.clamp(max=0.5),
}


class Expressions(unittest.TestCase):
    def test_are_torchs(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            for shape in ((64, 1000), (3, 5, 257), (17,)):
                for text, function in CASES.items():
                    with self.subTest(text, dtype=dtype, shape=shape):
                        x, b = rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype)
                        assert_close(rt.fuse(text, x=x, b=b), function(x.double(), b.double()), scale=4)

    def test_take_tensors_as_they_lie(self):
        for x in (
            rand(64, 96).t(), rand(64, 1).expand(64, 96), rand(64, 200)[:, 3:99], rand(5001)[1:], rand(0, 8), rand(), rand(130, 8)[::2],
        ):  # fmt: skip
            assert_close(rt.fuse("y = silu(x) + 1", x=x), F.silu(x.double()) + 1)

    def test_have_several_outputs(self):
        x = rand(8, 96)
        y, s = rt.fuse("y = x * 2; s = sum(x)", x=x)
        assert_close(y, x.double() * 2)
        assert_close(s, x.double().sum(-1, keepdim=True), scale=40)

    def test_gradients(self):
        for text, function in CASES.items():
            ours = [t.requires_grad_() for t in (rand(6, 33, dtype=torch.float32), rand(33, dtype=torch.float32))]
            exact = [t.detach().double().requires_grad_() for t in ours]
            y = rt.fuse(text, x=ours[0], b=ours[1])
            given = rand(*y.shape, dtype=torch.float32)
            y.backward(given)
            function(*exact).backward(given.double())
            for mine, his in zip(ours, exact):
                with self.subTest(text):
                    assert_close(mine.grad, his.grad, scale=10)

    def test_gradients_of_gradients(self):
        for text, function in CASES.items():
            ours = [t.requires_grad_() for t in (rand(6, 33, dtype=torch.float32), rand(33, dtype=torch.float32))]
            exact = [t.detach().double().requires_grad_() for t in ours]
            seconds = []
            for y, inputs in ((rt.fuse(text, x=ours[0], b=ours[1]), ours), (function(*exact), exact)):
                firsts = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
                seconds.append(torch.autograd.grad(sum(first.square().sum() for first in firsts), inputs))
            for mine, his in zip(*seconds):
                with self.subTest(text):
                    assert_close(mine, his, scale=100 * (1 + his.abs().max().item()))

    def test_gradients_by_differences(self):
        # A step of 2^-7 is exact; what is left of fp32's noise and of the third derivative is below a thousandth.
        for text in CASES:
            if "where" in text:  # which jumps
                continue
            inputs = [t.requires_grad_() for t in (rand(3, 9, dtype=torch.float32), rand(9, dtype=torch.float32))]
            with self.subTest(text):
                function = lambda x, b, text=text: rt.fuse(text, x=x, b=b)  # noqa: E731
                self.assertTrue(torch.autograd.gradcheck(function, inputs, eps=2**-7, atol=4e-3, rtol=4e-3))

    def test_compile_and_are_captured(self):
        x, b = rand(32, 96), rand(96)
        function = lambda x, b: rt.fuse("y = softmax(x + b)", x=x, b=b)  # noqa: E731
        wanted = function(x, b)
        self.assertTrue(torch.equal(torch.compile(function, fullgraph=True, backend="aot_eager")(x, b), wanted))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = function(x, b)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(captured, wanted))

    def test_opcheck(self):
        fields = '{"expression": "y = gelu(x + b)"}'
        for gradients in (False, True):
            inputs = [rand(8, 33, dtype=torch.float32).requires_grad_(gradients), rand(33, dtype=torch.float32).requires_grad_(gradients)]
            torch.library.opcheck(torch.ops.rooftile.fuse, (inputs, "x,b", fields))

    def test_refusals(self):
        for call, message in (
            (lambda: rt.fuse("y = x +", x=rand(4)), "column"),
            (lambda: rt.fuse("y = x + q", x=rand(4)), "q"),
            (lambda: rt.fuse(x=rand(4)), "expression"),
            (lambda: rt.fuse("y = x"), "no tensor"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                call()


if __name__ == "__main__":
    unittest.main()
