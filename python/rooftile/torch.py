"""Rooftile's operations on PyTorch's tensors: the only module of this package that imports torch.

    from rooftile import torch as rt
    y = rt.linear(x, weight, bias)               # as torch.nn.functional.linear

Every operation of rooftile.operations() is a function here under its name, and a custom operator
torch.ops.rooftile.NAME with a fake kernel, so that torch.compile, export and CUDA graphs take it. Tensors go by position
or by name, other values are the operation's fields:

    NAME(tensor, ..., FIELD=VALUE)  or  NAME("TEXT", tensor=tensor, ...)

The first call on tensors of some shape plans and compiles, in some 0.1 to 1 s; later ones find the kernel. Gradients: of
matrix products by two more, and of expressions and of a product's epilogue by evaluating these in torch.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

import rooftile
from rooftile import _rooftile
from rooftile._plan import Plan
from rooftile._range import PartKernels, PlanRange, is_range
from rooftile._tuned import KEPT, TunedKernel, keeps

_TYPES = {
    torch.bfloat16: ("bf16", 16),
    torch.float16: ("fp16", 16),
    torch.float32: ("fp32", 32),
    torch.float64: ("fp64", 64),
    torch.bool: ("bool", 8),
    torch.int8: ("int8", 8),
    torch.uint8: ("uint8", 8),
    torch.int32: ("int32", 32),
    torch.int64: ("int64", 64),
    torch.float8_e4m3fn: ("fp8_e4m3", 8),
    torch.float8_e5m2: ("fp8_e5m2", 8),
}
_DTYPES = {name: dtype for dtype, (name, _) in _TYPES.items()}
# A product and a row that is added to each of its own, by one kernel where the operation has such.
_WITH_ROW = ("", "", "row")
_ADD_ROW = {"epilogue": "d = acc + row"}
_ALIGNED = 256  # bytes; what allocations are aligned to, and kernels at most ask for
_OPERATIONS = rooftile.operations()
# The field of each that is given by position: an expression, of the operation that has one.
_TEXT_FIELDS = {
    op.name: next((field.key for field in op.fields if field.kind == "positional"), None) for op in _OPERATIONS.values()
}


def _strides(tensor: torch.Tensor, dense: bool) -> tuple[int, ...]:
    """As it lies, or its contiguous copy does; the stride along an axis of one element means nothing, and is such a copy's."""
    strides: list[int] = []
    stride = 1
    for extent, own in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        strides.insert(0, stride if dense or extent == 1 else int(own))
        stride *= int(extent)
    return tuple(strides)


def _input(name: str, tensor: torch.Tensor, offset: int, dense: bool) -> tuple[Any, ...]:
    """A tensor as _rooftile.Plans() takes it; `dense`: as its contiguous copy lies."""
    if tensor.dtype not in _TYPES:
        raise rooftile.RequestError(f"{name or 'a tensor'} is {tensor.dtype}, which no operation takes")
    type, bits = _TYPES[tensor.dtype]
    shape = tuple(int(extent) for extent in tensor.shape)
    return name or None, type, bits, shape, _strides(tensor, dense), 0 if dense else offset * 8 // bits


def _as_accepted(
    names: Sequence[str], tensors: Sequence[torch.Tensor], offsets: Sequence[int], planned: Callable[[Any], Any]
) -> tuple[Any, bool]:
    """What `planned` makes of tensors as they lie or, where no kernel takes that, of dense copies; and which it is."""
    refused: list[rooftile.RequestError | rooftile.Infeasible] = []
    for dense in (False, True):
        inputs = tuple(_input(name, t, offset, dense) for name, t, offset in zip(names, tensors, offsets, strict=True))
        try:
            return planned(inputs), dense
        except (rooftile.RequestError, rooftile.Infeasible) as error:
            refused.append(error)
    raise refused[0]


def _plans(
    op: str, names: Sequence[str], fields: dict[str, Any], tensors: Sequence[torch.Tensor], offsets: Sequence[int]
) -> tuple[_rooftile.Plans, bool]:
    request = json.dumps({"op": op, **fields})

    def planned(inputs: Any) -> _rooftile.Plans:
        plans = _rooftile.Plans(request, inputs)
        found = json.loads(plans.json())["plans"]
        if not any(plan["buildable"] for plan in found):
            raise rooftile.RequestError(f"plan 1 cannot be built: {found[0]['why_not']}")
        return plans

    return _as_accepted(names, tensors, offsets, planned)


