"""Plans, machines and errors: needs neither GPU nor toolkit."""

import ast
import copy
import html.parser
import json
import os
import pickle
import subprocess
import sys
import unittest
from pathlib import Path

from support import BY_TENSORS, DTYPES, REQUESTS

import rooftile


def planned(request):
    return rooftile.plan(**request)


class Machines(unittest.TestCase):
    def test_are_listed_with_their_numbers(self):
        self.assertIn("h100-sxm", rooftile.machines())
        machine = rooftile.machine("h100-sxm")
        self.assertEqual(machine.id, "h100-sxm")
        self.assertTrue(all(fact.source for fact in machine.facts))

    def test_an_unknown_one_is_refused(self):
        with self.assertRaisesRegex(rooftile.RequestError, "h100-sxm"):
            rooftile.machine("h100-sx")


class Functions(unittest.TestCase):
    """One of each operation, written by tools/python-operations."""

    def test_are_those_of_the_library(self):
        tool = Path(__file__).resolve().parents[2] / "tools/python-operations"
        made = subprocess.run([sys.executable, tool], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout, Path(rooftile._operations.__file__).read_text(), "tools/python-operations > python/rooftile/_operations.py")

    def test_plan_as_plan_does(self):
        for name, request in REQUESTS.items():
            with self.subTest(name):
                fields = {("tensors" if key == "tensor" else key): value for key, value in request.items() if key != "op"}
                self.assertEqual(getattr(rooftile, name)(**fields).json(), planned(request).json())
                self.assertIn(rooftile.operations()[name].meaning, getattr(rooftile, name).__doc__)
                with self.assertRaises(TypeError):
                    getattr(rooftile, name)(**fields, no_such_field=1)

    def test_send_a_range_to_plan(self):
        with self.assertRaisesRegex(rooftile.RequestError, "rooftile.plan"):
            rooftile.gemm("1..64", 64, 64)


class WhatAPlanSays(unittest.TestCase):
    def test_is_data(self):
        for name, request in REQUESTS.items():
            with self.subTest(name):
                plan = planned(request)
                steps = plan.breakdown
                self.assertEqual(sum(step.cost_ns for step in steps), steps[-1].time_ns)
                self.assertAlmostEqual(steps[-1].time_ns / 1000, plan.prediction.time_us, places=2)
                self.assertEqual(plan.counterfactuals, ())
                self.assertTrue(plan.reasons)
                for remark in (*plan.reasons, *plan.walls):
                    self.assertTrue(remark.title and remark.text)
                for number in (n for other in plan.plans[1:3] for n in other.counterfactuals):
                    self.assertEqual(number.wins == "below", number.threshold < number.value)

    def test_is_in_its_repr(self):
        for name, request in REQUESTS.items():
            with self.subTest(name):
                plan = planned(request)
                self.assertIn(plan.label, repr(plan))
                self.assertLess(len(repr(plan)), 400)
                self.assertLess(len(repr(rooftile._record.Record(json.loads(plan.json())))), 2500)
                self.assertLess(len(plan._repr_html_().splitlines()), 60)

    def test_becomes_a_frame(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                planned(REQUESTS["gemm"]).to_pandas()
            return
        plan = planned(REQUESTS["gemm"])
        frame = plan.to_pandas()
        self.assertEqual(list(frame["prediction.time_us"]), [p.prediction.time_us for p in plan.plans])
        self.assertIn("config.tile_m", frame.columns)

class Plans(unittest.TestCase):
    def test_every_operation_plans(self):
        self.assertLessEqual(set(REQUESTS), set(rooftile.operations()))
        for name, request in REQUESTS.items():
            with self.subTest(name):
                plan = planned(request)
                self.assertEqual((plan.rank, plan.problem.op, plan.machine.id), (1, name, request["machine"]))
                self.assertGreater(plan.prediction.time_us, 0)
                self.assertIs(plan.buildable, True)
                self.assertEqual([p.rank for p in plan.plans], list(range(1, len(plan.plans) + 1)))
                self.assertEqual(json.loads(plan.json())["plans"], json.loads(plan.json(indent=1))["plans"])
                self.assertIn(f"rooftile plan {name} ", plan.context.command)
                self.assertEqual({t.is_output for t in plan.tensors}, {False, True})
                self.assertIn(name, repr(plan))

    def test_tensors_that_lie_somewhere_give_the_same_problem(self):
        for name, rest in BY_TENSORS.items():
            plan = planned(REQUESTS[name])
            inputs = tuple(
                (t.name, t.type, DTYPES[t.type][1], t.shape, t.strides, 0) for t in plan.tensors if not t.is_output
            )
            with self.subTest(name):
                plans = rooftile._rooftile.Plans(json.dumps(rest), inputs)
                self.assertEqual(json.loads(plans.json())["problem"], json.loads(plan.json())["problem"])
                with self.assertRaises(rooftile.RequestError):
                    rooftile._rooftile.Plans(json.dumps(REQUESTS[name]), inputs)  # twice the same
                with self.assertRaises(rooftile.RequestError):
                    rooftile._rooftile.Plans(json.dumps(rest), inputs[:1])
                with self.assertRaises(rooftile.RequestError):
                    rooftile._rooftile.Plans(json.dumps(rest), (("x", "bf16", 16, (4, 4), (4,), 0),))

    def test_every_plan_explains_itself(self):
        for name, request in REQUESTS.items():
            with self.subTest(name):
                plan = planned(request)
                for other in plan.plans[:2]:
                    text = other.explain()
                    self.assertIn(plan.derivation[0].quantity, text)
                    self.assertLessEqual(max(map(len, plan.explain(width=0).splitlines())), 10000)
                try:
                    self.assertIn("inline cudaError_t launch(", plan.source())
                except rooftile.CompileFailed as missing:
                    self.assertIn("nvrtc", str(missing))
                self.assertNotEqual(plan.plans[0].explain(), plan.plans[-1].explain())

    def test_travel_to_other_processes_as_their_requests(self):
        for name, request in REQUESTS.items():
            with self.subTest(name):
                for plan in planned(request).plans[-2:]:
                    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
                        self.assertEqual((other.rank, other.config, other.problem), (plan.rank, plan.config, plan.problem))
                    self.assertEqual(pickle.loads(pickle.dumps(plan.config)), plan.config)
        with self.assertRaises(rooftile.RequestError) as caught:
            rooftile.plan("nothing")
        self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))

    def test_numbers_of_any_kind(self):
        class Number:
            def __index__(self):
                return 3

        for name, request in REQUESTS.items():
            with self.subTest(name):
                self.assertEqual(len(planned({**request, "top": Number()}).plans), len(planned({**request, "top": 3.0}).plans))
                for value, message in ((2**70, "out of range"), (-(2**70), "out of range"), (10**400, "300 digits"), (2.5, "not a whole"), (1j, "1j")):
                    with self.assertRaisesRegex(rooftile.RequestError, message):
                        planned({**request, "top": value})

    def test_html_is_well_formed(self):
        class Tags(html.parser.HTMLParser):
            def __init__(self):
                super().__init__()
                self.open = []

            def handle_starttag(self, tag, attributes):
                self.open.append(tag)

            def handle_endtag(self, tag):
                assert self.open.pop() == tag, tag

        for request in REQUESTS.values():
            parser = Tags()
            parser.feed(planned(request)._repr_html_())
            self.assertEqual(parser.open, [])

    def test_help_names_every_field(self):
        for operation in rooftile.operations().values():
            for field in operation.fields:
                self.assertIn(f"    {field.key} ", rooftile.plan.__doc__)

    def test_a_plan_is_stopped_at_what_it_has_not(self):
        plan = planned(next(iter(REQUESTS.values())))
        with self.assertRaisesRegex(AttributeError, "prediction"):
            plan.nothing
        with self.assertRaisesRegex(AttributeError, "time_us"):
            plan.prediction.time_ms


