"""What runs in the program that comes with the package, as far as that goes without a GPU."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import REQUESTS

import rooftile
from rooftile import _program


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

    def test_builds_source_from_text_and_file(self):
        text = "extern \"C\" __global__ void copy(const float4* x, float4* y) {\n    y[threadIdx.x] = x[threadIdx.x];\n}\n"
        asked = {"entry": "copy", "machine": "h100-sxm"}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "copy.cu"
            file.write_text(text)
            for source in (text, file, str(file)):
                self.assertIn("1 of 16 B", rooftile.build_source(source, **asked))
        self.assertIn("global load of 16 B a thread", rooftile.build_source(text, ptx=True, **asked))
        with self.assertRaises(rooftile.CompileFailed) as caught:
            rooftile.build_source(text.replace("y[", "z["), **asked)
        self.assertIn("(2)", str(caught.exception) + caught.exception.detail, "the line of the text")

    def test_measures_no_source_that_is_not_given_whole(self):
        for flags, message in (({}, "entry"), ({"entry": "f", "nothing_like_this": 1}, "nothing-like-this")):
            with self.assertRaisesRegex(rooftile.RequestError, message):
                rooftile.measure_source("void f() {\n}\n", **flags)

    def test_is_on_the_path_of_an_environment(self):
        script = Path(sys.executable).parent / "rooftile"
        if Path(rooftile.__file__).parent.parent.name != "site-packages":
            self.skipTest("skipped: the package is not installed")
        self.assertIn(rooftile.__version__, subprocess.run([script, "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
