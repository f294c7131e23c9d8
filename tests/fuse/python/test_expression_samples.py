"""Expressions on PyTorch's own samples."""

import math
import unittest

import torch
from samples import check

from rooftile import torch as rt

TYPES = (torch.bfloat16, torch.float16, torch.float32)
# An expression takes no eps below 0, which some samples have; no axes that do not become one without a copy; and a number has
# no last axis.
REFUSED = ("eps", "is not dense, its last axis contiguous", "works along the last axis")


def along_an_axis(name):
    def function(x, dim, dtype=None):
        if x.dim() == 0:
            return rt.fuse(f"y = {name}(x)", x=x)
        return rt.fuse(f"y = {name}(x)", x=x.movedim(dim, -1)).movedim(-1, dim)

    return function


def normalised(name):
    """Over the last axes, which become one."""

    def function(x, shape, weight=None, bias=None, eps=1e-5):
        lead = x.shape[: x.dim() - len(shape)]
        parameters = {key: t.reshape(-1) for key, t in (("w", weight), ("b", bias)) if t is not None}
        text = f"y = {name}({', '.join(['x', *parameters])}, eps={eps})"
        return rt.fuse(text, x=x.reshape(*lead, math.prod(shape)), **parameters).reshape(x.shape)

    return function


def two(text):
    """Both broadcast to one shape, a number written into the expression."""

    def function(a, b, alpha=1):
        if not isinstance(b, torch.Tensor):
            return rt.fuse(text.format(b=f"({float(b)})", alpha=alpha), a=a)
        a, b = torch.broadcast_tensors(a, b)
        return rt.fuse(text.format(b="b", alpha=alpha), a=a, b=b)

    return function


def gelu(x, approximate="none"):
    return rt.fuse("y = gelu(x)" if approximate == "none" else "y = gelu_tanh(x)", x=x)


OPERATORS = {
    "softmax": along_an_axis("softmax"),
    "log_softmax": along_an_axis("log_softmax"),
    "nn.functional.layer_norm": normalised("layernorm"),
    "nn.functional.gelu": gelu,
    "nn.functional.silu": lambda x, inplace=False: rt.fuse("y = silu(x)", x=x),
    "add": two("y = a + {alpha} * {b}"),
    "sub": two("y = a - {alpha} * {b}"),
    "mul": two("y = a * {b}"),
    "maximum": two("y = maximum(a, {b})"),
    "minimum": two("y = minimum(a, {b})"),
}


class Expressions(unittest.TestCase):
    def right(self, name, dtype, function, variant=""):
        with self.subTest(name, dtype=dtype):
            right, refused = check(name, dtype, function, variant)
            self.assertGreater(right, 0)
            self.assertEqual([(sample, why) for sample, why in refused if not any(word in why for word in REFUSED)], [])

    def test_quotients(self):
        for dtype in TYPES:
            self.right("div", dtype, two("y = a / {b}"), "no_rounding_mode")

    def test_root_mean_squares(self):
        for dtype in TYPES:
            # fp64's own smallest step is what the exact one takes where none is given; ours then is of no weight either.
            least = torch.finfo(torch.float64).eps

            def rms_norm(x, shape, weight=None, eps=None, least=least):
                return normalised("rmsnorm")(x, shape, weight, eps=least if eps is None else eps)

            self.right("nn.functional.rms_norm", dtype, rms_norm)


def _each(name, function):
    def test(self):
        for dtype in TYPES:
            self.right(name, dtype, function)

    return test


for _name, _function in OPERATORS.items():
    setattr(Expressions, f"test_{_name.rpartition('.')[2]}", _each(_name, _function))


if __name__ == "__main__":
    unittest.main()
