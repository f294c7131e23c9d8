#!/usr/bin/env python3
"""Cycles that an element-wise function takes of a warp beside warpgroups that multiply, and what it leaves of their rate.

    bench/chain/issue_beside_products.py        (from the repository's root, on a GPU of sm_90)

A line a function and a mixture: clocks an element of a warp, its issue slots a clock, the share of its alone rate that the tensor core keeps
meanwhile. Needs NVRTC and the driver.
"""
import ctypes
import glob
import os
import site

FUNCTIONS = {"gelu": 12, "gelu, constants in registers": 12, "8 FFMA of registers": 8, "8 FFMA of immediates": 8, "relu": 1, "silu": 5, "ex2": 1, "8 FADD": 8}
ROUNDS, PRODUCT_ROUNDS, ELEMENTS, PRODUCTS, SHARED = 500, 400, 32, 8, 131072


def library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise SystemExit(f"none of {', '.join(names)} can be opened")


def check(code, what):
    if code != 0:
        raise SystemExit(f"{what}: error {code}")


def compiled(nvrtc, function):
    with open(os.path.join(os.path.dirname(__file__), "issue_beside_products.cu")) as file:
        text = file.read()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"issue_beside_products.cu", 0, None, None), "nvrtcCreateProgram")
    options = ["--gpu-architecture=sm_90a", "--std=c++20", "--device-as-default-execution-space", f"--include-path={os.getcwd()}", f"-DFUNCTION={function}"]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    if code != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode())
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    cubin = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, cubin), "nvrtcGetCUBIN")
    return cubin.raw


class Gpu:
    def __init__(self):
        self.cuda = library("libcuda.so.1")
        context = ctypes.c_void_p()
        check(self.cuda.cuInit(0), "cuInit")
        check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
        check(self.cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        self.out, self.values, self.cycles = (self.allocated(size) for size in (1 << 20, 4096, 64))

    def allocated(self, size):
        address = ctypes.c_uint64()
        check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), "cuMemAlloc")
        check(self.cuda.cuMemsetD8_v2(address, 0, ctypes.c_size_t(size)), "cuMemset")
        return address

    def load(self, cubin):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        check(self.cuda.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"beside"), "cuModuleGetFunction")
        check(self.cuda.cuFuncSetAttribute(function, 8, SHARED), "cuFuncSetAttribute")
        return function

    def run(self, function, computing, warpgroups, of_registers):
        """Cycles of each warpgroup."""
        arguments = [ctypes.c_int(computing), ctypes.c_int(of_registers), ctypes.c_int(ROUNDS), ctypes.c_int(PRODUCT_ROUNDS), self.out, self.values, self.cycles]
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments])
        for _ in range(2):
            check(self.cuda.cuLaunchKernel(function, 132, 1, 1, 128 * warpgroups, 1, 1, SHARED, None, pointers, None), "cuLaunchKernel")
            check(self.cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        found = (ctypes.c_longlong * 8)()
        check(self.cuda.cuMemcpyDtoH_v2(found, self.cycles, ctypes.c_size_t(64)), "cuMemcpyDtoH")
        return list(found)[:warpgroups]


def main():
    wheels = [path for root in site.getsitepackages() for path in sorted(glob.glob(root + "/nvidia/*/lib/libnvrtc.so.1*")) if "builtins" not in path and ".alt." not in path]
    nvrtc, gpu = library(*wheels, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"), Gpu()
    for function, (name, slots) in enumerate(FUNCTIONS.items()):
        kernel = gpu.load(compiled(nvrtc, function))
        elements, products = ROUNDS * ELEMENTS, PRODUCT_ROUNDS * PRODUCTS
        alone = {kind: max(gpu.run(kernel, 0, 2, kind)) / products for kind in (0, 1)}
        print(f"{name}: alone, one warp {gpu.run(kernel, 1, 1, 0)[0] / elements:.2f} clk an element, two {max(gpu.run(kernel, 2, 2, 0)) / elements:.2f}")
        for kind, of in ((0, "shared memory"), (1, "registers")):
            cycles = gpu.run(kernel, 1, 3, kind)
            beside, whole = cycles[0], max(cycles[1:])
            # While it computes the others do what is not done in the time behind it, which runs at their rate alone.
            kept = (alone[kind] * products - max(0, whole - beside)) / beside
            print(f"    beside two warpgroups of 64x128x16 with A in {of} ({alone[kind] / 2:.1f} clk each): {beside / elements:.2f} clk, {slots * elements / beside:.3f} slots a clk; "
                  f"they keep {kept:.2f} of their rate", flush=True)


if __name__ == "__main__":
    main()
