"""Kernels of one's own on torch's tensors: right, on the current stream, captured, and living as long as they are used."""

import gc
import random
import unittest

import torch
from on_gpu import rand

import rooftile

TEXT = """
#include <torch/extension.h>
#include <stdio.h>
template <class T> __global__ void scale(T* y, const T* __restrict__ x, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = float(x[i]) * s;
}
__global__ void reversed(float* y, const float* x, int n) {
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = s[n - 1 - i];
}
__global__ void filled(long long* p, long long value, bool on) { if (on) *p = value; }
__global__ void nothing() {}
torch::Tensor run(torch::Tensor x) { nothing<<<1, 1>>>(); return x; }
"""


class LoadedKernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.cuda.init()
        cls.module = rooftile.load(TEXT, ["scale<float>", "scale<double>", "reversed", "filled", "nothing"])
        cls.module.load()

    def test_compute_what_they_say(self):
        drawn = random.Random(1)
        for _ in range(20):
            n, s = drawn.randint(1, 100_000), drawn.uniform(-2, 2)
            for name, dtype in (("scale<float>", torch.float32), ("scale<double>", torch.float64)):
                x = rand(n, dtype=dtype)
                y = torch.full_like(x, float("nan"))
                self.module[name][(n + 255) // 256, 256](y, x, s, n)
                torch.testing.assert_close(y, x * torch.tensor(s, dtype=torch.float32, device="cuda"))
        self.module.nothing[1, 1]()
        p = torch.zeros(1, dtype=torch.int64, device="cuda")
        self.module.filled[1, 1](p, -(2**40), True)
        self.assertEqual(p.item(), -(2**40))

    def test_take_more_shared_memory_than_48_kib(self):
        x = rand(16_384, dtype=torch.float32)
        y = torch.empty_like(x)
        self.module.reversed(y, x, x.numel(), grid=1, block=1024, shared=4 * x.numel())
        torch.testing.assert_close(y, x.flip(0))

    def test_run_in_the_current_stream(self):
        x = rand(1 << 20, dtype=torch.float32)
        y, stream = torch.zeros_like(x), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            self.module["scale<float>"][4096, 256](y, x, 2.0, x.numel())
        self.assertFalse(stream.query(), "a call does not wait")
        z = torch.empty_like(x)
        stream.synchronize()
        torch.testing.assert_close(y, 2 * x)
        self.module["scale<float>"][4096, 256](z, x, 3.0, x.numel(), stream=stream)
        stream.synchronize()
        torch.testing.assert_close(z, 3 * x)

    def test_graphs_keep_the_code(self):
        x = rand(1000, dtype=torch.float32)
        y = torch.empty_like(x)
        module = rooftile.load(TEXT, ["scale<float>"])
        module.load()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for s in (2.0, 5.0):
                module.scale[4, 256](y, x, s, 1000)
        del module
        gc.collect()
        rooftile.load("__global__ void other(int* p) { *p = 1; }").load()
        for _ in range(3):
            x.normal_()
            y.zero_()
            graph.replay()
            torch.testing.assert_close(y, 5 * x)

    def test_lazy_bits_and_nothing(self):
        x = rand(8, dtype=torch.complex64)
        self.assertTrue(x.conj().imag.is_neg())
        y = torch.empty(8, device="cuda")
        for lazy, words in ((x.conj().imag, "negative"), (x.conj(), "conjugate")):
            with self.assertRaisesRegex(rooftile.RequestError, words):
                self.module["scale<float>"][1, 8](y, lazy, 1.0, 8)
        empty = torch.empty(0, device="cuda")
        self.module["scale<float>"][0, 256](empty, empty, 1.0, 0)
        self.module["scale<float>"][1, 256](empty, empty, 1.0, 0)
        torch.cuda.synchronize()
        with self.assertRaisesRegex(rooftile.RequestError, "not on a CUDA device"):
            self.module["scale<float>"][1, 8](torch.empty(8), y, 1.0, 8)

    def test_many_calls_cost_little(self):
        y = torch.empty(1, device="cuda")
        launch = self.module["scale<float>"][1, 1]
        torch.cuda.synchronize()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10_000):
            launch(y, y, 1.0, 1)
        stop.record()
        stop.synchronize()
        print(f"{start.elapsed_time(stop) / 10:.2f} us a call")


if __name__ == "__main__":
    unittest.main()
