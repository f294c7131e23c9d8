"""What scripts that time our kernels beside others have in common: the library's C interface, CUDA graphs over sets of tensors, rounds
of competitors in turn.

Sets of tensors are taken one after the other, together several L2; competitors alternate in blocks of some milliseconds, all from CUDA
graphs. A ratio is the other's time over ours in the same round, median of the rounds.
"""
import ctypes
import json
import math
import statistics

import torch

L2_FACTOR = 4
L2_BYTES = 60 * 2**20
ROUNDS = 7
BLOCK_SECONDS = 0.006


class Library:
    """librooftile.so; calls raise RuntimeError with its message."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.rooftile_error_message.restype = ctypes.c_char_p

    def __call__(self, function, *arguments):
        if getattr(self.c, function)(*arguments):
            raise RuntimeError(self.c.rooftile_error_message().decode())

    def plans(self, op, fields, top=1):
        """The best plans of a problem, as a handle and as documents."""
        plans, text = ctypes.c_void_p(), ctypes.c_char_p()
        request = {"op": op, "top": top, **fields}  # for the GPU that is here
        self("rooftile_plan", json.dumps(request).encode(), ctypes.byref(plans))
        self("rooftile_plans_json", plans, ctypes.byref(text))
        return plans, json.loads(text.value)["plans"]

    def compiled(self, plans, rank):
        kernel = ctypes.c_void_p()
        self("rooftile_compile", plans, rank, ctypes.byref(kernel))
        return kernel


class Kernel:
    """A plan of a problem, loaded on device 0."""

    def __init__(self, library, plans, plan):
        self.library = library
        self.kernel = library.compiled(plans, plan["rank"])
        self.config, self.predicted_us = plan["config"], plan["prediction"]["time_us"]
        library("rooftile_load", self.kernel, 0)
        size = ctypes.c_size_t()
        library("rooftile_workspace_bytes", self.kernel, 0, ctypes.byref(size))
        self.workspace = torch.zeros(max(16, size.value), dtype=torch.uint8, device="cuda")

    def launch(self, *tensors):
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        self.library("rooftile_launch", self.kernel, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), pointers,
                     len(tensors), ctypes.c_void_p(self.workspace.data_ptr()))


def where():
    """What figures are of."""
    return f"on {torch.cuda.get_device_name()}, torch {torch.__version__}"


def sets_for(bytes_of_set, most=16):
    """How many sets of tensors are together several L2."""
    return max(1, min(most, -(-L2_FACTOR * L2_BYTES // bytes_of_set)))


def graph_of(function, sets):
    """All sets once, as a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for tensors in sets:
            function(*tensors)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for tensors in sets:
            function(*tensors)
    return graph


def seconds(graph, count):
    """Of one replay, in the mean of `count`."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


class Rounds:
    """Graphs by name, each over `sets` sets of tensors."""

    def __init__(self, graphs, sets):
        self.graphs, self.sets = graphs, sets
        self.repeats = {name: max(1, round(BLOCK_SECONDS / seconds(graph, 2))) for name, graph in graphs.items()}

    def microseconds(self, names=None):
        """Of a launch, by name one of each round; every second round in the other order."""
        names = list(names or self.graphs)
        times = {name: [] for name in names}
        for round_ in range(ROUNDS):
            for name in (names if round_ % 2 else reversed(names)):
                times[name].append(seconds(self.graphs[name], self.repeats[name]) / self.sets * 1e6)
        return times


def ratio(others, ours):
    """Median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(others, ours))


def mean(values):
    """Geometric; NaN of none."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def prediction_text(pairs):
    """Of (predicted, measured) in us, from 5 us on; empty where none is."""
    errors = sorted(abs(predicted / us - 1) for predicted, us in pairs if us >= 5)
    if not errors:
        return ""
    return f"prediction: {statistics.fmean(errors):.1%} off in the mean, 95th percentile {errors[int(0.95 * (len(errors) - 1))]:.1%}"
