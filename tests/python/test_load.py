"""load() as far as that goes without a GPU: the driver is a fake one (ROOFTILE_CUDA_PATH), NVRTC is real."""

import ctypes
import gc
import os
import random
import struct
import tempfile
import unittest
from pathlib import Path

from support import CPU, Driver, FastTensor, Tensor, dense, launches

import rooftile

cuda = os.environ.get("ROOFTILE_TEST_CUDA")
if cuda:
    rooftile._rooftile.add_cuda_folder(cuda)

TEXT = """
#include <torch/extension.h>
#include <cstdint>
struct T { float a[3]; };
extern "C" __global__ void write_down(char* out, const void* p, int i, bool b, float f, double d, uint64_t u, T t) { *out = f; }
namespace mine {
template <class T> __global__ void gelu(T* y, T s) { *y = s; }
__global__ void plain(int* p) { __shared__ int s[64]; s[threadIdx.x] = *p; __syncthreads(); *p = s[63 - threadIdx.x]; }
}
void run(torch::Tensor x) { mine::plain<<<1, 1>>>(x.data_ptr<int>()); }
"""
FUNCTIONS = ("write_down", "mine::gelu<float>", "mine::plain")


def tensor(kind=Tensor, type="fp32", shape=(8, 16), **options):
    return kind(type, shape, dense(shape), **options)


class Lazy(Tensor):
    negative = conjugate = False

    def is_neg(self):
        return self.negative

    def is_conj(self):
        return self.conjugate


class Interface:
    def __init__(self, tensor, **changed):
        self.kept = tensor
        data = (tensor.view.data, False)
        self.__cuda_array_interface__ = {"shape": tensor.shape, "typestr": "<f4", "data": data, "version": 3, **changed}


