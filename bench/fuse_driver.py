"""Kernels of the document of `rooftile build suite` launched through the CUDA driver on PyTorch's
current stream; docs/command-line.md describes the document. For bench/compare_torch.py."""
import ctypes
import os

import torch

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Config(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


COOPERATIVE, CLUSTER_DIMENSION, PROGRAMMATIC = 2, 4, 6   # CUlaunchAttributeID
STATIC_SHARED, MOST_DYNAMIC_SHARED, CARVEOUT, ANY_CLUSTER_SIZE = 1, 8, 9, 14   # CUfunction_attribute
SHARED_OF_SM, SHARED_RESERVED = 81, 111                  # CUdevice_attribute


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.cuda, name)

        def checked(*arguments):
            code = function(*arguments)
            if code != 0:
                text = ctypes.c_char_p()
                self.cuda.cuGetErrorString(code, ctypes.byref(text))
                raise RuntimeError(f"{name}: {(text.value or b'?').decode()} ({code})")
        return checked

    def function(self, path, entry):
        with open(path, "rb") as file:
            image = file.read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuModuleLoadData(ctypes.byref(module), image)
        self.cuModuleGetFunction(ctypes.byref(function), module, entry.encode())
        return function


def current_stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class Kernel:
    """A kernel of the document of `rooftile build suite`: launch(tensors by name)."""

    def __init__(self, driver, folder, document, sms):
        self.driver, self.launch_ = driver, document["launch"]
        launch = self.launch_
        self.function = driver.function(os.path.join(folder, document["cubin"]), launch["entry"])
        if launch["shared_bytes"] > 0:
            driver.cuFuncSetAttribute(self.function, MOST_DYNAMIC_SHARED, launch["shared_bytes"])
        if launch["cluster"] > 1:
            driver.cuFuncSetAttribute(self.function, ANY_CLUSTER_SIZE, 1)
        self._leave_shared_memory()
        self.attributes = (Attribute * 3)()
        self.config = Config(1, 1, 1, launch["block"], 1, 1, launch["shared_bytes"], None, None, 0)
        self.config.attributes = ctypes.cast(self.attributes, ctypes.c_void_p)
        if launch["cluster"] > 1:
            self._attribute(CLUSTER_DIMENSION, launch["cluster"], 1, 1)
        if launch["programmatic"]:
            self._attribute(PROGRAMMATIC, 1)
        if launch["cooperative"]:
            self._attribute(COOPERATIVE, 1)
        ctas, below = self._ctas(sms), launch.get("row_splits", 1)
        self.config.gx, self.config.gy = ctas // below, below
        sizes = bytearray(bytes.fromhex(launch["sizes"]))
        if (at := launch["workspace"]) is not None:
            count = launch["workspace_bytes"] + ctas * launch["workspace_bytes_per_cta"]
            self.workspace = torch.zeros(count, dtype=torch.uint8, device="cuda")
            sizes[at:at + 8] = self.workspace.data_ptr().to_bytes(8, "little")
        self.sizes = ctypes.create_string_buffer(bytes(sizes), len(sizes))

    def _fitting(self):
        fitting = ctypes.c_int()
        self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(fitting), self.function, ctypes.c_int(self.launch_["block"]),
            ctypes.c_size_t(self.launch_["shared_bytes"]))
        return fitting.value

    def _leave_shared_memory(self):
        """Divides L1 as the CTAs that fit need it: no more of it for shared memory, no less."""
        static, reserved, most = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.driver.cuFuncGetAttribute(ctypes.byref(static), STATIC_SHARED, self.function)
        device = torch.cuda.current_device()
        self.driver.cuDeviceGetAttribute(ctypes.byref(reserved), SHARED_RESERVED, device)
        self.driver.cuDeviceGetAttribute(ctypes.byref(most), SHARED_OF_SM, device)
        wanted = max(1, self._fitting()) * (self.launch_["shared_bytes"] + static.value + reserved.value)
        percent = min(100, -(-100 * wanted // max(1, most.value)))
        self.driver.cuFuncSetAttribute(self.function, CARVEOUT, percent)

    def _attribute(self, number, *values):
        attribute = self.attributes[self.config.count]
        attribute.id = number
        for i, value in enumerate(values):
            attribute.value[i] = value
        self.config.count += 1

    def _ctas(self, sms):
        launch, cluster = self.launch_, self.launch_["cluster"]
        if not launch["persistent"]:
            return launch["ctas_of_work"]
        resident = sms * min(self._fitting(), launch["ctas_per_sm"])
        if cluster > 1:
            clusters = ctypes.c_int()
            self.config.gx = resident // cluster * cluster
            self.driver.cuOccupancyMaxActiveClusters(ctypes.byref(clusters), self.function,
                                                     ctypes.byref(self.config))
            resident = min(resident, clusters.value * cluster)
        if resident == 0:
            raise RuntimeError("no CTA fits on this GPU")
        together = launch["ctas_together"]
        work, grid_resident = launch["ctas_of_work"] // together, resident // together
        if grid_resident == 0:
            raise RuntimeError(f"{together} CTAs share a row, {resident} fit on this GPU")
        return min(work, grid_resident) * together

    def launch(self, tensors):
        words = []
        for word in self.launch_["tensors"]:
            if "word" in word:
                words.append(int(word["word"], 16))
            else:
                words.append(tensors[word.get("input") or word.get("output")].data_ptr())
        block = (ctypes.c_uint64 * len(words))(*words)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(block), ctypes.addressof(self.sizes))
        self.config.stream = current_stream()
        self.driver.cuLaunchKernelEx(ctypes.byref(self.config), self.function, arguments, None)


class Chain:
    """The operators one by one; intermediates are buffers of their own."""

    def __init__(self, driver, folder, problem, sms):
        self.steps = []
        self.intermediates = {}
        outputs = {o["name"] for o in problem["problem"]["outputs"]}
        for operator in problem["operators"]:
            result = operator["result"]
            if result["name"] not in outputs:
                self.intermediates[result["name"]] = torch.empty(
                    result["shape"], dtype=TYPES[result["type"]], device="cuda")
            self.steps.append((Kernel(driver, folder, operator, sms), operator["operands"], result["name"]))

    def launch(self, tensors):
        known = {**tensors, **self.intermediates}
        for kernel, operands, result in self.steps:
            own = {name: known[of] for name, of in operands.items()}
            own["y"] = known[result]
            kernel.launch(own)


class Copies:
    """Our copy and read kernels, a CTA of 256 threads for each piece of the data: which is the fastest depends on
    its size."""
    THREADS = 256

    def __init__(self, driver, folder, roofs):
        path = os.path.join(folder, roofs["cubin"])
        self.driver = driver
        self.forms = {kind: {self._name(kind, form): (driver.function(path, form["kernel"]), form["accesses"])
                             for form in roofs[kind]}
                      for kind in ("copy", "read")}

    @staticmethod
    def _name(kind, form):
        through, last = ", through L1" * form["cached"], ", reads go last" * form["last"]
        return f"{kind} of {form['accesses']}{through}{last}"

    def _launch(self, form, count, values):
        function, accesses = form
        grid = max(1, -(-count // (self.THREADS * accesses)))
        arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.driver.cuLaunchKernel(function, grid, 1, 1, self.THREADS, 1, 1, 0, current_stream(), arguments, None)

    def copy(self, form, to, source):
        count = to.numel() // 16
        self._launch(form, count, [ctypes.c_uint64(to.data_ptr()), ctypes.c_uint64(source.data_ptr()),
                                   ctypes.c_longlong(count)])

    def read(self, form, source, told):
        count = source.numel() * source.element_size() // 16
        self._launch(form, count, [ctypes.c_uint64(source.data_ptr()), ctypes.c_longlong(count),
                                   ctypes.c_uint(0x9E3779B9), ctypes.c_uint64(told.data_ptr())])

    def memcpy(self, to, source):
        self.driver.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(to.data_ptr()), ctypes.c_uint64(source.data_ptr()),
                                         ctypes.c_size_t(to.numel()), current_stream())
