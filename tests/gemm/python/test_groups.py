"""Groups and batches of matrix products on PyTorch's tensors."""

import unittest

import torch
from on_gpu import TOLERANCE, assert_close, rand

import rooftile
from rooftile import torch as rt


def offsets_of(counts):
    return torch.tensor([0, *counts], device="cuda").cumsum(0).to(torch.int32)


def exact_groups(a, b, counts):
    """In fp64, group by group."""
    parts = a.double().split(list(counts))
    return torch.cat([rows @ of_group.double() for rows, of_group in zip(parts, b)])


COUNTS = (
    [200, 0, 37, 1, 0, 512],
    [1],
    [0, 0, 64],
    [3] * 40,
    [128] * 8,
    [(7 * i) % 23 for i in range(256)],
)


class Groups(unittest.TestCase):
    def test_each_group_has_its_weights(self):
        for dtype in (torch.bfloat16, torch.float16):
            for counts in COUNTS:
                for n, k, k_major in ((96, 160, True), (512, 256, False), (33, 77, True)):
                    with self.subTest(dtype=dtype, counts=counts, n=n, k=k, k_major=k_major):
                        a = rand(sum(counts), k, dtype=dtype)
                        b = rand(len(counts), n, k, dtype=dtype).mT if k_major else rand(len(counts), k, n, dtype=dtype)
                        exact = exact_groups(a, b, counts)
                        assert_close(rt.gemm(a, b, offsets=offsets_of(counts)), exact, scale=4 * k**0.5)
                        assert_close(rt.gemm(a, b, offsets_of(counts), groups=counts), exact, scale=4 * k**0.5)

    def test_a_graph_is_captured_once_and_replayed_with_other_counts(self):
        rows, groups, n, k = 1000, 8, 384, 256
        a, b, offsets = rand(rows, k), rand(groups, n, k).mT, offsets_of([rows // groups] * groups)
        rt.gemm(a, b, offsets=offsets)  # plans, compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = rt.gemm(a, b, offsets=offsets)
        for counts in (
            [125] * 8, [1000] + [0] * 7, [0] * 7 + [1000], [1] * 7 + [993], [0, 1, 999, 0, 0, 0, 0, 0],
            [7, 0, 300, 1, 0, 129, 63, 500],
        ):  # fmt: skip
            out.fill_(float("nan"))
            a.normal_()
            offsets.copy_(offsets_of(counts))
            graph.replay()
            assert_close(out, exact_groups(a, b, counts), scale=64)
        # Rows of no group stay as they were.
        out.fill_(7)
        offsets.copy_(offsets_of([100] * 8))
        graph.replay()
        assert_close(out[:800], exact_groups(a[:800], b, [100] * 8), scale=64)
        self.assertTrue(bool((out[800:] == 7).all()))

    def test_operands_of_eight_bits(self):
        counts, n, k = [40, 0, 129, 1, 300], 160, 400
        for of_a, of_b in ((torch.float8_e4m3fn, torch.float8_e4m3fn), (torch.float8_e5m2, torch.float8_e4m3fn)):
            for result in (torch.bfloat16, torch.float32):
                names = {torch.float8_e4m3fn: "fp8_e4m3", torch.float8_e5m2: "fp8_e5m2", torch.bfloat16: "bf16", torch.float32: "fp32"}
                a, b = rand(sum(counts), k).to(of_a), rand(len(counts), n, k).to(of_b).mT
                got = rt.gemm(a, b, offsets=offsets_of(counts), types=f"{names[of_a]},{names[of_b]},{names[result]}")
                exact = exact_groups(a.float(), b.float(), counts)
                # Products are added up in 14 bits.
                torch.testing.assert_close(got.double(), exact, rtol=TOLERANCE[torch.bfloat16], atol=k * 2**-12)

    def test_epilogues_read_what_is_each_groups_own(self):
        counts, n, k = [40, 0, 129, 1, 300], 96, 160
        groups, rows = len(counts), sum(counts)
        a, b, offsets = rand(rows, k), rand(groups, n, k).mT, offsets_of(counts)
        bias, gain, up = rand(groups, 1, n), torch.rand(groups, 1, 1, device="cuda"), rand(rows, n)
        got = rt.gemm(a, b, offsets=offsets, epilogue="d = gelu(acc * gain + bias) * up", bias=bias, gain=gain, up=up)
        group = torch.arange(groups, device="cuda").repeat_interleave(torch.tensor(counts, device="cuda"))
        exact = exact_groups(a, b, counts) * gain[group, 0].double() + bias[group, 0].double()
        assert_close(got, torch.nn.functional.gelu(exact) * up.double(), scale=200)

    def test_scales_of_eight_bits(self):
        counts, n, k, types = [40, 0, 129, 1, 300], 160, 400, "fp8_e4m3,fp8_e4m3,bf16"
        groups, rows = len(counts), sum(counts)
        a, b = rand(rows, k).to(torch.float8_e4m3fn), rand(groups, n, k).to(torch.float8_e4m3fn).mT
        offsets, exact = offsets_of(counts), exact_groups(a.float(), b.float(), counts)
        group = torch.arange(groups, device="cuda").repeat_interleave(torch.tensor(counts, device="cuda"))
        for scales, of_a, of_b in (("tensor", (1,), (groups, 1, 1)), ("row", (rows, 1), (groups, 1, n))):
            sa, sb = torch.rand(of_a, device="cuda") + 0.5, torch.rand(of_b, device="cuda") + 0.5
            got = rt.gemm(a, b, offsets=offsets, types=types, scales=scales, scale_a=sa, scale_b=sb)
            assert_close(got, exact * sa.double() * sb[group, 0].double(), scale=400)
        with self.assertRaisesRegex(rooftile.RequestError, "second tensor behind offsets is scale_b"):
            rt.gemm(a, b, offsets=offsets, types=types, scales="row", scale_a=sa, scale_b=sb[:, 0])
        # [K / 128][M], and [N / 128][K / 128] of each group.
        pitch = (rows + 3) // 4 * 4
        sa, sb = (torch.rand(4, pitch, device="cuda") + 0.5)[:, :rows], torch.rand(groups, 2, 4, device="cuda") + 0.5
        of_a = sa.repeat_interleave(128, 0)[:k].t().double()
        of_b = sb.repeat_interleave(128, 1)[:, :n].repeat_interleave(128, 2)[..., :k].double().mT
        got = rt.gemm(a, b, offsets=offsets, types=types, scales="block", scale_a=sa, scale_b=sb)
        assert_close(got, exact_groups(a.double() * of_a, b.double() * of_b, counts), scale=400)

    def test_compiles(self):
        counts, n, k = [64, 0, 100], 128, 128
        a, b, offsets = rand(sum(counts), k), rand(3, k, n), offsets_of(counts)
        compiled = torch.compile(lambda a, b, o: rt.gemm(a, b, offsets=o) * 2, fullgraph=True)
        assert_close(compiled(a, b, offsets), 2 * exact_groups(a, b, counts), scale=100)
        torch.library.opcheck(torch.ops.rooftile.gemm, ([a, b, offsets], ",,offsets", "{}"))

    def test_what_are_no_groups_is_refused(self):
        a, b, offsets = rand(100, 64), rand(4, 64, 32), offsets_of([25] * 4)
        for call, message in (
            (lambda: rt.gemm(a, b, offsets=offsets[:-1].clone()), r"int32 \[5\]"),
            (lambda: rt.gemm(a, b, offsets=offsets.long()), r"int32 \[5\]"),
            (lambda: rt.gemm(a, b, offsets=offsets, groups=[50, 50]), "2 groups, but b 4 matrices"),
            (lambda: rt.gemm(a, b, offsets=offsets, groups=[25, 25, 25, 24]), "99 rows in all, but m = 100"),
            (lambda: rt.gemm(a, b[0], offsets=offsets), r"b \[groups,K,N\]"),
            (lambda: rt.gemm(a, b, groups=[25] * 4), "is offsets"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                call()
        y = rt.gemm(a.requires_grad_(), b, offsets=offsets)
        with self.assertRaisesRegex(NotImplementedError, "groups"):
            y.sum().backward()


class Batches(unittest.TestCase):
    def test_are_torchs(self):
        for batch, m, n, k in ((2, 64, 96, 128), (7, 33, 40, 77), (40, 1, 256, 64), (3, 300, 8, 512)):
            for a in (rand(batch, m, k), rand(batch, k, m).mT, rand(m, k), rand(m, batch, k).transpose(0, 1), rand(1, m, k).expand(batch, m, k)):
                for b in (rand(batch, k, n), rand(batch, n, k).mT, rand(k, n)):
                    if a.dim() == 2 and b.dim() == 2:
                        continue
                    with self.subTest(a=(list(a.shape), a.stride()), b=(list(b.shape), b.stride())):
                        assert_close(rt.gemm(a, b), a.double() @ b.double(), scale=4 * k**0.5)

    def test_epilogues_of_each_product(self):
        a, b, bias, r = rand(5, 40, 64), rand(5, 64, 96), rand(5, 1, 96), rand(40, 96)
        got = rt.gemm(a, b, epilogue="d = relu(acc + bias) + r", bias=bias, r=r)
        assert_close(got, (a.double() @ b.double() + bias.double()).relu() + r.double(), scale=60)

    def test_what_is_no_batch_is_refused(self):
        for a, b, message in (
            (rand(2, 8, 8), rand(3, 8, 8), "a holds 2"),
            (rand(1, 8, 8), rand(1, 8, 8), "two axes"),
            (rand(2, 2, 8, 8), rand(8, 8), "4 axes"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                rt.gemm(a, b)


if __name__ == "__main__":
    unittest.main()
