"""load(): kernels of one's own as functions on tensors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rooftile import _cuda, _rooftile
from rooftile._errors import RequestError

_Size = int | Sequence[int]


def _current(device: int) -> tuple[int, int]:
    """Device (-1: any) and stream where the tensors' library says none: torch's, where it works with GPUs."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return max(device, 0), 0
    device = device if device >= 0 else torch.cuda.current_device()
    return device, torch.cuda.current_stream(device).cuda_stream


@dataclass(frozen=True)
class Parameter:
    """What a kernel takes in a place: "pointer", "int", "uint" (booleans and enums too), "float" or "struct", and its bytes."""

    kind: str
    bytes: int


class Function:
    """A kernel: function[grid, block](*arguments), or function(*arguments, grid=..., block=..., shared=0, cluster=None, stream=None).

    `grid`, `block` (1024 threads at most) and `cluster` are a number or up to three; `shared` is dynamic shared memory in bytes of a CTA.
    Arguments are, by the kernel's parameters: tensors on one CUDA device (DLPack: torch, CuPy, JAX; or __cuda_array_interface__),
    None for a null pointer, whole and floating-point numbers, bytes of a struct. A tensor without elements is null, and a grid of 0 launches nothing.
    `stream`: a handle or a stream object; without it the current stream of the tensors' library. A call neither synchronises nor
    waits; it can be captured into a graph, which keeps the code, after one call outside it or load().
    Raises RequestError, before anything is launched, where an argument is not what the kernel takes.
    """

    def __init__(self, source: _rooftile.Source, index: int, document: dict[str, Any]) -> None:
        self._source, self._index = source, index  # the code lives as long as one of its functions
        self.name: str = document["name"]
        self.registers: int = document["registers"]
        self.spill_bytes: int = document["spill_bytes"]
        self.static_shared_bytes: int = document["static_shared_bytes"]
        self.parameters = tuple(Parameter(**parameter) for parameter in document["parameters"])

    def __call__(
        self, *arguments: Any, grid: _Size, block: _Size, shared: int = 0, cluster: _Size | None = None, stream: Any = None
    ) -> None:
        self._source.launch(self._index, self.name, arguments, grid, block, cluster, shared, stream, _current)

    def __getitem__(self, sizes: tuple[_Size, _Size]) -> Any:
        if not isinstance(sizes, tuple) or len(sizes) != 2:
            raise RequestError(f"{self.name}[...] takes a grid and a block, as {self.name}[(64, 2), 256]")
        grid, block = sizes

        def launch(*arguments: Any, shared: int = 0, cluster: _Size | None = None, stream: Any = None) -> None:
            self._source.launch(self._index, self.name, arguments, grid, block, cluster, shared, stream, _current)

        return launch

    def __repr__(self) -> str:
        takes = ", ".join(f"{parameter.kind} {parameter.bytes} B" for parameter in self.parameters)
        return f"<rooftile function {self.name}({takes}), {self.registers} registers>"


class Module:
    """Kernels of a source: module.scale, module["gelu<float>"]; `arch`, `functions` by name, `left_out` of what was for the host."""

    def __init__(self, source: _rooftile.Source) -> None:
        document = json.loads(source.json())
        self._source = source
        self.arch: str = document["arch"]
        self.left_out: tuple[str, ...] = tuple(document["left_out"])
        self.functions = {made["name"]: Function(source, index, made) for index, made in enumerate(document["functions"])}

    def load(self, device: int = 0) -> None:
        """Loads the code onto a GPU, which the first call does too, but not while a graph is captured."""
        self._source.load(device)

    def __getitem__(self, name: str) -> Function:
        """By its name, which may lack namespaces, and arguments of a template that has one instance."""
        short = [own for own in self.functions if own.partition("<")[0].rpartition("::")[2] == name]
        found = name if name in self.functions else short[0] if len(short) == 1 else None
        if found is None:
            raise RequestError(f"there is {'more than one' if short else 'no'} function {name}; there is {', '.join(self.functions)}")
        return self.functions[found]

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__") or "functions" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self[name]
        except RequestError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.partition("<")[0].rpartition("::")[2] for name in self.functions)]

    def __repr__(self) -> str:
        return f"<rooftile module for {self.arch}: {', '.join(self.functions)}>"


def load(
    source: str | os.PathLike[str],
    functions: Sequence[str] = (),
    *,
    include: Sequence[str] = (),
    arch: str | None = None,
    machine: str | None = None,
) -> Module:
    """Kernels of a `.cu` file as it lies, or of CUDA C++ itself (text with a line break or __global__), as functions on tensors.

        mod = rooftile.load("kernels.cu", functions=["scale", "gelu<float>"])
        mod.scale[grid, block](y, x, 2.0, n)

    `functions`: as C++ calls them, templates with their arguments; without it all that are no templates. They are compiled in one
    program, for the GPU here, or for `arch` ("sm_90") or a `machine`; needs CUDA 13's NVRTC. What is for the host is left out
    (`left_out`) and never run. `include`: folders where #include looks beside the file's own or, of a text, the current one.
    Raises RequestError where a file or a function is not there, CompileFailed with NVRTC's log in `detail`, NoGpu where nothing says
    what to compile for.
    """
    if isinstance(functions, str):
        functions = [functions]
    path = isinstance(source, os.PathLike) or ("\n" not in source and "__global__" not in source)
    request: dict[str, Any] = {"file" if path else "text": os.fspath(source)}
    more = {"functions": list(functions), "include": list(map(os.fspath, include)), "arch": arch, "machine": machine}
    request.update({key: value for key, value in more.items() if value})
    _cuda.prepare()
    return Module(_rooftile.Source(json.dumps(request)))
