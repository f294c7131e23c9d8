"""cuBLASLt's epilogues from Python: the best of eight of its heuristic's algorithms, on torch's tensors and stream.

Numbers and structures are those of cublasLt.h of CUDA 13, as rooftile/gemm/device/cublaslt_api.hpp has them.
"""
import ctypes

import torch

REAL_32F, REAL_16BF, COMPUTE_32F = 0, 14, 68
TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
DEFAULT, BIAS, GELU = 1, 4, 32
MAX_WORKSPACE, WORKSPACE_BYTES, ALGORITHMS = 1, 32 * 2**20, 8


class Heuristic(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def library():
    for name in ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("no libcublasLt.so")


class Product:
    """D = epilogue(A B^T + C), A [m, k] and B [n, k] row-major in bf16; `bias`: [n] is added; `gelu`: by tanh; `added`: C [m, n]."""

    def __init__(self, m, n, k, bias=False, gelu=False, added=False):
        self.c = library()
        self.bias, self.added = bias, added
        self.handle, self.description = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.call("cublasLtMatmulDescCreate", ctypes.byref(self.description), COMPUTE_32F, REAL_32F)
        # Column by column a row-major matrix is its transpose: D^T [n, m] = B A^T.
        self.set(TRANSPOSE_A, ctypes.c_int32(1))
        self.set(EPILOGUE, ctypes.c_int32((BIAS if bias else 0) | (GELU if gelu else 0) or DEFAULT))
        if bias:
            self.set(BIAS_POINTER, ctypes.c_uint64(torch.zeros(n, device="cuda", dtype=torch.bfloat16).data_ptr()))
        self.layouts = [self.layout(k, n, k), self.layout(k, m, k), self.layout(n, m, n)]
        preference = ctypes.c_void_p()
        self.call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        most = ctypes.c_uint64(WORKSPACE_BYTES)
        self.call("cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE, ctypes.byref(most), ctypes.c_size_t(8))
        found, count = (Heuristic * ALGORITHMS)(), ctypes.c_int()
        b, a, d = self.layouts
        self.call("cublasLtMatmulAlgoGetHeuristic", self.handle, self.description, b, a, d, d, preference, ALGORITHMS, found,
                  ctypes.byref(count))
        self.algorithms = [h for h in found[: count.value] if h.state == 0]
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")

    def call(self, function, *arguments):
        if status := getattr(self.c, function)(*arguments):
            raise RuntimeError(f"{function} gave status {status}")

    def set(self, attribute, value):
        self.call("cublasLtMatmulDescSetAttribute", self.description, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def layout(self, rows, columns, leading):
        made = ctypes.c_void_p()
        self.call("cublasLtMatrixLayoutCreate", ctypes.byref(made), REAL_16BF, ctypes.c_uint64(rows), ctypes.c_uint64(columns),
                  ctypes.c_int64(leading))
        return made

    def launch(self, index, a, b, d, bias=None, added=None):
        """`index`: of the algorithms."""
        if self.bias:
            self.set(BIAS_POINTER, ctypes.c_uint64(bias.data_ptr()))
        one, beta = ctypes.c_float(1), ctypes.c_float(1 if self.added else 0)
        of_b, of_a, of_d = self.layouts

        def at(tensor):
            return ctypes.c_void_p(tensor.data_ptr())

        self.call("cublasLtMatmul", self.handle, self.description, ctypes.byref(one), at(b), of_b, at(a), of_a, ctypes.byref(beta),
                  at(added if self.added else d), of_d, at(d), of_d, ctypes.byref(self.algorithms[index].algorithm), at(self.workspace),
                  ctypes.c_size_t(WORKSPACE_BYTES), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
