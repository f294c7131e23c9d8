"""Matrix products on PyTorch's own samples."""

import unittest

import torch
from samples import check

from rooftile import torch as rt

TYPES = (torch.bfloat16, torch.float16)


class Products(unittest.TestCase):
    def test_linear_takes_every_sample(self):
        for dtype in TYPES:
            with self.subTest(dtype):
                right, refused = check("nn.functional.linear", dtype, rt.linear, scale=100)
                self.assertGreater(right, 0)
                self.assertEqual(refused, [])

    def test_matrices_are_multiplied_and_others_refused(self):
        for name in ("mm", "matmul"):
            for dtype in TYPES:
                with self.subTest(name, dtype=dtype):
                    right, refused = check(name, dtype, rt.gemm, scale=100)
                    self.assertGreater(right, 0)
                    self.assertTrue(all("\n" not in message for _, message in refused))


if __name__ == "__main__":
    unittest.main()