class Stubs(unittest.TestCase):
    def test_name_what_the_module_has(self):
        module = rooftile._rooftile
        text = (Path(rooftile.__file__).parent / "_rooftile.pyi").read_text()
        special = {"__new__", "__len__", "__call__"}

        def names(nodes):
            return {node.name if hasattr(node, "name") else node.target.id for node in nodes if not isinstance(node, (ast.Expr, ast.ImportFrom))}

        tree = ast.parse(text).body
        self.assertEqual(names(tree), {name for name in vars(module) if not name.startswith("_")})
        for node in tree:
            if isinstance(node, ast.ClassDef):
                public = {name for name in vars(getattr(module, node.name)) if not name.startswith("_")}
                self.assertEqual(names(node.body) - special, public, node.name)

    def test_every_public_name_has_help(self):
        for name in rooftile.__all__:
            self.assertGreater(len(getattr(rooftile, name).__doc__ or ""), 20, name)


class Errors(unittest.TestCase):
    def test_names_and_codes_are_those_of_the_c_interface(self):
        classes = {error.code: error for error in rooftile.Error.__subclasses__()}
        for status in range(256):
            name = rooftile._rooftile.status_name(status)
            self.assertEqual(name, classes[status].__name__ if status in classes else "")
            self.assertTrue(not name or getattr(rooftile, name) is classes[status])

    def test_refusals(self):
        for name, request in REQUESTS.items():
            for change, message in (
                ({"nothing_like_this": 1}, "has no field nothing_like_this"),
                ({"machin": "h100-sxm"}, "did you mean machine"),
                ({"machine": "h100-sx"}, "h100-sxm"),
                ({"top": "many"}, "top"),
                ({"exhaustive": "yes"}, "accepted is true or false"),
                ({"set": ["dram.bandwidth=fast"]}, "dram.bandwidth"),
            ):
                with self.subTest(name, **change), self.assertRaisesRegex(rooftile.RequestError, message) as caught:
                    planned({**request, **change})
                self.assertEqual(caught.exception.code, 2)
                self.assertIsInstance(caught.exception, ValueError)
                self.assertNotIn("\n", str(caught.exception))

    def test_an_unknown_operation(self):
        with self.assertRaisesRegex(rooftile.RequestError, "there is no operation nothing"):
            rooftile.plan("nothing")

    def test_where_no_plan_fits_the_document_says_why(self):
        for name, request in REQUESTS.items():
            small = ["shared.per_cta=1 KiB", "shared.per_sm=2 KiB", "sm.registers=1024 registers"]
            with self.subTest(name):
                try:
                    planned({**request, "set": small})
                except rooftile.Infeasible as none:
                    self.assertEqual(none.document["plans"], [])
                    self.assertEqual(none.document["infeasible"]["message"], str(none))

    def test_importing_takes_nothing_else(self):
        asked = "import sys, rooftile; print(*(m for m in ('torch', 'numpy', 'cupy', 'jax') if m in sys.modules))"
        self.assertEqual(subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout, "\n")


if __name__ == "__main__":
    unittest.main()
