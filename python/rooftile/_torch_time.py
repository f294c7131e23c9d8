"""How long PyTorch takes for a function of tensors, in the modes of `measure`. Imports torch, whose GPU it uses."""

from __future__ import annotations

import ctypes
import inspect
import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from rooftile._errors import NoGpu, RequestError

_DECLARED = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*\[([\d\s,]*)\]\s*")
_SAMPLES = 20
_LOAD_S, _BLOCK_S = 2.0, 5e-3  # before sustained times are taken, and of one sample


def _inputs(torch: Any, declared: Sequence[str], names: Sequence[str]) -> list[Any]:
    types = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
    known = {}
    for text in declared:
        match = _DECLARED.fullmatch(text)
        if match is None or match[2] not in types:
            continue  # the program says what is wrong with it
        known[match[1]] = (types[match[2]], [int(extent) for extent in match[3].split(",") if extent.strip()])
    for name in names:
        if name not in known:
            raise RequestError(f"the function for PyTorch takes {name}; the tensors are {', '.join(known)}")
    return [torch.randn(known[name][1], device="cuda").to(known[name][0]) for name in names]


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty]


def _nodes_of(graph: Any) -> int | None:
    """Launches that were captured; None where this PyTorch or driver does not say."""
    try:
        count = ctypes.c_size_t()
        status = ctypes.CDLL("libcuda.so.1").cuGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
    except (AttributeError, OSError, RuntimeError):
        return None
    return count.value if status == 0 else None


def _call_of(torch: Any, function: Callable[..., Any], tensors: list[Any]) -> tuple[Callable[[], Any], int | None]:
    """A call, as a graph where it can be captured: kernels are timed, not their launches; and how many those are."""
    for _ in range(3):
        function(*tensors)
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
    except TypeError:  # before torch 2.8, which keeps none
        graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            function(*tensors)
    except RuntimeError:
        return lambda: function(*tensors), None
    nodes = _nodes_of(graph)
    graph.replay()  # which makes it ready
    return graph.replay, nodes


def eager_time(function: Callable[..., Any], tensors: Sequence[str], mode: str = "sustained") -> tuple[float, int | None]:
    """Median time of one call in microseconds, on random numbers, and its launches. `tensors` as "x:bf16[64,64]"; the function's parameters are names of
    them. Raises NoGpu, RequestError."""
    try:
        import torch
    except ImportError:
        raise RequestError("torch=... needs PyTorch, which is not installed here") from None
    if not torch.cuda.is_available():
        raise NoGpu("PyTorch finds no GPU")
    with torch.no_grad():
        names = _parameters(function)
        first = _inputs(torch, tensors, names)
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        # Sets of inputs that together do not fit in L2, so that none finds its own there.
        bytes = max(1, sum(tensor.numel() * tensor.element_size() for tensor in first))
        count = 1 if mode == "cold" else min(64, 4 * l2 // bytes + 1)
        sets = [first, *(_inputs(torch, tensors, names) for _ in range(count - 1))]
        calls = [_call_of(torch, function, tensors) for tensors in sets]
        launches = calls[0][1]
        replays = [replay for replay, _ in calls]
        us = _cold(torch, replays[0], 2 * l2) if mode == "cold" else _sustained(torch, replays, mode == "burst")
    del first, sets, calls, replays
    torch.cuda.empty_cache()  # others want the memory now
    return us, launches


def _timed(torch: Any, calls: Sequence[Callable[[], Any]]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for call in calls:
        call()
    end.record()
    end.synchronize()
    return 1e3 * float(start.elapsed_time(end)) / len(calls)


def _cold(torch: Any, call: Callable[[], Any], bytes: int) -> float:
    flush = torch.empty(bytes, dtype=torch.uint8, device="cuda")
    samples = []
    for _ in range(_SAMPLES):
        flush.zero_()
        samples.append(_timed(torch, [call]))
    return statistics.median(samples)


def _sustained(torch: Any, calls: Sequence[Callable[[], Any]], burst: bool) -> float:
    once = _timed(torch, calls)
    turns = max(1, int(1e6 * _BLOCK_S / (once * len(calls))))
    if burst:
        time.sleep(1)
        return statistics.median(_timed(torch, list(calls) * turns) for _ in range(8))
    end = time.monotonic() + _LOAD_S
    while time.monotonic() < end:
        _timed(torch, list(calls) * turns)
    return statistics.median(_timed(torch, list(calls) * turns) for _ in range(_SAMPLES))
