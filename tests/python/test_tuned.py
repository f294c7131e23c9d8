"""Kernels that are chosen on the tensors of their first call, as far as that goes without a GPU: the driver is a fake one."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from support import CPU, REQUESTS, Driver, arguments, launches

import rooftile

cuda = os.environ.get("ROOFTILE_TEST_CUDA")
if cuda:
    rooftile._rooftile.add_cuda_folder(cuda)


class Refusals(unittest.TestCase):
    def test_counts_and_ranges_are_refused(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        for count in (0, 1, 17, True, "4", 2.0):
            with self.assertRaisesRegex(rooftile.RequestError, "2 to 16"):
                rooftile.compile(plan, tune=count)


@launches
class Tuned(unittest.TestCase):
    """Choices in a folder of its own; compiled kernels are shared with later runs."""

    kernels = Path(tempfile.gettempdir()) / f"rooftile-tuned-kernels-{os.getuid()}"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.kernels.mkdir(mode=0o700, exist_ok=True)
        for file in self.kernels.glob("*.cubin"):
            os.link(file, Path(self.folder.name) / file.name)
        self.before = os.environ.get("ROOFTILE_CACHE_DIR")
        os.environ["ROOFTILE_CACHE_DIR"] = self.folder.name

    def tearDown(self):
        for file in Path(self.folder.name).glob("*.cubin"):
            if not (self.kernels / file.name).exists():
                os.link(file, self.kernels / file.name)
        if self.before is None:
            del os.environ["ROOFTILE_CACHE_DIR"]
        else:
            os.environ["ROOFTILE_CACHE_DIR"] = self.before
        self.folder.cleanup()

    def choices(self):
        file = Path(self.folder.name) / "tuned.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def test_every_operation_chooses_once(self):
        for number, (operation, request) in enumerate(REQUESTS.items(), 1):
            with self.subTest(operation):
                plan = rooftile.plan(**request)
                kernel = rooftile.compile(plan, tune=2)
                inputs, outputs = arguments(plan)
                before = [bytes(x.memory) for x in inputs]
                self.assertIs(kernel(*inputs, out=outputs[0] if len(outputs) == 1 else outputs), outputs[0] if len(outputs) == 1 else outputs)
                self.assertEqual([bytes(x.memory) for x in inputs], before)
                self.assertEqual(len(self.choices()), number)
                choice = self.choices()[-1]
                self.assertEqual(choice["problem"], json.loads(plan.json())["problem"])
                self.assertEqual(choice["config"], json.loads(json.dumps(kernel.plan._plan["config"])))
                self.assertEqual(len(choice["candidates"]), min(2, len(plan.plans)))
                again = rooftile.compile(plan, tune=2)
                again(*inputs, out=outputs[0] if len(outputs) == 1 else outputs)
                self.assertEqual(self.choices()[-1], choice, "timed once")
                self.assertEqual(again.plan.rank, kernel.plan.rank)
                self.assertEqual(again.workspace_bytes(), kernel.workspace_bytes())

    def test_the_kept_choice_is_used(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        inputs, outputs = arguments(plan)
        rooftile.compile(plan, tune=2)(*inputs, out=outputs[0])
        choice = self.choices()[0]
        last = rooftile.plan(**request, top=32).plans[-1]  # one that is not among the plans of a request that does not say how many
        self.assertGreater(last.rank, len(plan.plans))
        choice["rank"], choice["config"] = last.rank, json.loads(json.dumps(last._plan["config"]))
        (Path(self.folder.name) / "tuned.jsonl").write_text(json.dumps(choice) + "\n")
        kernel = rooftile.compile(plan, tune=2)
        self.assertEqual(kernel.plan.rank, 1)
        kernel(*inputs, out=outputs[0])
        self.assertEqual(kernel.plan.rank, last.rank)

    def test_nothing_is_timed_while_a_graph_is_captured(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        inputs, outputs = arguments(plan)
        kernel = rooftile.compile(plan, tune=2)
        room = ctypes.create_string_buffer(kernel.workspace_bytes() + 256)
        options = {"workspace": (ctypes.addressof(room) + 255) // 256 * 256} if kernel.workspace_bytes() else {}
        Driver().graph_of(lambda stream: kernel(*inputs, out=outputs[0], stream=stream, **options))
        self.assertEqual(self.choices(), [])
        self.assertEqual(kernel.plan.rank, 1)
        kernel(*inputs, out=outputs[0])
        self.assertEqual(len(self.choices()), 1)

    def test_a_kept_choice_is_used_in_a_capture(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        inputs, outputs = arguments(plan)
        self.assertEqual(plan._plans.tuned(0), 0)
        rooftile.compile(plan, tune=2)(*inputs, out=outputs[0])
        choice = self.choices()[0]
        second = plan.plans[1]
        choice["rank"], choice["config"] = second.rank, json.loads(json.dumps(second._plan["config"]))
        (Path(self.folder.name) / "tuned.jsonl").write_text(json.dumps(choice) + "\n")
        kernel = rooftile.compile(plan, tune=2)
        kernel.load()
        self.assertEqual(kernel.plan.rank, second.rank)
        room = ctypes.create_string_buffer(kernel.workspace_bytes() + 256)
        options = {"workspace": (ctypes.addressof(room) + 255) // 256 * 256} if kernel.workspace_bytes() else {}
        Driver().graph_of(lambda stream: kernel(*inputs, out=outputs[0], stream=stream, **options))
        self.assertEqual(self.choices(), [choice])

    def test_threads_choose_once(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        kernel = rooftile.compile(plan, tune=2)
        calls = [arguments(plan) for _ in range(4)]
        threads = [threading.Thread(target=lambda i=i, o=o: kernel(*i, out=o[0])) for i, o in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.choices()), 1)

    def test_without_a_store_it_still_chooses(self):
        request = next(iter(REQUESTS.values()))
        code = (
            "import os, sys, json\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import rooftile\n"
            "from support import arguments\n"
            "rooftile._rooftile.add_cuda_folder(os.environ['ROOFTILE_TEST_CUDA'])\n"
            f"plan = rooftile.plan(**json.loads({json.dumps(request)!r}), buildable_only=True)\n"
            "kernel = rooftile.compile(plan, tune=2)\n"
            "inputs, outputs = arguments(plan)\n"
            "kernel(*inputs, out=outputs[0])\n"
            "assert kernel._chosen is not None\n"
        )
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "ROOFTILE_CACHE": "off"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_tensors_are_checked_first(self):
        request = next(iter(REQUESTS.values()))
        plan = rooftile.plan(**request)
        inputs, outputs = arguments(plan)
        kernel = rooftile.compile(plan, tune=2)
        with self.assertRaisesRegex(rooftile.RequestError, "is not given"):
            kernel(*inputs[:-1], out=outputs[0])
        with self.assertRaises(rooftile.RequestError):
            kernel(*inputs[:-1], inputs[-1].changed(device=CPU), out=outputs[0])
        with self.assertRaisesRegex(rooftile.RequestError, "unknown among"):
            kernel(*inputs, output=outputs[0])
        self.assertEqual(self.choices(), [])


if __name__ == "__main__":
    unittest.main()