def _offsets(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [tensor.data_ptr() % _ALIGNED for tensor in tensors]


def _first_buildable(plans: _rooftile.Plans) -> Plan:
    document = json.loads(plans.json())
    return Plan(plans, document, next((plan["rank"] for plan in document["plans"] if plan["buildable"]), 1))


def _compiled(first: Plan) -> _rooftile.Kernel:
    """The first plan from this one on that the compiler takes; where it takes none, what it said of this one is raised."""
    try:
        return first.compile()
    except rooftile.CompileFailed as refused:
        for ranked in first._document["plans"][first.rank :]:
            if not ranked["buildable"]:
                continue
            try:
                return Plan(first._plans, first._document, ranked["rank"]).compile()
            except rooftile.CompileFailed:
                pass
        raise refused


def _planned(op: str, fields: dict[str, Any], inputs: tuple[Any, ...]) -> Plan:
    return _first_buildable(_rooftile.Plans(json.dumps({"op": op, **fields}), inputs))


class _Found:
    """A kernel for tensors of one shape, and how they are handed to it."""

    __slots__ = ("dense", "kernel", "order", "outputs")

    def __init__(
        self, kernel: _rooftile.Kernel | TunedKernel, order: Sequence[int] | None = None, dense: bool = False, outputs: Sequence[Any] = ()
    ) -> None:
        self.kernel = kernel
        self.order = order
        self.dense = dense
        self.outputs = outputs  # (shape, strides, dtype) of each where one is not dense, which the kernel cannot make

    def __call__(self, tensors: Sequence[torch.Tensor]) -> Any:
        if self.order:
            tensors = [tensors[i] for i in self.order]
        if self.dense:
            tensors = [_as_dense(tensor) for tensor in tensors]
        if self.outputs:
            made = tuple(torch.empty_strided(shape, strides, dtype=dtype, device=tensors[0].device) for shape, strides, dtype in self.outputs)
            return self.kernel(*tensors, out=made if len(made) > 1 else made[0])
        return self.kernel(*tensors)


def _as_dense(tensor: torch.Tensor) -> torch.Tensor:
    """As an allocation of its own lies."""
    if tensor.is_contiguous() and tensor.data_ptr() % _ALIGNED == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _found_for(
    op: str, names: Sequence[str], fields: dict[str, Any], tensors: Sequence[torch.Tensor], tune: int | None = None
) -> _Found:
    plans, dense = _plans(op, names, fields, tensors, _offsets(tensors))
    plan = _first_buildable(plans)
    # Those without a name in their order; what the plan has no place for is not read, as C times 0.
    unnamed = [i for i, name in enumerate(names) if not name]
    order = []
    for tensor in plan.tensors:
        if not tensor.is_output:
            order.append(names.index(tensor.name) if tensor.name in names else unnamed.pop(0))
    made = [(t.shape, t.strides, _DTYPES[t.type]) for t in plan.tensors if t.is_output]
    apart = any(not _is_dense(shape, strides) for shape, strides, _ in made)
    kernel: _rooftile.Kernel | TunedKernel = _compiled(plan)
    if tune is not None:
        kernel = TunedKernel(plan, tune, kernel)
    return _Found(kernel, None if order == list(range(len(tensors))) else order, dense, made if apart else ())


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    dense = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != dense:
            return False
        dense *= max(1, extent)
    return True


class _Apart:
    """A product, and a row added to each of its rows by a launch of its own."""

    __slots__ = ("product",)

    def __init__(self, product: _Found) -> None:
        self.product = product

    def __call__(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        return self.product(tensors[:2]).add_(tensors[2])


class _Ranges:
    """Kernels for tensors of which one axis may have any extent of a range, compiled ahead."""

    def __init__(self, op: str, names: Sequence[str], fields: dict[str, Any], tensors: Sequence[torch.Tensor]) -> None:
        request = {"op": op, **fields}
        offsets = _offsets(tensors)
        (self.plan, self.inputs), self.dense = _as_accepted(
            names, tensors, offsets, lambda inputs: (PlanRange(request, inputs), inputs)
        )
        self.op = op
        self.own = {key: value for key, value in fields.items() if key not in (self.plan.field, "within")}
        self.index, self.axis = self._varying_axis()
        self.layout = self._layout(tensors)
        self.kernels = PartKernels(self.plan, self._plan_at)

    def _plan_at(self, value: int) -> Plan:
        inputs = _with_extent(self.inputs, self.index, self.axis, value)
        try:
            return _planned(self.op, {**self.own, **self.plan.fields(value)}, inputs)
        except rooftile.Infeasible:  # a value that was not looked at, and that its part's configuration cannot compute
            return _planned(self.op, self.own, inputs)

    def _varying_axis(self) -> tuple[int, int]:
        """Where one element more along an axis makes the field one more."""
        request = json.dumps({"op": self.op, **self.own})

        def field_of(inputs: tuple[Any, ...]) -> int:
            return json.loads(_rooftile.Plans(request, inputs).json())["problem"][self.plan.field]

        value = field_of(self.inputs)
        for index, (_, _, _, shape, _, _) in enumerate(self.inputs):
            for axis, extent in enumerate(shape):
                try:
                    if field_of(_with_extent(self.inputs, index, axis, extent + 1)) == value + 1:
                        return index, axis
                except rooftile.RequestError:
                    continue
        raise rooftile.RequestError(f"{self.plan.field} is no extent of one tensor alone; give one value")

    def _layout(self, tensors: Sequence[torch.Tensor]) -> Any:
        """All of the tensors but the extent that varies."""
        shapes = [list(tensor.shape) for tensor in tensors]
        shapes[self.index][self.axis] = 0
        return shapes, [_strides(tensor, False) for tensor in tensors], _offsets(tensors), [tensor.dtype for tensor in tensors]

    def serves(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether they lie as those that it was made for."""
        return tensors[self.index].dim() > self.axis and self._layout(tensors) == self.layout

    def found(self, tensors: Sequence[torch.Tensor]) -> _Found | None:
        """Of tensors that it serves; None: beside the range."""
        value = tensors[self.index].shape[self.axis]
        return _Found(self.kernels.at(value), dense=self.dense) if self.plan.least <= value <= self.plan.most else None


def _with_extent(inputs: tuple[Any, ...], index: int, axis: int, extent: int) -> tuple[Any, ...]:
    name, type, bits, shape, strides, offset = inputs[index]
    shape = (*shape[:axis], extent, *shape[axis + 1 :])
    return (*inputs[:index], (name, type, bits, shape, strides, offset), *inputs[index + 1 :])


_found: dict[Any, _Found | _Apart] = {}
_ranges: dict[Any, list[_Ranges]] = {}
_lock = threading.Lock()


@functools.cache
def _parsed(text: str) -> dict[str, Any]:
    """The fields of a call, which nobody changes."""
    return json.loads(text)


def _find(op: str, names: tuple[str, ...], text: str, tensors: Sequence[torch.Tensor]) -> _Found | _Apart:
    fields = _parsed(text)
    if not _adds_row(fields):
        return _find_kernel(op, names, fields, tensors)
    try:
        return _find_kernel(op, names, fields, tensors)
    except (rooftile.RequestError, rooftile.Infeasible):  # no kernel here adds a row that lies so
        return _Apart(_find_kernel(op, names[:2], _without_row(fields), tensors[:2]))


def _find_kernel(op: str, names: tuple[str, ...], fields: dict[str, Any], tensors: Sequence[torch.Tensor]) -> _Found:
    tune = fields.get("tune")
    if not any(map(is_range, fields.values())):
        fields = _without_tune(fields)
        if tune is not None and "top" not in fields and keeps(op):
            fields["top"] = KEPT
        return _found_for(op, names, fields, tensors, tune)
    if tune is not None:
        raise rooftile.RequestError(f"tune is {tune}, and a size is a range: tune single sizes")
    if any(tensor.numel() == 0 for tensor in tensors):  # whatever the range is, there is nothing to do
        return _found_for(op, names, _without_range(fields), tensors)
    known = _ranges.setdefault((op, names, json.dumps(fields)), [])
    ranges = next((ranges for ranges in known if ranges.serves(tensors)), None)
    if ranges is None:
        ranges = _Ranges(op, names, fields, tensors)
        known.append(ranges)
    # An extent beside the range has a plan of its own.
    return ranges.found(tensors) or _found_for(op, names, ranges.own, tensors)


def _without_range(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "within" and not is_range(value)}


def _without_tune(fields: dict[str, Any]) -> dict[str, Any]:
    """A word of this module's functions, and no field of an operation."""
    return {key: value for key, value in fields.items() if key != "tune"}


def _adds_row(fields: dict[str, Any]) -> bool:
    return fields.get("epilogue") == _ADD_ROW["epilogue"]


def _without_row(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in _ADD_ROW}


def _key_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() % _ALIGNED


def _run(op: str, names: tuple[str, ...], fields: str, tensors: Sequence[torch.Tensor]) -> Any:
    key: tuple[Any, ...]
    if len(tensors) == 2:  # the most frequent ones, without a list
        a, b = tensors
        key = (
            op, names, fields, a.get_device(), a.dtype, a.shape, a.stride(), a.data_ptr() % _ALIGNED,
            b.dtype, b.shape, b.stride(), b.data_ptr() % _ALIGNED,
        )  # fmt: skip
    elif len(tensors) == 3:
        a, b, c = tensors
        key = (
            op, names, fields, a.get_device(), a.dtype, a.shape, a.stride(), a.data_ptr() % _ALIGNED,
            b.dtype, b.shape, b.stride(), b.data_ptr() % _ALIGNED, c.dtype, c.shape, c.stride(), c.data_ptr() % _ALIGNED,
        )  # fmt: skip
    else:
        key = (op, names, fields, tensors[0].get_device(), *(_key_of(tensor) for tensor in tensors))
    found = _found.get(key)
    if found is None:
        with _lock:
            found = _found.get(key)
            if found is None:
                found = _found[key] = _find(op, names, fields, tensors)
    return found(tensors)


@functools.cache
def _outputs(op: str, names: tuple[str, ...], fields: str, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """Shape, strides and type of every output, of inputs that are ((shape, strides, dtype), ...)."""
    tensors = [torch.empty_strided(shape, strides, dtype=dtype, device="meta") for shape, strides, dtype in inputs]
    given = _without_tune(json.loads(fields))
    if any(map(is_range, given.values())):
        given = _without_range(given)
    if _adds_row(given):  # which changes no shape
        given, names, tensors = _without_row(given), names[:2], tensors[:2]
    plans, _ = _plans(op, names, given, tensors, [0] * len(tensors))
    return tuple(
        (shape, _strides_of(shape) if _is_dense(shape, strides) else strides, _DTYPES[type])
        for _, type, shape, strides, is_output in plans.tensors()
        if is_output
    )


def _strides_of(shape: Sequence[int]) -> list[int]:
    """Of a dense tensor, as torch has them."""
    return list(torch.empty(shape, device="meta").stride())


def _fake(op: str, inputs: Sequence[torch.Tensor], names: str, fields: str) -> list[torch.Tensor]:
    layouts = tuple((tuple(map(int, t.shape)), tuple(map(int, t.stride())), t.dtype) for t in inputs)
    outputs = _outputs(op, _split(names), fields, layouts)
    return [inputs[0].new_empty_strided(shape, strides, dtype=dtype) for shape, strides, dtype in outputs]


def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split(","))


# The custom operators. Names of tensors and fields travel as text, since a schema has no place for what an operation
# alone knows: NAME(Tensor[] inputs, str names, str fields) -> Tensor[].

_library = torch.library.Library("rooftile", "DEF")


def _define(op: str) -> None:
    def run(inputs: Sequence[torch.Tensor], names: str, fields: str) -> list[torch.Tensor]:
        out = _run(op, _split(names), fields, [tensor.detach() for tensor in inputs])
        return list(out) if isinstance(out, tuple) else [out]

    def fake(inputs: Sequence[torch.Tensor], names: str, fields: str) -> list[torch.Tensor]:
        return _fake(op, inputs, names, fields)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # torch gives them by these names
        tensors, ctx.names, ctx.fields = inputs
        ctx.save_for_backward(*tensors)

    def backward(ctx: Any, gradients: Sequence[torch.Tensor]) -> tuple[Any, None, None]:
        return _gradients(op, _split(ctx.names), ctx.fields, ctx.saved_tensors, gradients), None, None

    _library.define(f"{op}(Tensor[] inputs, str names, str fields) -> Tensor[]")
    _library.impl(op, run, "CUDA")
    torch.library.register_fake(f"rooftile::{op}", fake, lib=_library)
    torch.library.register_autograd(f"rooftile::{op}", backward, setup_context=setup, lib=_library)


def _gradients(
    op: str, names: Sequence[str], text: str, inputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    fields = _parsed(text)
    if _OPERATIONS[op].array_function == "matmul":
        return _product_gradients(op, names, fields, inputs, gradients)
    if _OPERATIONS[op].array_function == "convolution":
        return _filter_gradients(fields, inputs, gradients)
    expression = fields.get(_TEXT_FIELDS[op])
    if expression is None:
        raise NotImplementedError(f"{op} has no gradient")
    return _expression_gradients(expression, names, inputs, gradients)


def _product_gradients(
    op: str, names: Sequence[str], fields: dict[str, Any], inputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    a, b, *operands = inputs
    if a.dim() != 2 or b.dim() != 2:
        raise NotImplementedError("batches and groups of products have no gradient yet")
    given = gradients[0]
    of_operands: list[torch.Tensor | None] = []
    epilogue = fields.get("epilogue")
    if "alpha" in fields or "beta" in fields:
        raise NotImplementedError("alpha and beta have no gradient: write them into the epilogue")
    if _adds_row(fields):  # a sum, whose value nobody needs again
        of_operands = [given.sum(0) if operands[0].requires_grad else None]
    elif epilogue is not None:
        product, pairs = _product_of(op, a, b), fields.get("pairs", "none")
        sums = {"acc": product} if pairs == "none" else _gate_and_up(product, pairs)
        found = _expression_gradients(epilogue, (*sums, *names[2:]), (*sums.values(), *operands), gradients)
        given, of_operands = _of_product(found[: len(sums)], pairs), found[len(sums) :]
    return [
        _product_of(op, given, b.t()) if a.requires_grad else None,
        _product_of(op, a.t(), given) if b.requires_grad else None,
        *of_operands,
    ]


def _filter_gradients(fields: dict[str, Any], inputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """By torch's own convolution, of views with the channels second."""
    if fields.get("gradient", "none") != "none":
        raise NotImplementedError("gradients of convolutions have no gradient themselves")
    x, w, *operands = (tensor.movedim(-1, 1) if tensor.dim() > 1 else tensor for tensor in inputs)
    if "epilogue" in fields and not _adds_row(fields):
        raise NotImplementedError("epilogues of convolutions have no gradient yet")
    axes = x.dim() - 2
    stride, padding, dilation = (
        [int(part) for part in str(fields.get(key, plain)).split("x")] for key, plain in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    numbers = [part * axes if len(part) == 1 else part for part in (stride, padding, dilation)]
    wanted = [x.requires_grad, w.requires_grad, bool(operands) and operands[0].requires_grad]
    given = gradients[0].movedim(-1, 1)
    of_x, of_w, of_row = torch.ops.aten.convolution_backward(
        given, x, w, list(operands[0].shape) if operands else None, *numbers, False, [0] * axes, int(fields.get("groups", 1)), wanted
    )
    found = [None if gradient is None else gradient.movedim(1, -1) for gradient in (of_x, of_w)]
    return [*found, of_row] if operands else found


def _gate_and_up(product: torch.Tensor, pairs: str) -> dict[str, torch.Tensor]:
    """The columns that an epilogue of pairs is of."""
    width = product.shape[-1] // 2
    if pairs == "split":
        return {"gate": product[..., :width], "up": product[..., width:]}
    return {"gate": product[..., 0::2], "up": product[..., 1::2]}


def _of_product(parts: Sequence[torch.Tensor | None], pairs: str) -> torch.Tensor:
    """The product's gradient, of those of its columns."""
    if pairs == "none":
        return parts[0]  # type: ignore[return-value]
    other = next(part for part in parts if part is not None)
    gate, up = (torch.zeros_like(other) if part is None else part for part in parts)
    return torch.cat((gate, up), -1) if pairs == "split" else torch.stack((gate, up), -1).flatten(-2)


def _product_of(op: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    tensors = (a, b)
    return _run_plain(op, _UNNAMED, "{}", tensors) if _is_plain(tensors) else _operator(op, tensors)


def _operator(op: str, tensors: Sequence[torch.Tensor], names: Sequence[str] = ("", ""), fields: str = "{}") -> torch.Tensor:
    """By the operator, so that whoever traces sees it."""
    return getattr(torch.ops.rooftile, op)(list(tensors), ",".join(names), fields)[0]


def _last(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: function(x, dim=-1, keepdim=True)


def _columns(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda x, axes=0: function(x, dim=tuple(range(x.dim() - 1)))


def _layernorm(x, gamma=None, beta=None, eps=1e-5):
    y = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def _rmsnorm(x, gamma=None, eps=1e-6):
    y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if gamma is None else y * gamma


# What the operators of expressions (docs/fusion.md) are in torch, for their gradients. All is fp32 but explicit casts.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in "exp log tanh erf sqrt rsqrt sigmoid relu abs minimum maximum where".split()},
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "bf16": lambda x: x.to(torch.bfloat16).float(),
    "fp16": lambda x: x.to(torch.float16).float(),
    "fp32": lambda x: x,
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layernorm": _layernorm,
    "rmsnorm": _rmsnorm,
    "sum": _last(torch.sum),
    "mean": _last(torch.mean),
    "max": _last(torch.amax),
    "argmax": _last(torch.argmax),
    "logsumexp": _last(torch.logsumexp),
    "column_sum": _columns(torch.sum),
    "column_mean": _columns(torch.mean),
    "column_max": _columns(torch.amax),
    "sum_all": torch.sum,
    "mean_all": torch.mean,
    "max_all": torch.amax,
}
_SIGNS: dict[type, Callable[..., Any]] = {
    ast.Add: torch.add,
    ast.Sub: torch.sub,
    ast.Mult: torch.mul,
    ast.Div: torch.true_divide,
    ast.Pow: torch.pow,
    ast.Lt: torch.lt,
    ast.LtE: torch.le,
    ast.Gt: torch.gt,
    ast.GtE: torch.ge,
    ast.Eq: torch.eq,
    ast.NotEq: torch.ne,
}


def _evaluate(expression: str, values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of an expression that the library has accepted: names that no later statement reads."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                read.add(name)
                return values[name]
            case ast.Constant(value=number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
                a, b = value(left), value(right)
                if not isinstance(a, torch.Tensor):
                    a = torch.as_tensor(a, dtype=torch.float32, device=device)
                return _SIGNS[type(sign)](a, b)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if name in _FUNCTIONS:
                given = [value(argument) for argument in arguments]
                if name in ("minimum", "maximum"):
                    given = [torch.as_tensor(x, dtype=torch.float32, device=device) for x in given]
                return _FUNCTIONS[name](*given, **{str(keyword.arg): value(keyword.value) for keyword in keywords})
        raise NotImplementedError(f"{ast.unparse(node)} has no gradient")

    device = next(iter(values.values())).device
    values = dict(values)
    read: set[str] = set()
    names: list[str] = []
    for statement in expression.split(";"):
        if not statement.strip():
            continue
        tree = ast.parse(statement.strip()).body[0]
        assert isinstance(tree, ast.Assign) and isinstance(tree.targets[0], ast.Name)
        values[tree.targets[0].id] = value(tree.value)
        names.append(tree.targets[0].id)
    return [values[name] for name in names if name not in read]


def _expression_gradients(
    expression: str, names: Sequence[str], inputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Of the expression's torch twin, evaluated again from the inputs in fp32; they can be differentiated where that is asked for."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        leaves = [
            t.detach() if not t.dtype.is_floating_point
            else t.float() if again and t.requires_grad
            else t.detach().float().requires_grad_()
            for t in inputs
        ]  # fmt: skip
        outputs = _evaluate(expression, dict(zip(names, leaves, strict=True)))
        pairs = [(y, g.float()) for y, g in zip(outputs, gradients, strict=True) if y.requires_grad and g is not None]
        wanted = [i for i, t in enumerate(inputs) if t.dtype.is_floating_point]
        found = torch.autograd.grad(
            [y for y, _ in pairs], [leaves[i] for i in wanted], [g for _, g in pairs], allow_unused=True, create_graph=again
        )
    out: list[torch.Tensor | None] = [None] * len(inputs)
    for i, gradient in zip(wanted, found, strict=True):
        out[i] = None if gradient is None else gradient.to(inputs[i].dtype)
    return out


# The functions.

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transform = torch._C._functorch.peek_interpreter_stack


def _is_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether nobody but autograd looks on: no trace, no mode, no subclass, and no memory that holds a tensor's negative, which the
    dispatcher resolves."""
    if torch.compiler.is_compiling() or _dispatch_modes() or _function_modes() or _transform() is not None:
        return False
    for tensor in tensors:  # a loop: a generator takes half a microsecond more
        if type(tensor) not in _PLAIN or not tensor.is_cuda or tensor.is_neg():
            return False
    return True


def _check_device(tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.device.type not in ("cuda", "meta"):
            raise rooftile.RequestError(f"a tensor is on {tensor.device}; accepted are tensors on one CUDA device")


class _Recorded(torch.autograd.Function):
    """An operation on plain tensors with gradients: the custom operator's own way through the dispatcher takes some 50 us."""

    @staticmethod
    def forward(ctx: Any, op: str, names: tuple[str, ...], fields: str, *tensors: torch.Tensor) -> Any:
        ctx.asked = op, names, fields
        ctx.save_for_backward(*tensors)
        return _run(op, names, fields, tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        op, names, fields = ctx.asked
        return (None, None, None, *_gradients(op, names, fields, ctx.saved_tensors, gradients))


_UNNAMED = ("", "")
# Without what Function.apply does for functorch, which _is_plain() has ruled out.
_recorded = super(torch.autograd.Function, _Recorded).apply


def _run_plain(op: str, names: tuple[str, ...], fields: str, tensors: Sequence[torch.Tensor]) -> Any:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return _recorded(op, names, fields, *tensors)
    return _run(op, names, fields, tensors)


@torch.compiler.assume_constant_result
def _text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _call(op: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    fields, names, tensors = {}, [], []
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            names.append("")
            tensors.append(argument)
            continue
        key = _TEXT_FIELDS[op]
        if key is None or key in fields or not isinstance(argument, str):
            raise rooftile.RequestError(f"{op} takes tensors, and fields by their names; {argument!r} is neither")
        fields[key] = argument
    for key, value in named.items():
        if isinstance(value, torch.Tensor):
            names.append(key)
            tensors.append(value)
        else:
            fields[key] = value
    if not tensors:
        raise rooftile.RequestError(f"{op} is given no tensor")
    text = _text(fields) if fields else "{}"
    if _is_plain(tensors):
        return _run_plain(op, tuple(names), text, tensors)
    _check_device(tensors)
    out = getattr(torch.ops.rooftile, op)(tensors, ",".join(names), text)
    return out[0] if len(out) == 1 else tuple(out)


def _function(op: rooftile.Operation) -> Callable[..., Any]:
    def function(*arguments: Any, **named: Any) -> Any:
        return _call(op.name, arguments, named)

    function.__name__ = function.__qualname__ = op.name
    fields = "\n".join(f"    {field.key:22} {field.form:18} {field.meaning}" for field in op.fields)
    function.__doc__ = (
        f"{op.meaning}, on CUDA tensors by position or by name; other values are fields:\n\n{fields}\n\n"
        "Returns a tensor, or a tuple of several. Raises rooftile.RequestError where no problem of this kind has such\n"
        "tensors, rooftile.Infeasible where no plan fits, rooftile.NoGpu, rooftile.CompileFailed."
    )
    return function


if TYPE_CHECKING:  # the operations' functions, which the library's list makes

    def __getattr__(name: str) -> Callable[..., Any]: ...


for _operation in _OPERATIONS.values():
    _define(_operation.name)
    globals()[_operation.name] = _function(_operation)
# By what they compute, since no name of an operation stands here.
_by_function = {op.array_function: op.name for op in _OPERATIONS.values() if op.array_function}
_product = _by_function.get("matmul")
_filter = _by_function.get("convolution")
_of_expressions = next((op.name for op in _OPERATIONS.values() if any(field.kind == "positional" for field in op.fields)), None)


@functools.cache
def _text_of_linear(m_range: tuple[int, int] | None, with_row: bool, tune: int | None) -> str:
    fields: dict[str, Any] = dict(_ADD_ROW) if with_row else {}
    if tune is not None:
        fields["tune"] = tune
    if m_range is not None:
        least, most = m_range if len(m_range) == 2 else (None, None)
        if not (isinstance(least, int) and isinstance(most, int) and 1 <= least <= most):
            raise rooftile.RequestError(
                f"m_range is {m_range}; accepted are two whole numbers from 1 on, the first no more than the second"
            )
        fields["m"] = f"{least}..{most}"
    return json.dumps(fields)


@torch.compiler.assume_constant_result
def _linear_text(m_range: tuple[int, int] | None, with_row: bool, tune: int | None) -> str:
    return _text_of_linear(m_range, with_row, tune)


def _linear_packed(input: torch.Tensor, packed: rooftile.Packed, bias: torch.Tensor | None, tune: int | None) -> torch.Tensor:
    if input.dim() == 0 or input.shape[-1] != packed.k:
        raise rooftile.RequestError(f"input is {list(input.shape)} and the packed weights [{packed.n}, {packed.k}]; accepted is [..., {packed.k}]")
    halves = (torch.bfloat16, torch.float16)
    if input.dtype not in (*halves, torch.float8_e4m3fn, torch.float8_e5m2):
        raise rooftile.RequestError(f"input is {input.dtype}; accepted with packed weights are bf16, fp16 and fp8 (e4m3 or e5m2)")
    if input.dtype in halves:
        result = input.dtype
    else:
        result = bias.dtype if bias is not None and bias.dtype in halves else torch.bfloat16
    if bias is not None and (bias.dtype != result or list(bias.shape) != [packed.n]):
        raise rooftile.RequestError(f"bias is {bias.dtype} {list(bias.shape)}; accepted is {result} [{packed.n}]")
    if input.requires_grad and torch.is_grad_enabled():
        raise rooftile.RequestError("packed weights have no gradient; call under torch.no_grad()")
    rows = input.reshape(-1, packed.k)
    if rows.shape[0] == 0:
        return input.new_zeros((*input.shape[:-1], packed.n), dtype=result)
    fields = packed.fields(_TYPES[input.dtype][0], _TYPES[result][0]) | ({} if bias is None else {**_ADD_ROW, "row": bias}) | ({} if tune is None else {"tune": tune})
    out = _call(_product, (rows, packed_on(packed, input.device)), fields)
    return out.view(*input.shape[:-1], packed.n)


def packed_on(packed: rooftile.Packed, device: torch.device) -> torch.Tensor:
    """The bytes of packed weights on a device; copied there once, as long as the weights live."""
    kept = _packed_on.setdefault(packed, {})
    if device not in kept:
        kept[device] = torch.frombuffer(packed.data, dtype=torch.uint8).to(device)
    return kept[device]


_packed_on: weakref.WeakKeyDictionary[rooftile.Packed, dict[torch.device, torch.Tensor]] = weakref.WeakKeyDictionary()


def linear(
    input: torch.Tensor, weight: torch.Tensor | rooftile.Packed, bias: torch.Tensor | None = None, m_range: tuple[int, int] | None = None,
    tune: int | None = None,
) -> torch.Tensor:
    """input [..., K] times the transpose of weight [N, K], plus bias [N]: torch.nn.functional.linear by a planned kernel.

    bf16 or fp16, all alike (under autocast they are cast); any K, N and strides that have a contiguous axis.
    `m_range`: rows of input, (1, 16384): the fewest kernels that serve them all within 3 % of each one's own plan, as predicted,
    are compiled at the first call; another number of rows within compiles nothing.
    `tune`: so many unlike plans are timed on these tensors, once (help(rooftile.TunedKernel)); the functions of operations take it too.
    `weight` of rooftile.pack(): any number of rows of input, without gradients; input of fp8 too, whose result is of bias's type, or bf16.
    Raises rooftile.RequestError on other types and shapes.
    """
    if _product is None:
        raise rooftile.RequestError("this build has no operation that computes a matrix product")
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        input = input.to(dtype)
        weight = weight if isinstance(weight, rooftile.Packed) else weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    if isinstance(weight, rooftile.Packed):
        return _linear_packed(input, weight, bias, tune)
    axes = input.dim()
    columns, inner = weight.shape if weight.dim() == 2 else (0, None)
    if axes == 0 or input.shape[-1] != inner:
        raise rooftile.RequestError(
            f"input is {list(input.shape)} and weight {list(weight.shape)}; accepted are [..., K] and [N, K]"
        )
    if bias is not None and (bias.dtype != input.dtype or bias.dim() != 1 or bias.shape[0] != columns):
        raise rooftile.RequestError(f"bias is {bias.dtype} {list(bias.shape)}; accepted is {input.dtype} [{columns}]")
    if input.numel() == 0 or columns == 0:  # nothing to multiply
        return torch.nn.functional.linear(input, weight, bias)
    rows = input if axes == 2 else input.reshape(-1, inner)
    text = _linear_text(None if m_range is None else tuple(m_range), bias is not None, tune)
    tensors = (rows, weight.t()) if bias is None else (rows, weight.t(), bias)
    names = _UNNAMED if bias is None else _WITH_ROW
    if _is_plain(tensors):
        out = _run_plain(_product, names, text, tensors)
    else:
        _check_device(tensors)
        out = _operator(_product, tensors, names, text)
    return out if axes == 2 else out.view(*input.shape[:-1], columns)


def _by_axes(name: str, value: int | Sequence[int], axes: int) -> str:
    """One number for all axes or one for each, the width last, as a field has them."""
    numbers = [value] if isinstance(value, int) else list(value)
    if len(numbers) not in (1, axes) or not all(isinstance(number, int) for number in numbers):
        raise rooftile.RequestError(f"{name} is {value}; accepted are a whole number, or {axes} of them")
    return "x".join(map(str, numbers))


def _channels_last(name: str, tensor: torch.Tensor, axes: int) -> torch.Tensor:
    """Its view with the channels innermost; in memory those of an input may be outermost."""
    if tensor.dim() != axes + 2:
        raise rooftile.RequestError(f"{name} is {list(tensor.shape)}; accepted are {axes + 2} axes")
    view = tensor.movedim(1, -1)
    if not view.is_contiguous() and not (name == "input" and tensor.is_contiguous()):
        how = "x.mT.contiguous().mT" if axes == 1 else f"x.to(memory_format=torch.channels_last{'_3d' if axes == 3 else ''})"
        raise rooftile.RequestError(f"{name} has no dense channels innermost in memory, which takes a copy each time; keep it as {how}")
    return view


def _convolution(axes: int, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, **numbers: Any) -> torch.Tensor:
    if _filter is None:
        raise rooftile.RequestError("this build has no operation that filters images")
    groups, gradient, kernel_size = (numbers.pop(key) for key in ("groups", "gradient", "kernel_size"))
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        input, weight, bias = input.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    if gradient != "none":
        return _convolution_gradient(axes, input, weight, bias, {"gradient": gradient, "groups": groups}, {**numbers, "kernel_size": kernel_size})
    if kernel_size is not None:
        raise rooftile.RequestError('kernel_size is weight\'s; it is given with gradient="weights" alone')
    x, w = _channels_last("input", input, axes), _channels_last("weight", weight, axes)
    if x.shape[-1] != w.shape[-1] * groups:
        raise rooftile.RequestError(f"input has {x.shape[-1]} channels and weight {w.shape[-1]} for each of {groups} groups")
    if bias is not None and (bias.dtype != input.dtype or list(bias.shape) != [w.shape[0]]):
        raise rooftile.RequestError(f"bias is {bias.dtype} {list(bias.shape)}; accepted is {input.dtype} [{w.shape[0]}]")
    fields = {key: _by_axes(key, value, axes) for key, value in numbers.items()}
    if groups > 1:
        fields["groups"] = str(groups)
    tensors, names = ((x, w), _UNNAMED) if bias is None else ((x, w, bias), _WITH_ROW)
    return _filtered(tensors, names, fields if len(tensors) == 2 else {**fields, **_ADD_ROW})


def _convolution_gradient(
    axes: int, dy: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None, fields: dict[str, Any], numbers: dict[str, Any]
) -> torch.Tensor:
    """dx of dy and the filters, or dw of dy and x: `fields` as they are, `numbers` by axes."""
    if bias is not None:
        raise rooftile.RequestError("bias has no part in the gradients of the input and the weight; leave it out")
    of_weights = fields["gradient"] == "weights"
    if of_weights != (numbers["kernel_size"] is not None):
        raise rooftile.RequestError('kernel_size is needed with gradient="weights", where no weight has it, and given there alone')
    tensors = _channels_last("dy", dy, axes), _channels_last("x" if of_weights else "weight", other, axes)
    by_axes = {key: _by_axes(key, value, axes) for key, value in numbers.items() if value is not None}
    return _filtered(tensors, _UNNAMED, {**fields, **by_axes})


def _filtered(tensors: tuple[torch.Tensor, ...], names: Any, fields: dict[str, Any]) -> torch.Tensor:
    text = json.dumps(fields)
    if _is_plain(tensors):
        out = _run_plain(_filter, names, text, tensors)
    else:
        _check_device(tensors)
        out = _operator(_filter, tensors, names, text)
    return out.movedim(-1, 1)


def conv1d(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    gradient: str = "none", kernel_size: Any = None,
) -> torch.Tensor:
    """torch.nn.functional.conv1d by a planned kernel, of tensors whose channels are innermost in memory.

    bf16 or fp16, all alike (under autocast they are cast), channels in multiples of 8, or few to a group; so is the result. An input with its
    channels outermost is packed first, each time. Autograd's gradients are torch's. On Hopper `gradient="data"` takes dy for input, of a stride of 1, and
    returns that of the input; `gradient="weights"` takes dy and the input in the place of input and weight, with `kernel_size`, and returns that of the weight.
    Raises rooftile.RequestError on other types, shapes and layouts, and says how to keep a tensor.
    """
    return _convolution(
        1, input, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups, gradient=gradient, kernel_size=kernel_size
    )


def conv2d(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    gradient: str = "none", kernel_size: Any = None,
) -> torch.Tensor:
    """torch.nn.functional.conv2d by a planned kernel, of tensors whose channels are innermost in memory (channels_last).

    bf16 or fp16, all alike (under autocast they are cast), channels in multiples of 8, or few to a group; so is the result. An input with its
    channels outermost is packed first, each time. Autograd's gradients are torch's. On Hopper `gradient="data"` takes dy for input, of a stride of 1, and
    returns that of the input; `gradient="weights"` takes dy and the input in the place of input and weight, with `kernel_size`, and returns that of the weight.
    Raises rooftile.RequestError on other types, shapes and layouts, and says how to keep a tensor.
    """
    return _convolution(
        2, input, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups, gradient=gradient, kernel_size=kernel_size
    )


def conv3d(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    gradient: str = "none", kernel_size: Any = None,
) -> torch.Tensor:
    """torch.nn.functional.conv3d by a planned kernel, of tensors whose channels are innermost in memory (channels_last_3d).

    bf16 or fp16, all alike (under autocast they are cast), channels in multiples of 8, or few to a group; so is the result. An input with its
    channels outermost is packed first, each time. Autograd's gradients are torch's. On Hopper `gradient="data"` takes dy for input, of a stride of 1, and
    returns that of the input; `gradient="weights"` takes dy and the input in the place of input and weight, with `kernel_size`, and returns that of the weight.
    Raises rooftile.RequestError on other types, shapes and layouts, and says how to keep a tensor.
    """
    return _convolution(
        3, input, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups, gradient=gradient, kernel_size=kernel_size
    )


def _with_parameters(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Itself; of a function of torch's that is no Python, so that nobody knows its parameters, one with x, y, z."""
    try:
        inspect.signature(function)
    except ValueError:
        return [lambda: function(), lambda x: function(x), lambda x, y: function(x, y), lambda x, y, z: function(x, y, z)][min(count, 3)]
    return function


def explain(function: Callable[..., Any], *tensors: torch.Tensor, machine: str | None = None, **arguments: Any) -> Plan:
    """The plan of what a function computes of such tensors: rooftile.explain()."""
    fields = {} if machine is None else {"machine": machine}
    name = getattr(function, "__name__", str(function))
    op, names = _product, list(_UNNAMED)
    if name == "linear" and len(tensors) in (2, 3):
        rows, weight, *row = tensors
        tensors = (rows.reshape(-1, rows.shape[-1]), weight.t(), *row)
        if row:
            names, fields = list(_WITH_ROW), fields | _ADD_ROW
    elif name in _by_function and _by_function[name] != _product:
        op, names = _by_function[name], [""] * len(tensors)
        if arguments.pop("is_causal", False):
            fields["mask"] = "causal"
    elif name not in ("matmul", "mm", "bmm", "__matmul__"):
        op, by_names = _of_expressions, _with_parameters(function, len(tensors))
        names = list(inspect.signature(by_names).parameters)[: len(tensors)]
        fields[_TEXT_FIELDS[op]] = rooftile.expression(by_names)
    if op is None or arguments or len(names) != len(tensors):
        raise rooftile.RequestError(
            f"{name} of {len(tensors)} tensors{''.join(f', {key}' for key in arguments)}: explained are mm, bmm, linear, "
            f"{', '.join(_by_function)}, and functions that rooftile.expression() takes")
    offsets = [tensor.data_ptr() % _ALIGNED if tensor.is_cuda else 0 for tensor in tensors]
    plans, _ = _plans(op, names, fields, tensors, offsets)
    return _first_buildable(plans)
