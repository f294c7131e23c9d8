"""Kernels on tensors, as far as that goes without a GPU: the driver is a fake one (ROOFTILE_CUDA_PATH), NVRTC is real."""

import ctypes
import gc
import json
import os
import subprocess
import sys
import threading
import unittest

from support import CPU, REQUESTS, WORKSPACES, Driver, FastTensor, Tensor, arguments, dense, launches

import rooftile

cuda = os.environ.get("ROOFTILE_TEST_CUDA")
if cuda:
    rooftile._rooftile.add_cuda_folder(cuda)


class Lazy:
    """As torch's tensors are: what they say may be the negative of what their memory holds."""

    negative = True

    def is_neg(self):
        return self.negative

    def resolve_neg(self):
        self.resolved = self.changed()
        self.resolved.negative = False
        return self.resolved


class LazyTensor(Lazy, Tensor):
    pass


class LazyFastTensor(Lazy, FastTensor):
    __dlpack_c_exchange_api__ = FastTensor.__dlpack_c_exchange_api__


@launches
class Graphs(unittest.TestCase):
    """A graph outlives the kernels that it launches."""

    def captured(self, driver, requests=REQUESTS, times=3, workspace=True):
        """Graphs of kernels that are gone, one a request."""
        graphs = []
        for request in requests.values():
            kernel = rooftile.plan(**request).compile()
            inputs, outputs = arguments(kernel.plan)
            kernel(*inputs, out=outputs[0])
            room = ctypes.create_string_buffer(kernel.workspace_bytes() + 256)
            options = {"workspace": (ctypes.addressof(room) + 255) // 256 * 256} if workspace and kernel.workspace_bytes() else {}

            def work(stream, kernel=kernel, inputs=inputs, outputs=outputs, options=options):
                for _ in range(times):
                    kernel(*inputs, out=outputs[0], stream=stream, **options)

            graphs.append((driver.graph_of(work), (inputs, room), outputs))
            del kernel, work
            gc.collect()
        return graphs

    def test_keep_the_code_of_kernels_that_are_gone(self):
        driver = Driver()
        before = driver.libraries()
        graphs = self.captured(driver)
        self.assertGreaterEqual(driver.libraries(), before + len(graphs))
        for executable, _, _ in graphs:
            driver.cuGraphLaunch(executable, None)
        for executable, _, _ in graphs:
            driver.cuGraphExecDestroy(executable)
        # The next launch unloads what nothing needs any more.
        kernel = rooftile.plan(**next(iter(REQUESTS.values()))).compile()
        inputs, outputs = arguments(kernel.plan)
        kernel(*inputs, out=outputs[0])
        kernel(*inputs, out=outputs[0])
        self.assertLessEqual(driver.libraries(), before + 1)

    def test_are_captured_by_many_threads(self):
        driver = Driver()
        graphs, faults = [], []

        def capture():
            try:
                graphs.extend(self.captured(driver))
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=capture) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        for executable, _, _ in graphs:
            driver.cuGraphLaunch(executable, None)
            driver.cuGraphExecDestroy(executable)

    def test_at_exit_a_process_ends_as_it_should(self):
        code = (
            "import sys; sys.argv[1:] = []\nfrom test_kernel import *\n"
            "graphs = Graphs().captured(Driver())\nfor graph, _, _ in graphs: Driver().cuGraphLaunch(graph, None)\n"
        )
        path = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(os.path.dirname(rooftile.__file__))])
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_have_no_workspace_that_a_call_frees(self):
        driver = Driver()
        with self.assertRaisesRegex(rooftile.RequestError, "give it as workspace="):
            self.captured(driver, WORKSPACES, workspace=False)
        for executable, _, _ in self.captured(driver, WORKSPACES):
            driver.cuGraphLaunch(executable, None)


