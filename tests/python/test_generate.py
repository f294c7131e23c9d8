"""What examples/python/generate.py says where it cannot run: of arguments, without PyTorch, without a GPU that it needs."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/python/generate.py"

# As much of PyTorch and of the package as the file names while it is read.
TORCH = """
import contextlib

no_grad = contextlib.nullcontext


class cuda:
    is_available = staticmethod(lambda: AVAILABLE)
    get_device_capability = staticmethod(lambda: (8, 0))
"""
STANDINS = {"torch/nn/__init__.py": "", "torch/nn/functional.py": "linear = None", "rooftile/__init__.py": "", "rooftile/torch.py": "linear = None"}


class Generate(unittest.TestCase):
    def said(self, *arguments, torch=""):
        """Exit code, output and errors; `torch`: what stands in for PyTorch, else it is missing."""
        with tempfile.TemporaryDirectory() as folder:
            files = STANDINS | {"torch/__init__.py": torch or "raise ImportError('No module named torch')"}
            for name, text in files.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            done = subprocess.run([sys.executable, EXAMPLE, *arguments], env=os.environ | {"PYTHONPATH": folder}, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_arguments_are_refused_in_one_line(self):
        for argument in ("--tokens", "64"):
            code, out, errors = self.said(argument)
            self.assertEqual((code, out, errors.count("\n")), (2, "", 1))
            self.assertIn(f"{argument}: it takes no arguments", errors)

    def test_without_pytorch(self):
        self.assertEqual(self.said(), (4, "skipped: No module named torch\n", ""))

    def test_without_a_gpu_that_it_needs(self):
        for available in ("False", "True"):  # none, and one of sm_80
            self.assertEqual(self.said(torch=TORCH.replace("AVAILABLE", available)), (4, "skipped: no GPU of sm_90\n", ""))


if __name__ == "__main__":
    unittest.main()