class Item:
    """A number of an array library."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


@launches
class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = rooftile.load(TEXT, FUNCTIONS, arch="sm_90")

    def refused(self, words, function, *arguments, grid=1, block=32, **options):
        with self.assertRaisesRegex(rooftile.RequestError, words):
            function(*arguments, grid=grid, block=block, **options)

    def written(self, *arguments, **options):
        """What the kernel got, but for the first argument."""
        out = tensor()
        self.assertIsNone(self.module.write_down(out, *arguments, **{"grid": 1, "block": 32, **options}))
        memory = ctypes.string_at(out.view.data, 16 * 7)
        formats = ("<Q", "<i", "<B", "<f", "<d", "<Q", "<fff")
        return [struct.unpack_from(form, memory, 16 * i) for i, form in enumerate(formats)]

    def test_says_what_there_is(self):
        module = self.module
        self.assertEqual(list(module.functions), list(FUNCTIONS))
        self.assertEqual(module.left_out, ("#include <torch/extension.h>", "run"))
        self.assertIs(module.gelu, module["mine::gelu<float>"])
        kinds = [(p.kind, p.bytes) for p in module.write_down.parameters]
        expected = [("pointer", 8), ("pointer", 8), ("int", 4), ("uint", 1), ("float", 4), ("double", 8), ("uint", 8), ("struct", 12)]
        self.assertEqual(kinds, [("float", 8) if kind == "double" else (kind, size) for kind, size in expected])
        self.assertGreater(module.plain.registers, 0)
        self.assertEqual(module.plain.static_shared_bytes, 256)
        self.assertIn("mine::plain(pointer 8 B)", repr(module.plain))
        self.assertIn("gelu", dir(module))
        with self.assertRaisesRegex(AttributeError, "there is no function other; there is write_down, "):
            module.other

    def test_hands_over_each_value(self):
        drawn = random.Random(int(os.environ.get("ROOFTILE_SAMPLE_SEED", 1)))
        for kind in (Tensor, FastTensor, Interface):
            for _ in range(20):
                p = tensor() if kind is Interface else tensor(kind)
                i, u = drawn.randint(-(2**31), 2**31 - 1), drawn.randint(0, 2**64 - 1)
                b, d = drawn.random() < 0.5, drawn.uniform(-1e300, 1e300)
                f = drawn.choice([drawn.randint(-(2**20), 2**20), drawn.randint(-9, 9) / 8, float("inf")])
                t = struct.pack("<fff", 1, 2, drawn.randint(0, 9))
                wrap = drawn.choice([lambda value: value, Item])
                given = Interface(p) if kind is Interface else p
                got = self.written(given, wrap(i), wrap(b), wrap(f), wrap(d), wrap(u), t)
                self.assertEqual(got, [(p.view.data,), (i,), (b,), (f,), (d,), (u,), struct.unpack("<fff", t)])

    def test_null_and_what_has_no_elements(self):
        empty = tensor(shape=(0, 4))
        for nothing in (None, empty, Interface(empty)):
            self.assertEqual(self.written(nothing, 1, 0, 0.0, 0.0, 0, bytes(12))[0], (0,))

    def test_a_grid_and_a_block(self):
        for grid, block in ((1, 32), ((1, 2), (8, 4)), ([1, 1, 3], (1, 1, 64)), (0, 1)):
            self.module.plain[grid, block](tensor())
            self.module.plain(tensor(), grid=grid, block=block, stream=0, shared=1024)
        self.module.plain[2, 32](tensor(), cluster=2)
        out = tensor()
        self.module.write_down[0, 1](out, None, 1, 0, 1, 1, 1, bytes(12))
        self.assertEqual(ctypes.string_at(out.view.data, 112), bytes(112), "nothing was launched")
        plain = self.module.plain
        self.refused("grid is 1x65536x1", plain, None, grid=(1, 65536))
        self.refused("grid is -1x1x1", plain, None, grid=-1)
        self.refused("grid is 1.5; accepted", plain, None, grid=1.5)
        self.refused(r"block is \(1, 1, 1, 1\); accepted", plain, None, block=(1, 1, 1, 1))
        self.refused("block: 2048 threads", plain, None, block=(1024, 2))
        self.refused("block is 0x1x1", plain, None, block=0)
        self.refused("whole clusters", plain, None, grid=3, cluster=2)
        self.refused("shared 300000: with 256 B of its own", plain, None, shared=300_000)
        self.refused("shared is -1", plain, None, shared=-1)
        self.refused("stream is a", plain, None, stream="0")
        with self.assertRaisesRegex(rooftile.RequestError, "takes a grid and a block"):
            plain[3]

    def test_refuses_what_the_kernel_does_not_take(self):
        good = [tensor(), None, 1, True, 2.0, 3.0, 4, bytes(12)]
        wrong = [
            (0, 2.0, "argument 1 of write_down is a pointer, and 2.0 is given"), (1, 4096, "is a pointer, and 4096"),
            (0, tensor(device=CPU), "argument 1 of write_down is not on a CUDA device"), (0, "x", "is a pointer"),
            (1, tensor(ordinal=1), "argument 2 of write_down is on device 1, a tensor before it on device 0"),
            (2, 1.0, "is a whole number of 32 bits, and 1.0"), (2, 2**31, "into which 2147483648 does not fit"), (2, None, "a whole number"),
            (2, tensor(), "argument 3 of write_down is a whole number, and a .*Tensor"), (2, -(2**31) - 1, "does not fit"),
            (3, 256, "unsigned whole number of 8 bits"), (3, -1, "unsigned"), (4, "2", "a floating-point number"), (4, 1e300, "does not fit"),
            (4, tensor(), "a floating-point number"), (5, 1j, "a floating-point number"), (6, -1, "unsigned"), (6, 2**64, "does not fit"),
            (7, bytes(8), "a struct of 12 B, and 8 B are given"), (7, 1, "a struct of 12 B, and a <class 'int'>"),
            (0, Interface(tensor(), stream=7), "stream 7"),
        ]  # fmt: skip
        for place, value, words in wrong:
            self.refused(words, self.module.write_down, *good[:place], value, *good[place + 1 :])
        self.refused("write_down takes 8 arguments; given are 7", self.module.write_down, *good[:-1])
        for bit, words in (("negative", "negative bit.*resolve_neg"), ("conjugate", "conjugate bit.*resolve_conj")):
            lazy = tensor(Lazy)
            self.module.plain[1, 1](lazy)
            setattr(lazy, bit, True)
            self.refused(words, self.module.plain, lazy)

    def test_code_lives_as_long_as_a_function(self):
        plain = rooftile.load("__global__ void plain(int* p) { *p = 1; }").plain  # for the GPU here, which the fake driver has
        gc.collect()
        plain[1, 1](tensor())

    def test_a_graph_keeps_the_code(self):
        driver = Driver()
        module = rooftile.load("__global__ void plain(int* p) { *p = 1; }", arch="sm_90")
        module.load()
        self.module.load()
        gc.collect()
        before, y = driver.libraries(), tensor()

        def work(stream):
            for _ in range(3):
                module.plain[1, 1](y, stream=stream)

        executable = driver.graph_of(work)
        del module, work
        gc.collect()
        self.assertEqual(driver.libraries(), before)
        driver.cuGraphLaunch(executable, None)
        driver.cuGraphExecDestroy(executable)
        self.module.plain[1, 1](y)  # a launch unloads what nothing needs any more
        self.assertEqual(driver.libraries(), before - 1)

    def test_takes_files_with_their_headers(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "k.cu").write_text('#include "own.h"\n__global__ void k(own n) {}\nint main() {}\n')
            Path(folder, "own.h").write_text("#include <vector>\nusing own = short;\n")
            for path in (Path(folder, "k.cu"), str(Path(folder, "k.cu"))):
                module = rooftile.load(path, machine="h100-sxm")
                self.assertEqual(module.k.parameters, (rooftile.load(path, ["k"], arch="sm_90").k.parameters[0],))
                self.assertEqual((module.k.parameters[0].kind, module.k.parameters[0].bytes, module.arch), ("int", 2, "sm_90"))
                module.load()

    def test_says_what_is_wrong(self):
        for words, source, functions in (
            ("no kernel other; there is write_down, mine::gelu, mine::plain", TEXT, ["other"]),
            ("mine::gelu is a template: give its arguments", TEXT, ["mine::gelu"]),
            ("/nowhere.cu", "/nowhere.cu", ()),
            ("functions is ", TEXT, [1]),
        ):
            with self.assertRaisesRegex(rooftile.RequestError, words):
                rooftile.load(source, functions, arch="sm_90")
        with self.assertRaisesRegex(rooftile.CompileFailed, r'source.cu\(2\): error: identifier "q" is undefined'):
            rooftile.load("\n__global__ void k(int* p) { *p = q; }", arch="sm_90")
        with self.assertRaisesRegex(rooftile.RequestError, "give one"):
            rooftile.load(TEXT, arch="sm_90", machine="h100-sxm")


if __name__ == "__main__":
    unittest.main()
