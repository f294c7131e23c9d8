"""Expressions from functions. Needs neither PyTorch nor NumPy: stand-ins call as these do, and where they are installed they do."""

import importlib.util
import unittest

import rooftile


def call(name, *arguments, **named):
    """As torch.NAME(...) does with what is no tensor of its own."""

    def function():
        raise AssertionError("never called")

    function.__name__ = name
    first = next(a for a in arguments if hasattr(a, "__torch_function__"))
    return type(first).__torch_function__(function, (type(first),), arguments, named)


CASES = (
    (lambda x: x + x, "y = x + x"),
    (lambda x, b: x - (b - x), "y = x - (b - x)"),
    (lambda x: -(x**2), "y = -(x ** 2)"),
    (lambda x: 2 / (1 + x.exp()), "y = 2 / (1 + exp(x))"),
    (lambda x: 3 * -1.5 * x, "y = (-4.5) * x"),
    (lambda x: x * -1.5, "y = x * (-1.5)"),
    (lambda x, b: call("gelu", x + b), "y = gelu(x + b)"),
    (lambda x: call("gelu", x, approximate="tanh"), "y = gelu_tanh(x)"),
    (lambda x: call("softmax", x, dim=-1, _stacklevel=3, dtype=None), "y = softmax(x)"),
    (lambda x, w: call("layer_norm", x, (64,), weight=w, bias=None, eps=1e-5), "y = layernorm(x, w, eps=1e-05)"),
    (lambda x, w: call("rms_norm", x, (64,), weight=w, eps=None), "y = rmsnorm(x, w)"),
    (lambda x: call("where", x > 0, x, 2 * x), "y = where(x > 0, x, 2 * x)"),
    (lambda x: call("add", x, x, alpha=2), "y = x + (2 * x)"),
    (lambda x: x.clamp(0, 6), "y = minimum(maximum(x, 0), 6)"),
    (lambda x: x.sum(-1, keepdim=True), "y = sum(x)"),
    (lambda x: x.sum(), "y = sum_all(x)"),
    (lambda x: x.sum(0), "y = column_sum(x, axes=1)"),
    (lambda x, b: x.mean(dim=(0, 1)) * b, "y = column_mean(x, axes=2) * b"),
    (lambda x: x.amax(axis=[0]), "y = column_max(x, axes=1)"),
    (lambda x, b: call("max", x, b) + call("min", x, b), "y = maximum(x, b) + minimum(x, b)"),
    (lambda x: (x.relu(), x.exp()), "y = relu(x); z = exp(x)"),
    (lambda x: {"u": x.exp()}, "u = exp(x)"),
    (lambda x: abs(x), "y = abs(x)"),
)


def squared_often(x):
    for _ in range(40):
        x = x * x
    return x


class Expressions(unittest.TestCase):
    def test_are_what_the_function_does(self):
        for function, text in CASES:
            with self.subTest(text):
                self.assertEqual(rooftile.expression(function, ("y", "z")), text)

    def test_what_is_used_twice_is_computed_once(self):
        self.assertLess(len(rooftile.expression(squared_often)), 1000)
        self.assertEqual(rooftile.expression(lambda x: (x.exp() + 1) * (t := x.exp()) - t), "t0 = exp(x); y = ((exp(x) + 1) * t0) - t0")

    def test_refusals(self):
        for function, message in (
            (lambda x: x if x > 0 else -x, "branch"),
            (lambda x: call("sort", x), "sort is no operator"),
            (lambda x: x.sum(-1), "keepdim=True"),
            (lambda x: x.softmax(0), "along axis 0"),
            (lambda x: x.sum(1), "along axis 1"),
            (lambda x: x.sum((1, 2)), "along axis"),
            (lambda x: x.sum(0, keepdim=True), "keepdim=False"),
            (lambda x: x + "1", "add of a str"),
            (lambda x: x + [1], "add of a list"),
            (lambda x: 3, "depends on none"),
            (lambda *x: x, "each by its name"),
            (lambda: 1, "each by its name"),
            (lambda x: x[0], "no expression can"),
            (lambda x: x.nothing_like_this(), "nothing_like_this"),
            (lambda x: (x, x, x), "3 values; 2 names"),
            (lambda x: [v for v in x], "gone through"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message) as caught:
                rooftile.expression(function, ("y", "z"))
            self.assertNotIn("\n", str(caught.exception))

    def test_by_numpy(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("skipped: no NumPy")
        import numpy as np

        for function, text in (
            (lambda x: np.exp(x) + np.maximum(x, 1.5), "y = exp(x) + maximum(x, 1.5)"),
            (lambda x: np.where(x > 0, x, np.float32(0.5)), "y = where(x > 0, x, 0.5)"),
            (lambda x: np.float32(0.5) * x, "y = 0.5 * x"),
        ):
            self.assertEqual(rooftile.expression(function), text)


if __name__ == "__main__":
    unittest.main()
