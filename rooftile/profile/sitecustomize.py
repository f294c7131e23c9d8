"""Put before a profiled Python program by `rooftile profile --operators`: once torch is imported, each of its operators is an NVTX range
with the shapes of its tensors. A sitecustomize of the user's own still runs."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class TorchWatcher(importlib.abc.MetaPathFinder):
    """Finds torch as anyone else does, and starts the ranges when it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_watch(module):
            run(module)
            try:
                ranges = module.autograd.profiler.emit_nvtx(record_shapes=True)
                ranges.__enter__()
                module.autograd.profiler.rooftile_ranges = ranges  # as long as the program
            except Exception as error:  # the program matters more than its profile
                print(f"rooftile: no ranges of torch's operators: {error}", file=sys.stderr)

        spec.loader.exec_module = run_and_watch
        return spec


sys.meta_path.insert(0, TorchWatcher())
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if own is not None and own.loader is not None:
    module = importlib.util.module_from_spec(own)
    own.loader.exec_module(module)
