"""Every way of every operator against fp64, at sizes that no tile divides: python3 tests/ways/scripts_test.py PROGRAM

Without a GPU what runs on the CPU: the framework's ways, and Triton's kernels in its interpreter. Exit code 4: there is no PyTorch.
"""

import glob
import importlib
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = {
    "gelu": {"rows": 33, "columns": 1001},
    "softmax": {"rows": 33, "columns": 1001},
    "layernorm": {"rows": 33, "columns": 1001},
    "matmul": {"rows": 150, "columns": 272, "inner": 200},
    "mlp": {"rows": 130, "width": 136, "inner": 264},
    "attention": {"batch": 2, "heads": 3, "tokens": 200, "dim": 64},
}

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(4)


def interpreted():
    """Triton's interpreter multiplies no bf16, so these are fp16."""
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton  # noqa: F401
    except ImportError as error:
        print(f"skipped: Triton's kernels: {error}")
        return
    sys.path[:0] = [os.path.join(ROOT, "rooftile", "ways"), *glob.glob(os.path.join(ROOT, "rooftile", "*", "ways"))]
    from ways import errors_of

    generator = torch.Generator().manual_seed(1)

    def make(*shape, scale=1.0):
        return (torch.randn(shape, generator=generator) * scale).half()

    for name, sizes in SIZES.items():
        operator = importlib.import_module(name)
        operands = operator.operands(make, sizes)
        got = importlib.import_module(f"{name}_triton").call(*operands)
        found = errors_of(got, operator.exact(*(operand.double() for operand in operands)), 8 * 2.0**-11)
        assert found["right"], (name, found)
        wrong = errors_of(got * 1.05, operator.exact(*(operand.double() for operand in operands)), 8 * 2.0**-11)
        assert not wrong["right"], (name, wrong)


def main():
    for name, sizes in SIZES.items():
        flags = [text for key, value in sizes.items() for text in (f"--{key}", str(value))]
        command = [sys.argv[1], "measure", "ways", name, *flags, "--no-time", "--json", "--python", sys.executable]
        made = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        ways = {way["id"]: way for way in json.loads(made.stdout)["ways"]}
        for way in ("manual", "operator", "compiled", *(("triton", "cuda", "derived") if torch.cuda.is_available() else ())):
            assert ways[way]["right"] or (name == "matmul" and way == "manual"), (name, ways[way])
    if not torch.cuda.is_available():
        interpreted()
    print("every way is right")


if __name__ == "__main__":
    main()
