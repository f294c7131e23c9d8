"""Weights of 4 bits as kernels read them, packed once from plain arrays."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from typing import Any

from rooftile import _rooftile
from rooftile._errors import RequestError
from rooftile._plan import operations

_TYPES = {"b": "int8", "B": "uint8", "f": "fp32", "e": "fp16"}


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """W[n, k] = (q - zero) * scale, packed: `data` is what a kernel takes for its weights."""

    data: bytearray = dataclasses.field(repr=False)
    n: int
    k: int
    weights: str
    group: int | str
    scale: str
    zeros: bool

    def fields(self, type: str) -> dict[str, Any]:
        """Those of a request for a product with activations of that type, "bf16" or "fp16"."""
        return {
            "n": self.n,
            "types": f"{type},{self.weights},{type}",
            "quant_group": str(self.group),
            "quant_scale": self.scale,
            "quant_zero": "int" if self.zeros else "none",
        }


def _op() -> str:
    for op in operations().values():
        if any(field.key == "quant_group" for field in op.fields):
            return op.name
    raise RequestError("this build has no operation that takes packed weights")


def _array(name: str, array: Any) -> tuple[Any, str, int, int]:
    """As the C module takes it; a tensor of another library is copied to the host, its 16-bit floats as fp32, which holds them."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = (array.float() if array.is_floating_point() else array).contiguous().numpy()
    try:
        view = memoryview(array)
    except TypeError:
        raise RequestError(f"{name} is {type(array).__name__}; accepted is an array of two axes with the buffer protocol, as NumPy's") from None
    if view.shape is None or view.ndim != 2 or view.format not in _TYPES:
        raise RequestError(f"{name} has {view.ndim} axes of format {view.format!r}; accepted are two, of int8, uint8, fp16 or fp32")
    if not view.c_contiguous:
        raise RequestError(f"{name} is not contiguous; make a dense copy of it")
    return view, _TYPES[view.format], view.shape[0], view.shape[1]


def pack(q: Any, scales: Any, zeros: Any = None, *, weights: str = "int4", group: int | str = 128, scale: str = "bf16") -> Packed:
    """Packs W[n, k] = (q - zero) * scale for products of few rows.

    q [N, K] holds whole numbers, -8 .. 7 of int4 or 0 .. 15 of uint4, as int8 or uint8; scales [N, ceil(K / group)] are fp32 or fp16 and
    rounded to `scale` (bf16 or fp16); zeros, where there are any, are whole numbers as q in the shape of scales. `group`: 32, 64, 128 or
    "row". Raises rooftile.RequestError naming the first number that does not fit.
    """
    arrays = [_array("q", q), _array("scales", scales)]
    if zeros is not None:
        arrays.append(_array("zeros", zeros))
    n, k = arrays[0][2:]
    packed = Packed(bytearray(), n, k, weights, group, scale, zeros is not None)
    request = json.dumps({"op": _op(), "m": 1, "k": k, **packed.fields("bf16")})
    return dataclasses.replace(packed, data=_rooftile.pack(request, tuple(arrays)))


def pack_gguf(file: str | os.PathLike[str], tensor: str) -> Packed:
    """Packs one tensor of a GGUF file, by its name ("blk.0.ffn_up.weight"); nothing of its numbers is rounded.

    Q4_0: int4 in groups of 32 with scales of fp16. Needs the package gguf. Raises rooftile.RequestError where the file has no such tensor,
    or it is of another type.
    """
    try:
        import gguf  # type: ignore[import]
    except ImportError:
        raise RequestError("reading GGUF files needs the package gguf: pip install gguf") from None
    named = {found.name: found for found in gguf.GGUFReader(file).tensors}
    if tensor not in named:
        near = difflib.get_close_matches(tensor, named, n=1)
        raise RequestError(f"{os.fspath(file)} has no tensor {tensor!r}" + (f"; the nearest is {near[0]!r}" if near else f"; it has {len(named)}"))
    found = named[tensor]
    if found.tensor_type != gguf.GGMLQuantizationType.Q4_0 or len(found.shape) != 2:
        raise RequestError(f"{tensor} is {found.tensor_type.name} of {len(found.shape)} axes; packed so far is Q4_0 of two")
    k, n = (int(extent) for extent in found.shape)
    # A block of 32 along K: its scale, then 16 bytes whose low halves are weights 0 .. 15 and whose high halves are 16 .. 31, 8 added.
    blocks = found.data.reshape(n, k // 32, 18)
    scales = blocks[:, :, :2].copy().view("float16").reshape(n, k // 32)
    halves = blocks[:, :, 2:]
    q = halves.repeat(2, axis=2)  # room for both
    q[:, :, :16], q[:, :, 16:] = halves & 15, halves >> 4
    return pack(q.view("int8").reshape(n, k) - 8, scales, group=32, scale="fp16")
