"""Sizes of 0, as torch has them: results without elements, and sums of nothing."""

import random
import unittest

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt


class Nothing(unittest.TestCase):
    def test_products(self):
        drawn = random.Random(6)
        for _ in range(60):
            m, n, k = (drawn.choice((0, 1, 8, 33, 128)) for _ in range(3))
            if 0 not in (m, n, k):
                k = 0
            a = rand(m, k) if drawn.random() < 0.5 else rand(k, m).t()
            b = rand(k, n) if drawn.random() < 0.5 else rand(n, k).t()
            bias, other = rand(n), rand(m, n)
            with self.subTest(m=m, n=n, k=k):
                assert_close(rt.gemm(a, b), a.double() @ b.double())
                assert_close(rt.linear(a, b.t(), bias), F.linear(a.double(), b.t().double(), bias.double()))
                assert_close(rt.gemm(a, b, epilogue="d = gelu(acc + bias) + z", bias=bias, z=other),
                             F.gelu(a.double() @ b.double() + bias.double()) + other.double(), scale=4)  # fmt: skip
                assert_close(rt.gemm(a, b, alpha=3, beta=-2, c=other), -2 * other.double() + 3 * (a.double() @ b.double()), scale=4)
                batches = drawn.choice((0, 3))
                x, y = rand(batches, m, k), rand(batches, k, n)
                assert_close(rt.gemm(x, y), x.double() @ y.double())
                mine, his = [t.detach().requires_grad_() for t in (a, b)], [t.double().requires_grad_() for t in (a, b)]
                rt.gemm(*mine).sum().backward()
                torch.matmul(*his).sum().backward()
                for p, q in zip(mine, his):
                    assert_close(p.grad, q.grad, scale=16)

    def test_a_sum_of_nothing_is_the_same_at_each_launch(self):
        a, b = rand(64, 0), rand(0, 128)
        for _ in range(5):
            out = torch.full((64, 128), 7.0, device="cuda", dtype=torch.bfloat16)
            del out
            self.assertFalse(rt.gemm(a, b).any())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = rt.gemm(a, b)
        y.fill_(7)
        graph.replay()
        torch.cuda.synchronize()
        self.assertFalse(y.any())

    def test_groups_without_rows(self):
        for groups, k in ((3, 64), (1, 64), (3, 0)):
            offsets = torch.zeros(groups + 1, device="cuda", dtype=torch.int32)
            y = rt.gemm(rand(0, k), rand(groups, k, 48), offsets=offsets)
            self.assertEqual(y.shape, (0, 48))

    def test_attention(self):
        drawn = random.Random(6)
        for _ in range(20):
            batch, heads, q, kv = (drawn.choice(x) for x in ((0, 2), (0, 4), (0, 1, 70), (0, 1, 70)))
            if 0 not in (batch, heads, q, kv):
                q = 0
            x, k, v = rand(batch, heads, q, 64), rand(batch, heads, kv, 64), rand(batch, heads, kv, 64)
            with self.subTest(batch=batch, heads=heads, q=q, kv=kv):
                exact = torch.softmax(x.double() @ k.double().mT / 8, -1) @ v.double()
                assert_close(rt.attention(x, k, v), exact)
        none = torch.zeros(4, device="cuda", dtype=torch.int32)
        self.assertEqual(rt.attention(*(rand(1, 4, 0, 64) for _ in range(3)), cu_seqlens=none).shape, (1, 4, 0, 64))

    def test_chains(self):
        for m, d, ff in ((0, 128, 512), (256, 128, 0), (0, 0, 0), (256, 0, 512)):
            x, u, v = rand(m, d), rand(ff, d), rand(d, ff)
            assert_close(rt.chain(x, u, v, act="relu"), torch.relu(x.double() @ u.double().t()) @ v.double().t())

    def test_expressions(self):
        for shape in ((0, 64), (64, 0), (0,), (0, 0)):
            x = rand(*shape)
            assert_close(rt.fuse("y = gelu(x) * 2", x=x), F.gelu(x.double()) * 2)
            assert_close(rt.fuse("y = softmax(x)", x=x), torch.softmax(x.double(), -1))

    def test_by_plans(self):
        for m, n, k in ((0, 64, 32), (64, 0, 32), (64, 96, 0)):
            kernel = rooftile.plan("gemm", m=m, n=n, k=k, buildable_only=True).compile()
            y = kernel(rand(m, k), rand(n, k).t())
            self.assertEqual(y.shape, (m, n))
            self.assertFalse(y.any())


if __name__ == "__main__":
    unittest.main()
