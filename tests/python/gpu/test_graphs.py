"""CUDA graphs outlive the kernels that they launch: the code, its tables and its workspaces stay as long as a replay may need them."""

import gc
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import torch
from on_gpu import rand

import rooftile
from rooftile import torch as rt

REQUESTS = (
    {"op": "gemm", "m": 300, "n": 512, "k": 1000},
    {"op": "gemm", "m": 300, "n": 512, "k": 1003, "lda": 1003, "ldb": 1003, "pack_a": True, "pack_b": True},  # a workspace
    {"op": "gemm", "m": 512, "n": 512, "k": 8192, "grid_split_k": 4},
    {"op": "gemm", "m": 4096, "n": 4096, "k": 512, "order": "hilbert"},  # a table in device memory
    {"op": "fuse", "expression": "y = sum_all(x)", "tensors": ["x:bf16[512,1024]"]},  # a workspace
    {"op": "fuse", "expression": "y = softmax(x)", "tensors": ["x:bf16[512,1024]"]},
    {"op": "attention", "heads": 8, "q": 512, "dim": 64},  # a workspace
)


def inputs_of(plan):
    made = []
    for t in plan.tensors:
        if not t.is_output:
            length = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.strides))
            made.append(rand(length, dtype=rt._DTYPES[t.type]).as_strided(t.shape, t.strides))
    return made


def captured(request):
    """A graph of a kernel that is gone, where it reads and writes, and what it should write."""
    try:
        kernel = rooftile.plan(**request, buildable_only=True).compile()
    except rooftile.Infeasible:
        kernel = rooftile.plan(**{k: v for k, v in request.items() if k not in ("order", "grid_split_k")}, buildable_only=True).compile()
    inputs = inputs_of(kernel.plan)
    expected = kernel(*inputs).clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(3):
            out = kernel(*inputs)
    return graph, inputs, out, expected


def trouble():
    """Loads other code and other memory where something was given back."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    for n in range(8, 40, 8):
        kernel = rooftile.plan("gemm", m=64, n=n, k=64, buildable_only=True).compile()
        kernel(*inputs_of(kernel.plan))
    torch.full((1 << 26,), -1, dtype=torch.int32, device="cuda")


class Graphs(unittest.TestCase):
    def replayed(self, graphs):
        for graph, _, out, expected in graphs:
            for _ in range(3):
                out.fill_(7)
                graph.replay()
                torch.cuda.synchronize()
                self.assertTrue(torch.equal(out, expected))

    def test_replay_kernels_that_are_gone(self):
        graphs = [captured(request) for request in REQUESTS]
        trouble()
        self.replayed(graphs)

    def test_give_back_what_they_kept(self):
        free = None
        for _ in range(30):
            graph, *_ = captured(REQUESTS[0])
            graph.replay()
            torch.cuda.synchronize()
            del graph, _
            trouble()
            if free is None:
                free = torch.cuda.mem_get_info()[0]
        self.assertGreater(torch.cuda.mem_get_info()[0], free - (64 << 20))

    def test_are_captured_by_threads(self):
        graphs, faults = [], []

        def capture(request):
            try:
                with torch.cuda.stream(torch.cuda.Stream()):
                    graphs.append(captured(request))
            except Exception as error:
                faults.append(error)

        for request in REQUESTS:  # one capture at a time is what torch's graphs allow; the kernels are other threads'
            thread = threading.Thread(target=capture, args=(request,))
            thread.start()
            thread.join()
        self.assertEqual(faults, [])
        trouble()
        self.replayed(graphs)

    def test_a_kernel_that_goes_while_others_capture_ends_no_capture(self):
        doomed = [rooftile.plan("gemm", m=64, n=n, k=128, buildable_only=True).compile() for n in range(8, 80, 8)]
        for kernel in doomed:
            kernel(*inputs_of(kernel.plan))
        x = torch.ones(64, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # the global mode, which knows of every thread
            y = x + 1
            for part in (doomed[:4], doomed[4:]):
                thread = threading.Thread(target=part.clear)
                thread.start()
                thread.join()
            del kernel, part
            doomed.clear()
            gc.collect()
            y = y * 2
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(y[0].item(), 4)

    def test_of_functions(self):
        a, b = rand(300, 512), rand(512, 384)
        rt.gemm(a, b)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = rt.gemm(a, b)
        expected = rt.gemm(a, b)
        rt._found.clear()
        trouble()
        y.zero_()
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(y, expected))

    def test_at_the_end_of_a_process(self):
        code = (
            "import sys; sys.argv[1:] = []\nfrom test_graphs import *\n"
            "graphs = [captured(request) for request in REQUESTS]\n"
            "for graph, *_ in graphs: graph.replay()\n"
        )
        here = Path(__file__).parent
        path = os.pathsep.join([str(here), str(here.parent), str(Path(rooftile.__file__).parent.parent)])
        for end in ("", "torch.cuda.synchronize()\n", "import os, atexit; atexit.register(graphs[0][0].replay)\n", "graphs.clear(); gc.collect()\n"):
            run = subprocess.run([sys.executable, "-c", code + end], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
            self.assertEqual((run.returncode, run.stderr), (0, ""), end)


if __name__ == "__main__":
    unittest.main()