@launches
class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plans = {name: rooftile.plan(**request) for name, request in REQUESTS.items()}
        cls.kernels = {name: rooftile.compile(plan) for name, plan in cls.plans.items()}

    def each(self, kind=Tensor):
        return [(kernel, *arguments(kernel.plan, kind)) for kernel in self.kernels.values()]

    def refused(self, message, kernel, *inputs, **keywords):
        with self.assertRaisesRegex(rooftile.RequestError, message):
            kernel(*inputs, **keywords)

    def test_say_what_they_are(self):
        for name, kernel in self.kernels.items():
            self.assertIs(kernel.plan, self.plans[name])
            self.assertEqual(json.loads(kernel.json())["arch"], "sm_90a")
            self.assertGreaterEqual(kernel.workspace_bytes(), 0)

    def test_take_tensors_by_position_and_by_name(self):
        for kernel, inputs, outputs in self.each():
            self.assertIs(kernel(*inputs, out=outputs[0]), outputs[0])
            names = [t.name for t in kernel.plan.tensors]
            self.assertIs(kernel(inputs[0], **dict(zip(names[1:], inputs[1:])), out=(outputs[0],)), outputs[0])
            self.assertEqual(inputs[0].asked, [1, 1])  # the legacy default stream
            kernel(*inputs, out=outputs[0], stream=0)
            self.assertEqual(inputs[0].asked[2:], [1])

    def test_make_outputs_by_the_exchange_interface(self):
        for kernel, inputs, outputs in self.each(FastTensor):
            made = kernel(*inputs)
            self.assertEqual((made.type, made.shape, made.strides), (outputs[0].type, outputs[0].shape, outputs[0].strides))
            self.assertIs(kernel(*inputs, out=outputs[0]), outputs[0])
            self.assertEqual(FastTensor.made, {}, "every tensor that was allocated went to its owner")

    def test_refuse_what_is_not_as_planned(self):
        for kernel, inputs, outputs in self.each():
            first, *others = inputs
            name = kernel.plan.tensors[0].name
            shorter = (first.shape[0] // 2, *first.shape[1:])
            wider = tuple(2 * stride for stride in first.strides)
            self.refused(f"{name} is fp32; the plan has bf16", kernel, first.changed(type="fp32"), *others, out=outputs[0])
            self.refused(rf"{name} is \[{shorter[0]},", kernel, first.changed(shape=shorter), *others, out=outputs[0])
            self.refused(f"{name} has strides", kernel, first.changed(strides=wider), *others, out=outputs[0])
            self.refused(f"{name} is not on a CUDA device", kernel, first.changed(device=CPU), *others, out=outputs[0])
            self.refused("on device 1", kernel, first, *[t.changed(ordinal=1) for t in others], out=outputs[0])
            self.refused("no __dlpack__", kernel, 1, *others, out=outputs[0])
            self.refused("tensors are given", kernel, *inputs, first, out=outputs[0])
            self.refused(f"{kernel.plan.tensors[1].name} is not given", kernel, first, out=outputs[0])
            self.refused("given twice", kernel, *inputs, out=outputs[0], **{name: first})
            self.refused("unknown among", kernel, *inputs, output=outputs[0])
            self.refused("out has 2 tensors; the plan has 1", kernel, *inputs, out=(outputs[0], outputs[0]))
            self.refused("give it as out=", kernel, *inputs)
            self.refused("stream is a", kernel, *inputs, out=outputs[0], stream="0")

    def test_take_numbas_interface(self):
        class Numbas:
            def __init__(self, tensor, **changed):
                bytes = tensor.view.dtype.bits // 8
                self.__cuda_array_interface__ = {
                    "shape": tensor.shape, "typestr": f"<f{bytes}", "data": (tensor.view.data, False),
                    "strides": tuple(bytes * stride for stride in tensor.strides), "version": 3, **changed,
                }  # fmt: skip

        for kernel, inputs, outputs in self.each():
            first, name = inputs[0], kernel.plan.tensors[0].name
            # It has no name for bf16, so that no tensor of these plans can be handed over.
            self.refused(f"{name} is fp16; the plan has bf16", kernel, Numbas(first), *inputs[1:], out=outputs[0])
            self.refused("stream 7", kernel, Numbas(first, stream=7), *inputs[1:], out=outputs[0])
            self.refused("cannot be read", kernel, Numbas(first, shape=None), *inputs[1:], out=outputs[0])

    def test_refuse_outputs_that_overlap(self):
        for kernel, inputs, outputs in self.each():
            on_input = outputs[0].changed(memory=inputs[0].memory)
            self.refused("overlaps", kernel, *inputs, out=on_input)

    def test_an_unaligned_pointer_is_refused(self):
        for kernel, inputs, outputs in self.each():
            off = inputs[0].changed()
            off.managed.view.byte_offset = 2
            self.refused("aligned", kernel, off, *inputs[1:], out=outputs[0])

    def test_read_the_negative_of_what_a_lazy_tensor_holds(self):
        for kind in (LazyTensor, LazyFastTensor):
            for kernel, inputs, outputs in self.each(kind):
                for tensor in (*inputs, *outputs):
                    tensor.negative = False
                kernel(*inputs, out=outputs[0])
                for index, tensor in enumerate(inputs):
                    tensor.negative = True
                    kernel(*inputs, out=outputs[0])
                    self.assertLessEqual(sys.getrefcount(tensor.resolved), 3, "it is given back")
                    # What is read is the tensor that was made, as an output tells that lies on it.
                    tensor.resolve_neg = lambda: outputs[0].changed(type=tensor.type, shape=tensor.shape, strides=tensor.strides,
                                                                    memory=large)  # fmt: skip
                    large = ctypes.create_string_buffer(max(len(tensor.memory), len(outputs[0].memory)))
                    there = outputs[0].changed(memory=large)
                    there.negative = False
                    self.refused("overlaps", kernel, *inputs, out=there)
                    self.refused("negative bit: give its resolve_neg", kernel, *inputs, out=outputs[0], stream=0)
                    tensor.negative = False
                outputs[0].negative = True
                self.refused("negative bit: give a tensor without it", kernel, *inputs, out=outputs[0])

    def test_null_strides_are_dense_ones(self):
        for kernel, inputs, outputs in self.each():
            for t in inputs + outputs:
                if t.strides == dense(t.shape):
                    t.managed.view.strides = None
            kernel(*inputs, out=outputs[0])

    def test_a_fault_is_the_calls_where_launches_are_waited_for(self):
        code = (
            "import os, rooftile, sys\nfrom support import *\n"
            "rooftile._rooftile.add_cuda_folder(os.environ['ROOFTILE_TEST_CUDA'])\n"
            "kernel = rooftile.plan(**REQUESTS[sys.argv[1]]).compile()\n"
            "inputs, outputs = arguments(kernel.plan)\n"
            "try: kernel(*inputs, out=outputs[0]); print('passed')\n"
            "except rooftile.GpuFailed as error: print(error)\n"
        )
        path = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(os.path.dirname(rooftile.__file__))])
        for name, kernel in self.kernels.items():
            entry = json.loads(kernel.json())["lowered_name"]
            for blocking, words in (("1", f"the kernel started by cuLaunchKernelEx of {entry}"), ("0", "passed")):
                run = subprocess.run(
                    [sys.executable, "-c", code, name], capture_output=True, text=True,
                    env={**os.environ, "PYTHONPATH": path, "ROOFTILE_LAUNCH_BLOCKING": blocking, "FAKE_FAULT": entry},
                )  # fmt: skip
                self.assertEqual(run.stderr, "")
                self.assertIn(words, run.stdout)

    def test_a_forked_process_says_so(self):
        kernel, inputs, outputs = self.each()[0]
        kernel(*inputs, out=outputs[0])
        child = os.fork()
        if child == 0:
            status = 0
            try:
                kernel(*inputs, out=outputs[0])
            except rooftile.GpuFailed as error:
                status = 42 if "forked" in str(error) else 1
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)

    def test_a_hundred_thousand_calls_keep_no_tensor(self):
        kernel, inputs, outputs = self.each(FastTensor)[0]
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(100_000):
            kernel(*inputs, out=outputs[0])
        gc.collect()
        self.assertLess(len(gc.get_objects()) - before, 1000)


if __name__ == "__main__":
    unittest.main()
