"""The tuned mode on a GPU: results as of the plain call, inputs untouched, chosen once, kept, and never made while a graph is captured."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import torch
from on_gpu import assert_close, rand

import rooftile
from rooftile import torch as rt


class TunedOnGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.before = os.environ.get("ROOFTILE_CACHE_DIR")
        os.environ["ROOFTILE_CACHE_DIR"] = self.folder.name

    def tearDown(self):
        if self.before is None:
            del os.environ["ROOFTILE_CACHE_DIR"]
        else:
            os.environ["ROOFTILE_CACHE_DIR"] = self.before
        self.folder.cleanup()

    def choices(self):
        file = Path(self.folder.name) / "tuned.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def test_linear_chooses_once(self):
        x, weight, bias = rand(520, 1032), rand(2056, 1032), rand(2056)
        before = [t.clone() for t in (x, weight, bias)]
        exact = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
        scale = float(exact.abs().max())
        first = rt.linear(x, weight, bias, tune=4)
        assert_close(first, exact, scale)
        self.assertEqual(len(self.choices()), 1)
        self.assertEqual(len(self.choices()[0]["candidates"]), 4)
        again = rt.linear(x, weight, bias, tune=4)
        self.assertTrue(torch.equal(first, again))
        self.assertEqual(len(self.choices()), 1)
        for t, b in zip((x, weight, bias), before, strict=True):
            self.assertTrue(torch.equal(t, b))

    def test_the_choice_holds_for_a_kernel_and_is_no_slower(self):
        plan = rooftile.plan("gemm", m=192, n=2880, k=4096)
        kernel = rooftile.compile(plan, tune=4)
        a, b = rand(192, 4096), rand(2880, 4096)
        out = kernel(a, b)
        exact = a.double() @ b.double().t()
        assert_close(out, exact, float(exact.abs().max()))
        (choice,) = self.choices()
        self.assertEqual(choice["rank"], kernel.plan.rank)
        if choice["rank"] > 1:
            self.assertGreater(choice["ratio"]["low"], 1)
        other = rooftile.compile(rooftile.plan("gemm", m=192, n=2880, k=4096), tune=4)
        other(a, b)
        self.assertEqual(other.plan.rank, kernel.plan.rank)
        self.assertEqual(self.choices(), [choice])

    def test_functions_of_expressions_take_it(self):
        x = rand(4096, 4096)
        out = rt.fuse("y = softmax(x)", x=x, tune=3)
        assert_close(out, torch.softmax(x.double(), -1))
        self.assertEqual(len(self.choices()), 1)

    def test_a_capture_uses_a_choice_and_makes_none(self):
        plan = rooftile.plan("gemm", m=304, n=512, k=1000)
        a, b = rand(304, 1000), rand(512, 1000)
        plan.compile()(a, b)
        kernel = rooftile.compile(plan, tune=2)
        kernel.load()
        out = torch.empty(304, 512, dtype=torch.bfloat16, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel(a, b, out=out)
        self.assertEqual(self.choices(), [])
        graph.replay()
        exact = a.double() @ b.double().t()
        assert_close(out, exact, float(exact.abs().max()))
        kernel(a, b, out=out)
        self.assertEqual(len(self.choices()), 1)
        # Kept: another kernel uses it in its first launch, which is captured.
        other = rooftile.compile(rooftile.plan("gemm", m=304, n=512, k=1000), tune=2)
        other.load()
        again = torch.empty_like(out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            other(a, b, out=again)
        graph.replay()
        self.assertEqual(other.plan.rank, kernel.plan.rank)
        self.assertTrue(torch.equal(again, kernel(a, b)))

    def test_compiled_functions_and_gradients(self):
        x, weight = rand(256, 512), rand(384, 512).requires_grad_()
        step = torch.compile(lambda x, w: rt.linear(x, w, tune=2), fullgraph=True)
        step(x, weight).float().sum().backward()
        assert_close(weight.grad, x.double().sum(0).expand(384, 512), float(x.double().sum(0).abs().max()))


if __name__ == "__main__":
    unittest.main()
