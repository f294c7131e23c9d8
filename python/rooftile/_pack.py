"""Weights of 4 and 8 bits as kernels read them, packed once from plain arrays."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import sys
from typing import Any

from rooftile import _rooftile
from rooftile._errors import RequestError
from rooftile._plan import operations

# By the number that the first word of packed weights has for them.
_WEIGHTS = ("none", "int4", "uint4", "int8", "fp8_e4m3", "fp8_e5m2", "mxfp4", "nf4")
_TYPES = {"b": "int8", "B": "uint8", "f": "fp32", "e": "fp16"}


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """Weights of 4 or 8 bits, packed: `data` is what a kernel takes for them. `zeros`: "none", W = q * scale; "int", (q - zero) * scale;
    "float", q * scale - zero."""

    data: bytearray = dataclasses.field(repr=False)
    n: int
    k: int
    weights: str
    group: int | str
    scale: str
    zeros: str

    def fields(self, type: str, result: str | None = None) -> dict[str, Any]:
        """Those of a request for a product with activations of that type, "bf16" or "fp16", or of 8 bits to a result of either."""
        return {
            "n": self.n,
            "types": f"{type},{self.weights},{result or type}",
            "quant_group": str(self.group),
            "quant_scale": self.scale,
            "quant_zero": self.zeros,
        }

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Packed:
        """What `rooftile pack` wrote, or somebody who wrote `data`."""
        with open(file, "rb") as opened:
            data = bytearray(opened.read())
        what, n, k = struct.unpack_from("<3I", data) if len(data) >= 12 else (0, 0, 0)
        # The first word, as kernels compare it: a magic number and a version, the weights' type, the scales', the zero points', the group.
        weights = _WEIGHTS[what >> 10 & 3 | (what >> 1 & 1) << 2]
        if what >> 12 != 0x51541 or weights == "none":
            raise RequestError(f"{os.fspath(file)} holds no packed weights of this version; `rooftile pack` writes them")
        zeros = "float" if what & 1 else "int" if what >> 8 & 1 else "none"
        scale = "e8m0" if weights == "mxfp4" else "fp16" if what >> 9 & 1 else "bf16"
        packed = cls(data, n, k, weights, what & 0xE0 or "row", scale, zeros)
        wanted = _rooftile.packed_bytes(packed._request())
        if wanted != len(data):
            raise RequestError(f"{os.fspath(file)} has {len(data)} bytes; weights of {n} x {k} take {wanted}")
        return packed

    def _request(self) -> str:
        """One row by them, as JSON."""
        return json.dumps({"op": _op(), "m": 1, "k": self.k, **self.fields("bf16")})


def _op() -> str:
    for op in operations().values():
        if any(field.key == "quant_group" for field in op.fields):
            return op.name
    raise RequestError("this build has no operation that takes packed weights")


def _array(name: str, array: Any) -> tuple[Any, str, int, int]:
    """As the C module takes it; a tensor of another library is copied to the host, its 16-bit floats as fp32, which holds them."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if array.element_size() == 1 and array.is_floating_point():  # of 8 bits these are what is packed
            array = array.view(sys.modules["torch"].uint8)
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


def pack(
    q: Any, scales: Any, zeros: Any = None, *, weights: str = "int4", group: int | str | None = None, scale: str | None = None
) -> Packed:
    """Packs W[n, k] = (q - zero) * scale for products of few rows; with zeros that are floats, q * scale - zero.

    q [N, K] holds whole numbers, -8 .. 7 of int4, 0 .. 15 of uint4 or -128 .. 127 of int8, as int8 or uint8; or as uint8 what is packed: the
    bits of fp8_e4m3 and fp8_e5m2 (torch's own types too; NaN and infinite ones are refused), of mxfp4 those of e2m1, of nf4 the place in QLoRA's
    table. scales [N, ceil(K / group)] are fp32 or fp16 and rounded to `scale` (bf16, the default, or fp16); of mxfp4 they are powers of two, or their
    exponents as uint8 (e8m0). zeros, where there are any, have the shape of scales and are whole numbers as q, or floats, which are rounded too; of
    whole numbers alone. `group`: 32, 64, 128 or "row"; default 128, 64 of nf4, 32 of mxfp4. Raises rooftile.RequestError naming the first number that
    does not fit.
    """
    arrays = [_array("q", q), _array("scales", scales)]
    if zeros is not None:
        arrays.append(_array("zeros", zeros))
    n, k = arrays[0][2:]
    width: int | str = {"mxfp4": 32, "nf4": 64}.get(weights, 128) if group is None else group
    scale = scale or ("e8m0" if weights == "mxfp4" else "bf16")
    kind = "none" if zeros is None else "int" if arrays[2][1] in ("int8", "uint8") else "float"
    packed = Packed(bytearray(), n, k, weights, width, scale, kind)
    return dataclasses.replace(packed, data=_rooftile.pack(packed._request(), tuple(arrays)))


def pack_file(file: str | os.PathLike[str], tensor: str, scale: str | None = None) -> Packed:
    """Packs one matrix of a GGUF or safetensors file, by its name there.

    GGUF: a tensor of Q4_0, Q4_K, Q8_0 or MXFP4 ("blk.0.ffn_up.weight"). safetensors: a layer of AWQ or GPTQ, whose tensors are NAME.qweight,
    NAME.scales and NAME.qzeros, or a matrix of MXFP4, whose tensors are NAME_blocks and NAME_scales. NAME[E] is the matrix of one expert. `scale`: the packed scales' type, "fp16" or "bf16"; without it the one that holds the file's best. Raises
    rooftile.RequestError where the file has no such matrix or it cannot be packed.
    """
    path = os.fspath(file)
    stored = json.loads(_rooftile.stored_weights(path, tensor, scale))
    request = stored["request"]
    group = request["quant_group"]
    return Packed(
        _rooftile.pack_stored(path, tensor, scale, stored["packed_bytes"]),
        stored["n"],
        stored["k"],
        request["types"].split(",")[1],
        group if group == "row" else int(group),
        request["quant_scale"],
        request["quant_zero"],
    )
