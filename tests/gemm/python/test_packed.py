"""Products by packed weights on PyTorch's tensors."""

import unittest

import torch
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt


def unpacked(q, scales, zeros, group):
    width = q.shape[1] if group == "row" else group
    index = torch.arange(q.shape[1], device=q.device) // width
    if zeros is None:
        return q.double() * scales.double()[:, index]
    if zeros.is_floating_point():
        return q.double() * scales.double()[:, index] - zeros.double()[:, index]
    return (q.double() - zeros.double()[:, index]) * scales.double()[:, index]


class Packed(unittest.TestCase):
    def setUp(self):
        if torch.cuda.get_device_capability() < (8, 0):
            self.skipTest("packed weights are for compute capability 8.0 and later")

    def test_linear_is_that_of_the_unpacked_weights(self):
        for dtype in (torch.bfloat16, torch.float16):
            for weights, group, kind, n, k, lead in (
                ("int4", 128, "none", 256, 512, (1,)), ("uint4", 64, "int", 200, 328, (2, 3)), ("int4", 32, "int", 65, 136, (17,)),
                ("uint4", "row", "none", 300, 1024, ()), ("uint4", 32, "float", 200, 264, (5,)), ("int4", 128, "float", 128, 512, (64,)),
                ("int8", 32, "none", 200, 264, (5,)),
            ):  # fmt: skip
                with self.subTest(dtype=dtype, weights=weights, group=group):
                    low, values = {"int4": (-8, 16), "uint4": (0, 16), "int8": (-128, 256)}[weights]
                    groups = 1 if group == "row" else -(-k // group)
                    q = torch.randint(low, low + values, (n, k), dtype=torch.int8)
                    scales = (torch.rand(n, groups) + 0.5).to(torch.bfloat16)
                    whole = torch.randint(low, low + 16, (n, groups), dtype=torch.int8)
                    zeros = {"none": None, "int": whole, "float": (scales * whole).to(torch.bfloat16)}[kind]
                    packed = rooftile.pack(q, scales, zeros, weights=weights, group=group)
                    x, bias = rand(*lead, k, dtype=dtype), rand(n, dtype=dtype)
                    exact = x.double() @ unpacked(q, scales, zeros, group).cuda().t()
                    scale = 4 * values * k**0.5
                    assert_close(rt.linear(x, packed), exact, scale=scale)
                    assert_close(rt.linear(x, packed, bias), exact + bias.double(), scale=scale)

    def test_of_fp8_is_of_the_numbers_as_they_are(self):
        q, scales = torch.randint(-8, 8, (200, 512), dtype=torch.int8), (torch.rand(200, 4) + 0.5).to(torch.bfloat16)
        packed = rooftile.pack(q, scales)
        exact, bias = unpacked(q, scales, None, 128).cuda().t(), rand(200, dtype=torch.float16)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            for rows in (3, 100, 1000):
                with self.subTest(dtype=dtype, rows=rows):
                    x = rand(rows, 512).to(dtype)
                    self.assertEqual(rt.linear(x, packed).dtype, torch.bfloat16)
                    assert_close(rt.linear(x, packed), x.double() @ exact, scale=64 * 512**0.5)
                    assert_close(rt.linear(x, packed, bias), x.double() @ exact + bias.double(), scale=64 * 512**0.5)
        with self.assertRaisesRegex(rooftile.RequestError, "accepted is torch.bfloat16"):
            rt.linear(x, packed, bias.float())

    def test_refuses_what_does_not_fit(self):
        packed = rooftile.pack(torch.zeros(64, 128, dtype=torch.int8), torch.ones(64, 1))
        with self.assertRaisesRegex(rooftile.RequestError, "128"):
            rt.linear(rand(2, 64), packed)
        with self.assertRaisesRegex(rooftile.RequestError, "gradient"):
            rt.linear(rand(2, 128).requires_grad_(), packed)
        self.assertEqual(rt.linear(rand(0, 128), packed).shape, (0, 64))
