"""Threads, streams, processes and contexts on a GPU, of every operation."""

import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import torch
from on_gpu import rand
from support import REQUESTS, WORKSPACES

import rooftile

CALLS = 100_000
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def planned(request):
    return rooftile.plan(**{key: value for key, value in request.items() if key not in ("machine", "set")})


def compiled():
    """A kernel of every operation, then those that need a workspace."""
    return [rooftile.compile(planned(request)) for request in (*REQUESTS.values(), *WORKSPACES.values())]


def inputs_of(kernel):
    inputs = []
    for tensor in kernel.plan.tensors:
        if not tensor.is_output:
            elements = 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides))
            inputs.append(rand(elements, dtype=TYPES[tensor.type]).as_strided(tensor.shape, tensor.strides))
    return inputs


def run_apart(code, **environment):
    """Python code in a process of its own, which may use `support` and this module."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip


def ended(process, seconds=120):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"did not end within {seconds} s") from None
    return process.returncode, out, err


RUNS = """
from test_processes import compiled, inputs_of, torch, json
for kernel in compiled():
    out = kernel(*inputs_of(kernel))
    torch.cuda.synchronize()
    assert not out.isnan().any()
    print(json.loads(kernel.json())["from_cache"])
"""


class Threads(unittest.TestCase):
    def test_eight_on_eight_streams(self):
        for kernel in compiled():
            with self.subTest(kernel.plan):
                sets = [inputs_of(kernel) for _ in range(8)]
                exact = [kernel(*inputs).clone() for inputs in sets]
                torch.cuda.synchronize()
                wrong, begin = [], threading.Barrier(8)

                def run(i, kernel=kernel, sets=sets, exact=exact, wrong=wrong, begin=begin):
                    try:
                        with torch.cuda.stream(torch.cuda.Stream()):
                            begin.wait()
                            for _ in range(100):
                                outs = [kernel(*sets[i]) for _ in range(4)]
                                if not all(torch.equal(out, exact[i]) for out in outs):
                                    wrong.append(i)
                    except BaseException as error:
                        wrong.append(error)

                threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(wrong, [])

    def test_compile_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"import threading\n{RUNS.strip().splitlines()[0]}\nkernels = []\n" + (
                "threads = [threading.Thread(target=lambda: kernels.append(compiled())) for _ in range(8)]\n"
                "[t.start() for t in threads]; [t.join() for t in threads]\n"
                "assert len(kernels) == 8\n"
                "[k(*inputs_of(k)) for all in kernels for k in all]; torch.cuda.synchronize()"
            )
            self.assertEqual(ended(run_apart(code, ROOFTILE_CACHE_DIR=folder)), (0, "", ""))


class Processes(unittest.TestCase):
    def test_share_a_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            processes = [run_apart(RUNS, ROOFTILE_CACHE_DIR=folder) for _ in range(3)]
            for code, _, err in map(ended, processes):
                self.assertEqual((code, err), (0, ""))
            code, out, err = ended(run_apart(RUNS, ROOFTILE_CACHE_DIR=folder))
            self.assertEqual((code, set(out.split()), err), (0, {"True"}, ""))

    def test_forked_after_import_run(self):
        code = "import os, rooftile\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n" + RUNS
        self.assertEqual(ended(run_apart(code))[0], 0)

    def test_forked_after_a_launch_say_so(self):
        code = RUNS + (
            "import os, rooftile\n"
            "inputs = inputs_of(kernel)\n"
            "if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
            "try: kernel(*inputs)\n"
            "except rooftile.GpuFailed as error: print(error); os._exit(7)\n"
        )
        code, out, err = ended(run_apart(code), 60)
        self.assertEqual(code, 7, out + err)
        self.assertIn("fork", out.splitlines()[-1])

    def test_see_what_is_visible(self):
        plans = "import rooftile\nfrom support import REQUESTS\n[rooftile.plan(**r) for r in REQUESTS.values()]\n"
        none = plans + "try: rooftile.machine()\nexcept rooftile.NoGpu as error: print(error)\n"
        code, out, err = ended(run_apart(none, CUDA_VISIBLE_DEVICES=""))
        self.assertEqual((code, len(out.splitlines()), err), (0, 1, ""))
        uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        self.assertEqual(ended(run_apart(RUNS, CUDA_VISIBLE_DEVICES=uuid))[0], 0)


class Calls(unittest.TestCase):
    def test_leak_nothing(self):
        for kernel in compiled():
            with self.subTest(kernel.plan):
                inputs = inputs_of(kernel)
                out = kernel(*inputs)

                def call(times, kernel=kernel, inputs=inputs, out=out):
                    for _ in range(times // 2):
                        kernel(*inputs, out=out)
                        kernel(*inputs)
                    torch.cuda.synchronize()
                    gc.collect()
                    return len(gc.get_objects()), _resident_kib(), torch.cuda.memory_allocated(), -torch.cuda.mem_get_info()[0]

                before = call(2000)
                after = call(CALLS)
                grown = [b - a for a, b in zip(before, after)]
                self.assertLess(grown[0], 100, "objects")
                self.assertLess(grown[1], 1024, "KiB of host memory: 10 B a call")
                self.assertEqual(grown[2], 0, "bytes of PyTorch's")
                # Others who use the GPU take and give back at any time; a leak grows at each.
                losses = [grown[3]]
                while losses[-1] > 0 and len(losses) < 4:
                    before = after
                    after = call(CALLS)
                    losses.append(after[3] - before[3])
                self.assertLessEqual(min(losses), 0, f"bytes of the GPU, {losses}")

    def test_run_beside_another_context(self):
        kernel = compiled()[0]
        inputs = inputs_of(kernel)
        wanted = kernel(*inputs).clone()
        driver = ctypes.CDLL("libcuda.so.1")
        other, current = ctypes.c_void_p(), ctypes.c_void_p()
        create = getattr(driver, "cuCtxCreate_v2")
        self.assertEqual(create(ctypes.byref(other), 0, 0), 0)
        try:  # it is current now
            out = torch.empty_like(wanted)
            kernel(*inputs, out=out, stream=torch.cuda.default_stream())
            self.assertEqual(driver.cuCtxGetCurrent(ctypes.byref(current)), 0)
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(current))
            driver.cuCtxDestroy_v2(other)
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, wanted))

    def test_run_beside_another_process(self):
        busy = run_apart("import torch\nx = torch.randn(4096, 4096, device='cuda')\nprint('on', flush=True)\nwhile True: x = torch.tanh(x @ x)")
        try:
            self.assertEqual(busy.stdout.readline(), "on\n")
            for kernel in compiled():
                inputs = inputs_of(kernel)
                wanted = kernel(*inputs).clone()
                for _ in range(50):
                    self.assertTrue(torch.equal(kernel(*inputs), wanted))
        finally:
            busy.kill()
            busy.communicate()


def _resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


if __name__ == "__main__":
    unittest.main()
