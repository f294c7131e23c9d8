"""What runs in the program that comes with the package, as far as that goes without a GPU."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import REQUESTS, launches

import rooftile
from rooftile import _program


def setUpModule():
    if "ROOFTILE_TEST_CUDA" in os.environ:  # what the program compiles with, whatever driver it is given
        patch = mock.patch.dict(os.environ, CUDA_HOME=os.environ["ROOFTILE_TEST_CUDA"])
        patch.start()
        unittest.addModuleCleanup(patch.stop)


class Program(unittest.TestCase):
    def test_takes_a_request_as_plan_does(self):
        for name, request in REQUESTS.items():
            plan = rooftile.plan(**request)
            rows = [*plan.context.command.split()[2:]]
            arguments = _program._request(name, {key: value for key, value in request.items() if key != "op"})
            with self.subTest(name):
                self.assertEqual(arguments[0], rows[0])
                printed = _program.run(["plan", *arguments, "--json"])
                self.assertEqual(rooftile.Record(rooftile._plan.json.loads(printed)).problem, plan.problem)

    def test_sweeps_plans(self):
        for name in REQUESTS:
            with self.subTest(name):
                swept = rooftile.sweep(name, draw=3, seed=5, plan_only=True, machine="h100-sxm")
                self.assertEqual(swept.schema, "rooftile/plan/1")
                self.assertGreaterEqual(len(swept.rows), 3)
                self.assertEqual(swept.rows[0].problem.op, name)

    def test_faults_are_exceptions(self):
        name, request = next(iter(REQUESTS.items()))
        with self.assertRaisesRegex(rooftile.RequestError, "draw"):
            rooftile.sweep(name, draw="many", seed=1, plan_only=True)
        with self.assertRaises(rooftile.RequestError):
            rooftile.validate(nothing_like_this=True)

    def test_is_missed_where_it_is_not(self):
        with mock.patch.object(_program, "PROGRAM", Path("/no/such/program")):
            with self.assertRaisesRegex(rooftile.InternalError, "/no/such/program: No such file"):
                rooftile.validate()

    def test_builds_source_from_text_and_file(self):
        text = "extern \"C\" __global__ void copy(const float4* x, float4* y) {\n    y[threadIdx.x] = x[threadIdx.x];\n}\n"
        asked = {"entry": "copy", "machine": "h100-sxm"}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "copy.cu"
            file.write_text(text)
            for source in (text, file, str(file)):
                self.assertIn("1 of 16 B", rooftile.build_source(source, **asked))
        self.assertIn("global memory: load of 16 B a thread", rooftile.build_source(text, ptx=True, **asked))
        with self.assertRaises(rooftile.CompileFailed) as caught:
            rooftile.build_source(text.replace("y[", "z["), **asked)
        self.assertIn("(2)", str(caught.exception) + caught.exception.detail, "the line of the text")

    def test_measures_no_source_that_is_not_given_whole(self):
        for flags, message in (({}, "entry"), ({"entry": "f", "nothing_like_this": 1}, "nothing_like_this")):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                rooftile.measure_source("void f() {\n}\n", **flags)

    @launches
    def test_measures_source_by_a_function(self):
        text = """extern "C" __global__ void twice(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + x[i];
}
"""
        asked = {"entry": "twice", "tensors": ["x:fp32[64,64]", "y:fp32[64,64]"], "args": ["int32:4096"], "grid": 16, "seed": 1}
        measured = rooftile.measure_source(text, reference=lambda x: x + x, other=["a guess=12.5"], cluster=2, **asked)
        self.assertEqual(measured.rows[0].problem.expression, "y = x + x")
        self.assertEqual(measured.rows[0].source.launch, "grid 16, block 256, cluster 2")
        self.assertEqual(measured.rows[0].baselines.a_guess_us, 12.5)
        self.assertIn("a guess", rooftile.measure_source(text, reference="y = x + x", other="a guess=12.5", table=True, **asked))
        for wrong, message in (
            ({"reference": lambda x: x.sort()}, "sort"),
            ({"reference": lambda q: q + q}, '"q"'),
            ({"reference": "y = x + x", "torch": True}, "torch=True"),
            ({"reference": "y = x + x", "cluster": 3}, "cluster 3"),
            ({"reference": "y = x + x", "other": "12"}, "other 12"),
            ({}, "reference"),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                rooftile.measure_source(text, **asked, **wrong)

    def test_is_on_the_path_of_an_environment(self):
        script = Path(sys.executable).parent / "rooftile"
        if Path(rooftile.__file__).parent.parent.name != "site-packages":
            self.skipTest("skipped: the package is not installed")
        self.assertIn(rooftile.__version__, subprocess.run([script, "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
