"""Matrix products on PyTorch's tensors."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt


class Linear(unittest.TestCase):
    def test_is_torchs(self):
        for dtype in (torch.bfloat16, torch.float16):
            for lead, k, n in (((), 64, 32), ((1,), 64, 8), ((2, 3), 100, 7), ((4, 1, 33), 257, 129), ((128,), 1024, 512), ((3,), 1, 1)):
                for bias in (None, rand(n, dtype=dtype)):
                    with self.subTest(dtype=dtype, lead=lead, k=k, n=n, bias=bias is not None):
                        x, w = rand(*lead, k, dtype=dtype), rand(n, k, dtype=dtype)
                        exact = F.linear(x.double(), w.double(), None if bias is None else bias.double())
                        assert_close(rt.linear(x, w, bias), exact, scale=4 * k**0.5)

    def test_takes_tensors_as_they_lie(self):
        w = rand(48, 96)
        for x in (
            rand(96, 64).t(), rand(64, 200)[:, 3:99], rand(128, 96)[::2], rand(64, 1).expand(64, 96),
            rand(64 * 96 + 1)[1:].view(64, 96), rand(64, 96).narrow(0, 3, 40),
        ):  # fmt: skip
            assert_close(rt.linear(x, w), F.linear(x.double(), w.double()), scale=40)
        assert_close(rt.linear(rand(0, 96), w), rand(0, 48))

    def test_gradients(self):
        for lead in ((40,), (2, 3, 8)):
            ours = [t.requires_grad_() for t in (rand(*lead, 64), rand(32, 64), rand(32))]
            exact = [t.detach().double().requires_grad_() for t in ours]
            y = rt.linear(*ours)
            given = rand(*y.shape)
            y.backward(given)
            F.linear(*exact).backward(given.double())
            for mine, his in zip(ours, exact):
                assert_close(mine.grad, his.grad, scale=40)

    def test_gradients_by_differences(self):
        # A product of small whole numbers is exact, and so are its differences by whole steps.
        def whole(*shape):
            return torch.randint(-3, 4, shape, device="cuda").bfloat16().requires_grad_()

        for function, inputs in (
            (rt.linear, (whole(3, 16), whole(8, 16))),
            (rt.linear, (whole(3, 16), whole(8, 16), whole(8))),
            (rt.gemm, (whole(3, 16), whole(16, 8))),
        ):
            self.assertTrue(torch.autograd.gradcheck(function, inputs, eps=1, atol=0, rtol=0))

    def test_epilogues(self):
        for shape, text, function in (
            ((32,), "d = gelu(acc + r)", lambda acc, r: F.gelu(acc + r)),
            ((40, 32), "d = acc * 0.5 + r", lambda acc, r: acc * 0.5 + r),
            ((40, 1), "d = silu(acc) * r", lambda acc, r: F.silu(acc) * r),
        ):
            with self.subTest(text):
                ours = [t.requires_grad_() for t in (rand(40, 64), rand(64, 32), rand(*shape))]
                exact = [t.detach().double().requires_grad_() for t in ours]
                y = rt.gemm(*ours[:2], r=ours[2], epilogue=text)
                wanted = function(exact[0] @ exact[1], exact[2])
                assert_close(y, wanted, scale=40)
                given = rand(*y.shape)
                y.backward(given)
                wanted.backward(given.double())
                for mine, his in zip(ours, exact):
                    assert_close(mine.grad, his.grad, scale=80)
        for pairs, of in (("interleaved", lambda x: (x[:, 0::2], x[:, 1::2])), ("split", lambda x: (x[:, :32], x[:, 32:]))):
            with self.subTest(pairs):
                ours = [t.requires_grad_() for t in (rand(40, 64), rand(64, 64), rand(32))]
                exact = [t.detach().double().requires_grad_() for t in ours]
                y = rt.gemm(ours[0], ours[1].t(), r=ours[2], epilogue="d = silu(gate) * up + r", pairs=pairs)
                gate, up = of(exact[0] @ exact[1].t())
                wanted = F.silu(gate) * up + exact[2]
                assert_close(y, wanted, scale=80)
                given = rand(*y.shape)
                y.backward(given)
                wanted.backward(given.double())
                for mine, his in zip(ours, exact):
                    assert_close(mine.grad, his.grad, scale=640)
        a, b, r = rand(40, 64), rand(64, 32), rand(32)
        d, z = rt.gemm(a, b, r=r, epilogue="z1 = acc + r; d = gelu(z1); z = z1")
        assert_close(z, a.double() @ b.double() + r.double(), scale=40)
        assert_close(d, F.gelu(a.double() @ b.double() + r.double()), scale=40)
        scaled = rt.gemm(rand(8, 16).requires_grad_(), rand(16, 8), alpha=2)
        with self.assertRaisesRegex(NotImplementedError, "alpha"):
            scaled.sum().backward()
        operands = [rand(64, 96).requires_grad_(), rand(96, 32).requires_grad_(), rand(32).requires_grad_()]
        torch.library.opcheck(torch.ops.rooftile.gemm, (operands, ",,r", '{"epilogue": "d = gelu(acc + r)"}'))

    def test_eight_bits(self):
        m, n, k = 72, 160, 400
        types = "fp8_e4m3,fp8_e4m3,bf16"
        a, b = (rand(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
        exact = a.double() @ b.double().t()

        def scales(*shape):
            return torch.rand(*shape, device="cuda") + 0.5

        assert_close(rt.gemm(a, b.t(), types=types), exact, scale=400)
        sa, sb = scales(1), scales(1)
        got = rt.gemm(a, b.t(), types=types, scales="tensor", scale_a=sa, scale_b=sb)
        assert_close(got, exact * sa.double() * sb.double(), scale=400)
        sa, sb = scales(m, 1), scales(n)
        got = rt.gemm(a, b.t(), types=types, scales="row", scale_a=sa, scale_b=sb)
        assert_close(got, exact * sa.double() * sb.double(), scale=400)
        # [K / 128][M] and [N / 128][K / 128], lines of multiples of four numbers.
        sa, sb = scales(4, m), scales(2, 4)
        of_a = sa.repeat_interleave(128, 0)[:k].t().double()
        of_b = sb.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k].double()
        got = rt.gemm(a, b.t(), types=types, scales="block", scale_a=sa, scale_b=sb, epilogue="d = relu(acc)")
        assert_close(got, ((a.double() * of_a) @ (b.double() * of_b).t()).relu(), scale=400)
        for named, message in (
            ({"scale_b": sb, "scale_a": sa}, "first tensor behind a and b is scale_a"),
            ({"scale_a": sa, "scale_b": sa}, "second tensor behind a and b is scale_b"),
            ({"scale_a": sa}, "second tensor behind a and b is scale_b"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                rt.gemm(a, b.t(), types=types, scales="block", **named)

    def test_results_of_eight_bits(self):
        k, one = 64, torch.ones((), device="cuda")
        a, b = torch.zeros(32, k, device="cuda"), torch.zeros(32, k, device="cuda")
        a[0, 0], a[1] = 448, torch.randint(-8, 9, (k,), device="cuda")
        b[:, 0], b[0, 1:] = torch.arange(32, device="cuda") - 16, torch.randint(-8, 9, (k - 1,), device="cuda")
        b[5, 0] = float("nan")
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        exact = a.float() @ b.float().t()
        for name, dtype in (("fp8_e4m3", torch.float8_e4m3fn), ("fp8_e5m2", torch.float8_e5m2)):
            types, largest = f"fp8_e4m3,fp8_e4m3,{name}", torch.finfo(dtype).max
            got = rt.gemm(a, b.t(), types=types)
            self.assertEqual(got.dtype, dtype)
            # Whole numbers, exact in fp32: larger ones are the largest number, and NaN stays.
            wanted = exact.clamp(-largest, largest).to(dtype)
            self.assertTrue(torch.equal(got.float().nan_to_num(-1e6), wanted.float().nan_to_num(-1e6)), name)
            got = rt.gemm(a, b.t(), types=types, epilogue="d = acc * scale_d", scale_d=torch.full((1,), 0.5, device="cuda"))
            wanted = (exact * 0.5).clamp(-largest, largest).to(dtype)
            self.assertTrue(torch.equal(got.float().nan_to_num(-1e6), wanted.float().nan_to_num(-1e6)), name)
        theirs = torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.float8_e4m3fn)
        got = rt.gemm(a, b.t(), types="fp8_e4m3,fp8_e4m3,fp8_e4m3")
        self.assertTrue(torch.equal(got.float().nan_to_num(-1e6), theirs.float().nan_to_num(-1e6)), "as PyTorch's scaled product")
        with self.assertRaisesRegex(rooftile.RequestError, "results of 8 bits are of operands of 8 bits"):
            rt.gemm(rand(32, k), rand(32, k).t(), types="bf16,bf16,fp8_e4m3")

    def test_a_bias_that_lies_anyhow(self):
        x, w = rand(40, 64), rand(32, 64)
        for bias in (rand(33)[1:], rand(64)[::2], rand(1).expand(32), rand(34)[2:]):
            exact = F.linear(x.double(), w.double(), bias.double())
            assert_close(rt.linear(x, w, bias), exact, scale=40)
            assert_close(rt.linear(x, w, bias, m_range=(1, 64)), exact, scale=40)

    def test_gradients_of_some(self):
        for wanted in range(1, 8):
            ours = [t.requires_grad_(bool(wanted >> i & 1)) for i, t in enumerate((rand(40, 64), rand(32, 64), rand(32)))]
            exact = [t.detach().double().requires_grad_(t.requires_grad) for t in ours]
            given = rand(40, 32)
            rt.linear(*ours).backward(given)
            F.linear(*exact).backward(given.double())
            for mine, his in zip(ours, exact):
                self.assertEqual(mine.grad is None, his.grad is None)
                if mine.grad is not None:
                    assert_close(mine.grad, his.grad, scale=40)

    def test_a_range_of_rows_compiles_nothing_more(self):
        w, b, rows = rand(256, 128), rand(256), (1, 512)
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, ROOFTILE_CACHE_DIR=folder):

            def cached():
                return {file for file in Path(folder).rglob("*") if file.is_file()}

            x = rand(100, 128)
            assert_close(rt.linear(x, w, b, m_range=rows), F.linear(x.double(), w.double(), b.double()), scale=40)
            ahead = cached()
            self.assertTrue(ahead)
            for m in (1, 2, 7, 64, 65, 130, 257, *torch.randint(1, 512, (100,)).tolist(), 511, 512):
                x = rand(m, 128)
                assert_close(rt.linear(x, w, b, m_range=rows), F.linear(x.double(), w.double(), b.double()), scale=40)
            self.assertEqual(cached(), ahead)
            # Beyond the range, without rows, of more axes, of other strides, and traced.
            for x in (rand(600, 128), rand(0, 128), rand(3, 5, 128), rand(40, 256)[:, 128:]):
                assert_close(rt.linear(x, w, b, m_range=rows), F.linear(x.double(), w.double(), b.double()), scale=40)
            compiled = torch.compile(lambda x: rt.linear(x, w, b, m_range=rows), fullgraph=True, backend="aot_eager")
            x = rand(72, 128)
            self.assertTrue(torch.equal(compiled(x), rt.linear(x, w, b, m_range=rows)))
        for wrong in ((0, 4), (5, 1), (1, "x"), (1,)):
            with self.assertRaisesRegex(rooftile.RequestError, "m_range"):
                rt.linear(rand(4, 128), w, m_range=wrong)

    def test_compiles_exports_and_is_captured(self):
        w, b, x = rand(64, 96), rand(64), rand(32, 96)
        wanted = rt.linear(x, w, b)
        self.assertTrue(torch.equal(torch.compile(rt.linear, fullgraph=True, backend="aot_eager")(x, w, b), wanted))

        class Layer(torch.nn.Module):
            def forward(self, x):
                return rt.linear(x, w, b)

        self.assertTrue(torch.equal(torch.export.export(Layer(), (x,)).module()(x), wanted))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = rt.linear(x, w, b)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(captured, wanted))

    def test_opcheck(self):
        for gradients in (False, True):
            operands = [rand(64, 96).requires_grad_(gradients), rand(96, 32).requires_grad_(gradients)]
            torch.library.opcheck(torch.ops.rooftile.gemm, (operands, ",", "{}"))

    def test_autocast(self):
        x, w = rand(32, 96, dtype=torch.float32), rand(64, 96, dtype=torch.float32)
        with torch.autocast("cuda", torch.bfloat16):
            y = rt.linear(x, w)
        assert_close(y, F.linear(x.bfloat16().double(), w.bfloat16().double()), scale=40)

    def test_refusals(self):
        for call, message in (
            (lambda: rt.linear(rand(4, 8, dtype=torch.float32), rand(4, 8, dtype=torch.float32)), "fp32"),
            (lambda: rt.linear(rand(4, 8), rand(4, 9)), "accepted are"),
            (lambda: rt.gemm(rand(4, 8), rand(9, 4)), "the columns of a are the rows of b"),
            (lambda: rt.gemm(rand(4, 8), rand(8, 4).cpu()), "on cpu"),
            (lambda: rt.linear(rand(4, 8).cpu(), rand(4, 8).cpu()), "on cpu"),
            (lambda: rt.gemm(rand(4, 8), rand(8, 4), r=rand(4)), "no epilogue that reads it"),
            (lambda: rt.gemm(rand(4, 8), rand(8, 4), r=rand(5), epilogue="d = acc + r"), "accepted are dense ones"),
            (lambda: rt.gemm(rand(4, 8), rand(8, 4), epilogue="d = softmax(acc)"), "takes whole rows"),
            (lambda: rt.gemm(rand(4, 8), rand(8, 4), nothing_like_this=1), "has no field"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                call()


if __name__ == "__main__":
    unittest.main()
