"""What the tests of the package share: a request of each operation, and a tensor library without a GPU."""

from __future__ import annotations

import ctypes
import json
import math
import os
import unittest
from pathlib import Path

def _requests(name):
    files = sorted(Path(__file__).parent.parent.glob(f"*/c/{name}.json"))
    assert files, f"no operation has a {name}.json in its folder of tests"
    return {file.parts[-3]: json.loads(file.read_text()) for file in files}


REQUESTS = _requests("request")
RANGES = _requests("range")  # with a range in the place of a number
WORKSPACES = _requests("workspace")  # whose kernels need one
BY_TENSORS = _requests("by_tensors")  # what the same problem needs beside its tensors

# Tensors of this file are host memory, so that no real driver may be given them.
FAKE_DRIVER = (Path(os.environ.get("ROOFTILE_CUDA_PATH", "")) / "libcuda.so.1").exists() and "ROOFTILE_TEST_CUDA" in os.environ
launches = unittest.skipUnless(FAKE_DRIVER, "skipped: no fake driver")

DTYPES = {"bf16": (4, 16), "fp16": (2, 16), "fp32": (2, 32)}
CPU, CUDA = 1, 2


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("view", View), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("view", View),
    ]


NAMES = b"dltensor", b"dlpack_exchange_api"  # a capsule does not keep its name
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """Host memory that says it is on a GPU; exported as old producers do, by a capsule "dltensor"."""

    def __init__(self, type, shape, strides, device=CUDA, ordinal=0, memory=None):
        self.type, self.shape, self.strides = type, tuple(shape), tuple(strides)
        code, bits = DTYPES[type]
        elements = max(0, 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides)))
        self.memory = memory or ctypes.create_string_buffer(elements * bits // 8 + 256)
        address = ctypes.addressof(self.memory)
        self.asked = []  # streams that __dlpack__ was called with
        rank = len(self.shape)
        self.view = View(
            (address + 255) // 256 * 256, Device(device, ordinal), rank, DataType(code, bits, 1),
            (ctypes.c_int64 * rank)(*self.shape), (ctypes.c_int64 * rank)(*self.strides), 0,
        )  # fmt: skip
        self.managed = Managed(self.view, None, None)

    def __dlpack_device__(self):
        return self.view.device.type, self.view.device.id

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        return new_capsule(ctypes.addressof(self.managed), NAMES[0], None)

    def changed(self, **values):
        return self.__class__(**{"type": self.type, "shape": self.shape, "strides": self.strides, **values})


def dense(shape):
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


Allocator = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(View), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)
ToObject = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
FromObject = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View))
WorkStream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocator", Allocator),
        ("managed_from_object", ctypes.c_void_p),
        ("to_object", ToObject),
        ("from_object", FromObject),
        ("work_stream", WorkStream),
    ]


class FastTensor(Tensor):
    """The same through DLPack's C exchange interface, which also allocates."""

    made: dict[int, tuple] = {}  # by the address of their Versioned
    freed: list[int] = []

    def __dlpack__(self, **_):
        raise AssertionError("the exchange interface is there")


def _allocate(prototype, out, _context, _set_error):
    view = prototype.contents
    shape = tuple(view.shape[axis] for axis in range(view.ndim))
    bits = view.dtype.bits
    memory = ctypes.create_string_buffer(math.prod(shape) * bits // 8 + 256)
    versioned = Versioned(1, 3, None, _free, 0, view)
    shapes = (ctypes.c_int64 * view.ndim)(*shape)
    versioned.view.data = (ctypes.addressof(memory) + 255) // 256 * 256
    versioned.view.shape = shapes
    FastTensor.made[ctypes.addressof(versioned)] = (versioned, memory, shapes, shape, view.dtype.code, bits)
    out[0] = ctypes.addressof(versioned)
    return 0


def _delete(address):
    FastTensor.freed.append(address)
    del FastTensor.made[address]


_free = Versioned._fields_[3][1](_delete)


def _to_object(address, out):
    _, memory, _, shape, code, bits = FastTensor.made.pop(address)
    type = {value: key for key, value in DTYPES.items()}[code, bits]
    tensor = FastTensor(type, shape, dense(shape), memory=memory)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
    out[0] = id(tensor)
    return 0


def _from_object(tensor, out):
    ctypes.memmove(out, ctypes.byref(tensor.view), ctypes.sizeof(View))
    return 0


def _work_stream(_type, _ordinal, out):
    out[0] = 0
    return 0


exchange = Exchange(1, 3, None, Allocator(_allocate), None, ToObject(_to_object), FromObject(_from_object), WorkStream(_work_stream))
FastTensor.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(exchange), NAMES[1], None)


def arguments(plan, kind=Tensor):
    """Tensors as planned: inputs, outputs."""
    all = [(t.is_output, kind(t.type, t.shape, t.strides)) for t in plan.tensors]
    return [t for is_output, t in all if not is_output], [t for is_output, t in all if is_output]


class Driver:
    """The fake driver, in this process."""

    def __init__(self):
        self.library = ctypes.CDLL(os.path.join(os.environ["ROOFTILE_CUDA_PATH"], "libcuda.so.1"))
        self.library.fake_libraries.restype = ctypes.c_size_t

    def __getattr__(self, name):
        def call(*arguments):
            status = getattr(self.library, name)(*arguments)
            if status != 0:
                raise RuntimeError(f"{name}: {status}")

        return call

    def libraries(self):
        """How many are loaded."""
        return self.library.fake_libraries()

    def graph_of(self, work):
        """An executable graph of what work(stream) puts into a stream."""
        stream, graph, executable = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.cuStreamCreate(ctypes.byref(stream), 1)
        self.cuStreamBeginCapture_v2(stream, 0)
        work(stream.value)
        self.cuStreamEndCapture(stream, ctypes.byref(graph))
        self.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        self.cuGraphDestroy(graph)
        self.cuStreamDestroy_v2(stream)
        return executable
