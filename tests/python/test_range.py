"""Plans for a range of one field, and their kernels: needs no GPU; the kernels need NVRTC, and a driver, here a fake one."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import RANGES, FastTensor, arguments, launches

import rooftile

cuda = os.environ.get("ROOFTILE_TEST_CUDA")
if cuda:
    rooftile._rooftile.add_cuda_folder(cuda)


def first_and_last_of_each_part(plans):
    return [value for part in plans.parts for value in (part["from"], part.to)]


class Ranges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ranges = {name: rooftile.plan(**request) for name, request in RANGES.items()}

    def test_say_what_they_are(self):
        for name, plans in self.ranges.items():
            self.assertIsInstance(plans, rooftile.PlanRange)
            request = RANGES[name]
            self.assertEqual(f"{plans.least}..{plans.most}", request[plans.field])
            self.assertLessEqual(plans.ratio, 1 + request["within"] / 100)
            self.assertLessEqual(plans.kernels, len(plans.parts))
            self.assertEqual(json.loads(plans.json(indent=1))["schema"], "rooftile/range/1")
            self.assertIn(plans.field, repr(plans))

    def test_a_value_has_the_plan_of_its_part(self):
        for plans in self.ranges.values():
            for part in plans.parts:
                for value in {part["from"], (part["from"] + part.to) // 2, part.to}:
                    plan = plans.at(value)
                    self.assertEqual(getattr(plan.problem, plans.field), value)
                    self.assertEqual(json.loads(plan.json())["plans"][0]["config"], dict(part.config))
                    self.assertIs(plans.at(value), plan, "planned once")

    def test_values_beside_it_are_refused(self):
        for plans in self.ranges.values():
            for value in (plans.least - 1, plans.most + 1, -plans.most):
                with self.assertRaisesRegex(rooftile.RequestError, f"{value}; the plans are for {plans.least} to {plans.most}"):
                    plans.at(value)
            for value in (plans.least + 0.5, str(plans.least)):
                with self.assertRaises(TypeError):
                    plans.at(value)

    def test_a_range_of_one_value_is_its_own_plan(self):
        for name, plans in self.ranges.items():
            for value in (plans.least, plans.most):
                one = {**RANGES[name], plans.field: f"{value}..{value}"}
                own = {key: of for key, of in one.items() if key != "within"}
                config = json.loads(rooftile.plan(**{**own, plans.field: value, "buildable_only": True}).json())["plans"][0]["config"]
                self.assertEqual(json.loads(rooftile.plan(**one).at(value).json())["plans"][0]["config"], config)

    def test_refusals(self):
        for name, plans in self.ranges.items():
            for change, message in (
                ({plans.field: "5..1"}, "A no more than B"),
                ({plans.field: "0..4"}, "from 1 on"),
                ({"within": 0}, "above 0"),
                ({"within": "x"}, "percentage"),
                ({plans.field: 4}, "within"),
                ({"top": 3}, "top is of one problem"),
                ({"nothing_like_this": 1}, "has no field"),
            ):
                with self.subTest(name, **change), self.assertRaisesRegex(rooftile.RequestError, message) as caught:
                    rooftile.plan(**{**RANGES[name], **change})
                self.assertNotIn("\n", str(caught.exception))


@launches
class Kernels(unittest.TestCase):
    def test_serve_every_value_and_compile_nothing_more(self):
        for request in RANGES.values():
            with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, ROOFTILE_CACHE_DIR=folder):
                kernels = rooftile.compile(rooftile.plan(**request))

                def cached(folder=folder):
                    return {file for file in Path(folder).rglob("*") if file.is_file()}

                ahead = cached()
                self.assertTrue(ahead)
                plans = kernels.plan
                for value in {*first_and_last_of_each_part(plans), *range(plans.least, plans.most, 17)}:
                    kernel = kernels.at(value)
                    self.assertIs(kernels.at(value), kernel)
                    self.assertIs(kernel.plan, kernel.plan)
                    own = plans.at(value).compile()
                    self.assertEqual(json.loads(kernel.json())["hash"], json.loads(own.json())["hash"])
                    self.assertEqual(kernel.workspace_bytes(), own.workspace_bytes())
                    inputs, outputs = arguments(plans.at(value), FastTensor)
                    self.assertEqual(kernels(*inputs).shape, outputs[0].shape)
                self.assertEqual(cached(), ahead)

    def test_another_value_by_the_same_code(self):
        for request in RANGES.values():
            kernels = rooftile.compile(rooftile.plan(**request))
            plans = kernels.plan
            kernel = kernels.at(plans.least)
            for wrong in ("nothing", "", plans.field + " "):
                self.assertIsNone(kernel.at(wrong, plans.most, None))
            for value in (0, -1, 2**62):
                self.assertIsNone(kernel.at(plans.field, value, None))
            with self.assertRaises(OverflowError):
                kernel.at(plans.field, 2**70, None)
            asked = []
            other = kernel.at(plans.field, plans.least + 1, lambda: asked.append(1) or plans)
            if other is not None:  # where its operation has that
                self.assertEqual(asked, [], "planned when it is asked for")
                self.assertIs(other.plan, plans)
                self.assertIs(other.plan, plans)
                self.assertEqual(asked, [1])

    def test_refusals(self):
        for request in RANGES.values():
            kernels = rooftile.compile(rooftile.plan(**request))
            inputs, _ = arguments(kernels.at(kernels.plan.least).plan, FastTensor)
            axis = next(i for i, t in enumerate(inputs) if kernels.plan.least in t.shape)
            larger = tuple(kernels.plan.most + 1 if n == kernels.plan.least else n for n in inputs[axis].shape)
            for wrong, message in (
                ([], "call at"),
                ([None] * len(inputs), "has no axis"),
                ([*inputs[:axis], inputs[axis].changed(shape=larger), *inputs[axis + 1 :]], "the plans are for"),
            ):
                with self.assertRaisesRegex(rooftile.RequestError, message):
                    kernels(*wrong)


if __name__ == "__main__":
    unittest.main()
