"""What the documents promise of tensors: packed sequences, what a score reads, copies of what no kernel takes, a C that is not read."""

import unittest

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

from rooftile import torch as rt


def packed_attention(q, k, v, bounds, change=lambda s, i, j: s):
    out = torch.zeros_like(q, dtype=torch.double)
    for begin, end in zip(bounds[:-1], bounds[1:]):
        a, b, c = (x[:, :, begin:end].double() for x in (q, k, v))
        place = torch.arange(end - begin, device="cuda", dtype=torch.double)
        out[:, :, begin:end] = torch.softmax(change(a @ b.mT / q.shape[-1] ** 0.5, place[:, None], place[None]), -1) @ c
    return out


class Promises(unittest.TestCase):
    def test_attention_takes_cu_seqlens_and_tensors_of_a_score(self):
        for bounds in ([0, 128, 128, 428], [0, 1], [0, 77, 200, 201, 600]):
            cu = torch.tensor(bounds, device="cuda", dtype=torch.int32)
            q, k, v = (rand(1, 4, bounds[-1], 64) for _ in range(3))
            slope = torch.randn(4, device="cuda")
            lengths = [b - a for a, b in zip(bounds, bounds[1:])]
            exact = packed_attention(q, k, v, bounds)
            assert_close(rt.attention(q, k, v, cu_seqlens=cu), exact, scale=2)
            assert_close(rt.attention(q, k, v, cu), exact, scale=2)
            assert_close(rt.attention(q, k, v, cu_seqlens=cu, lengths=lengths), exact, scale=2)
            biased = packed_attention(q, k, v, bounds, lambda s, i, j: s + slope.double()[:, None, None] * (j - i) / 64)
            score = "s = s + slope * (j - i) / 64"
            assert_close(rt.attention(q, k, v, cu_seqlens=cu, slope=slope, score=score), biased, scale=2)
        q, k, v = (rand(2, 4, 130, 64) for _ in range(3))
        slope = torch.randn(4, device="cuda")
        place = torch.arange(130, device="cuda", dtype=torch.double)
        s = q.double() @ k.double().mT / 8 + slope.double()[:, None, None] * (place[None] - place[:, None]) / 64
        assert_close(rt.attention(q, k, v, slope=slope, score=score), torch.softmax(s, -1) @ v.double(), scale=2)

    def test_what_no_kernel_takes_is_copied(self):
        q = rand(2 * 4 * 100 * 64 + 8)
        for begin in (0, 1, 4):  # off 16 bytes
            x = q[begin : begin + 2 * 4 * 100 * 64].view(2, 4, 100, 64)
            assert_close(rt.attention(x, x, x), F.scaled_dot_product_attention(*[x.double()] * 3), scale=2)
        wide = rand(2, 4, 100, 128)[..., ::2]
        assert_close(rt.attention(wide, wide, wide), F.scaled_dot_product_attention(*[wide.double()] * 3), scale=2)
        one = rand(1, 4, 100, 64).expand(2, 4, 100, 64)
        assert_close(rt.attention(one, one, one), F.scaled_dot_product_attention(*[one.double()] * 3), scale=2)
        a, b = rand(64, 64).t()[::2, ::2], rand(32, 1).expand(32, 48)
        assert_close(rt.gemm(a, b), a.double() @ b.double(), scale=8)
        x, z = rand(64, 128)[:, ::2], rand(64, 64)[:, 1:]
        assert_close(rt.fuse("y = gelu(x)", x=x), F.gelu(x.double()))
        assert_close(rt.fuse("y = gelu(x)", x=z), F.gelu(z.double()))
        # Groups whose rows begin anywhere of a contiguous axis that is not K.
        rows, experts = rand(64, 101).t(), rand(3, 64, 48)
        offsets = torch.tensor([0, 33, 34, 101], device="cuda", dtype=torch.int32)
        exact = torch.cat([rows[i:j].double() @ e.double() for i, j, e in zip([0, 33, 34], [33, 34, 101], experts)])
        assert_close(rt.gemm(rows, experts, offsets=offsets), exact, scale=8)

    def test_results_lie_as_asked_for(self):
        x = rand(2, 100, 4, 64).transpose(1, 2)  # heads follow each other in a row
        y = rt.attention(x, x, x)
        assert_close(y, F.scaled_dot_product_attention(*[x.double()] * 3), scale=2)
        self.assertTrue(y.transpose(1, 2).is_contiguous())
        compiled = torch.compile(rt.attention, fullgraph=True)(x, x, x)
        self.assertEqual(compiled.stride(), y.stride())
        a, b = rand(64, 64), rand(64, 48)
        y = rt.gemm(a, b, ldc=56)
        self.assertEqual(y.stride(), (56, 1))
        assert_close(y, a.double() @ b.double(), scale=8)

    def test_a_beta_of_0_reads_no_c(self):
        a, b, c = rand(64, 64), rand(64, 48), torch.full((64, 48), float("nan"), device="cuda", dtype=torch.bfloat16)
        assert_close(rt.gemm(a, b, c=c, beta=0), a.double() @ b.double(), scale=8)
        assert_close(rt.gemm(a, b, c=c, alpha=2, beta=0.0), 2 * (a.double() @ b.double()), scale=16)
        assert_close(rt.gemm(a, b, c=c, beta=0, epilogue="d = relu(acc)"), torch.relu(a.double() @ b.double()), scale=8)
        self.assertTrue(rt.gemm(a, b, c=c, beta=1).isnan().all())


if __name__ == "__main__":
    unittest.main()
