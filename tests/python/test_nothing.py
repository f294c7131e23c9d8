"""Sizes of 0, as far as that goes without a GPU: shapes of what comes out, and that nothing is launched on memory that is not there."""

import ctypes
import json
import os
import random
import unittest

from support import FAKE_DRIVER, Tensor, launches

import rooftile

if cuda := os.environ.get("ROOFTILE_TEST_CUDA"):
    rooftile._rooftile.add_cuda_folder(cuda)

SIZES = {
    "gemm": (("m", "n", "k"), {"m": 48, "n": 64, "k": 40}),
    "gemm in batches": (("m", "n", "k", "batch"), {"m": 48, "n": 64, "k": 40, "batch": 3}),
    "gemm with an epilogue": (
        ("m", "n", "k"), {"m": 48, "n": 64, "k": 40, "epilogue": "d = relu(acc + bias) + c", "beta": 2, "tensor": ["bias:bf16[N]", "c:bf16[M,N]"]}
    ),
    "gemm of 8 bits": (("m", "n", "k"), {"m": 48, "n": 64, "k": 128, "types": "fp8_e4m3,fp8_e4m3,bf16", "scales": "row"}),
    "chain": (("m", "d", "ff"), {"m": 256, "d": 128, "ff": 512, "act": "relu", "residual": True}),
    "conv": (("batch", "channels", "filters"), {"batch": 2, "channels": 24, "height": 9, "width": 7, "filters": 40, "kernel_size": "3x3", "padding": 1}),
    "attention": (("batch", "q", "kv", "heads"), {"batch": 2, "heads": 4, "q": 100, "kv": 70, "dim": 64}),
}  # fmt: skip


def draws():
    """Requests with one size or several of 0, and which, of the operations that there are."""
    return [(request, none) for request, none in all_draws() if request["op"] in rooftile.operations()]


def all_draws():
    drawn = random.Random(47)
    for name, (keys, fields) in SIZES.items():
        for i in range(2 * len(keys)):
            none = [keys[i]] if i < len(keys) else drawn.sample(keys, 2)
            yield {"op": name.split()[0], "machine": "h100-sxm", **fields, **dict.fromkeys(none, 0)}, none
    for groups in ([0], [0, 0, 0]):
        yield {"op": "gemm", "machine": "h100-sxm", "groups": groups, "n": 64, "k": 40}, ["m"]
    for lengths in ([0], [0, 0]):
        yield {"op": "attention", "machine": "h100-sxm", "lengths": lengths, "heads": 2, "dim": 64}, []
    yield {"op": "fuse", "machine": "h100-sxm", "expression": "y = softmax(x)", "tensors": ["x:bf16[0,64]"]}, []


def nobody(tensor):
    return 0 in tensor.shape


class Nothing(unittest.TestCase):
    def test_is_planned_with_tensors_as_they_are(self):
        for request, none in draws():
            with self.subTest(**request):
                plan = rooftile.plan(**request)
                for key in none:
                    if key in plan.problem:
                        self.assertEqual(plan.problem[key], 0)
                sized = {key: 16 if key in none else value for key, value in request.items()}
                if none and "groups" not in request and not (request["op"] == "chain" and {"d", "ff"} & set(none)):
                    for mine, other in zip(plan.tensors, rooftile.plan(**sized).tensors, strict=True):
                        self.assertEqual((mine.name, mine.type, len(mine.shape)), (other.name, other.type, len(other.shape)))
                        for a, b in zip(mine.shape, other.shape, strict=True):
                            self.assertIn(a, (0, b))
                self.assertTrue(any(nobody(t) for t in plan.tensors))
                self.assertTrue(plan.explain() and plan.json())

    @launches
    def test_is_launched_on_what_is_there(self):
        for request, _ in draws():
            with self.subTest(**request):
                plan = rooftile.plan(**request)
                kernel = next(p for p in plan.plans if p.buildable).compile()
                inputs, outputs = [], []
                for t in plan.tensors:
                    tensor = Tensor({"fp8_e4m3": "bf16", "int32": "fp32"}.get(t.type, t.type), t.shape, t.strides)
                    if t.type == "fp8_e4m3":
                        tensor.view.dtype.code, tensor.view.dtype.bits = 10, 8
                    if t.type == "int32":
                        tensor.view.dtype.code = 0
                    if nobody(t):
                        tensor.view.data = None
                    tensor.managed.view = tensor.view
                    (outputs if t.is_output else inputs).append(tensor)
                kernel(*inputs, out=tuple(outputs))

    def test_is_refused_where_it_has_no_meaning(self):
        for fields in ({"m": -1, "n": 8, "k": 8}, {"m": 0, "n": -8, "k": 8}, {"m": 0, "n": 8}, {"shape": "0x8"}):
            with self.assertRaises(rooftile.RequestError):
                rooftile.plan("gemm", **fields)


if __name__ == "__main__":
    unittest.main()
