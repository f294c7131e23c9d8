"""Expressions written as Python functions: called once with stand-ins for the tensors, which write down what is done with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rooftile._errors import RequestError

# What PyTorch's, NumPy's and Python's names are in expressions (docs/fusion.md); of one value, of two, along the last axis.
_OF_ONE = {
    **{name: name for name in "exp log tanh erf sqrt rsqrt sigmoid silu relu softplus abs".split()},
    **{"absolute": "abs", "fabs": "abs", "float": "fp32", "half": "fp16", "bfloat16": "bf16"},
}
_OF_TWO = {
    **{"add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/"},
    **{"pow": "**", "power": "**", "float_power": "**", "lt": "<", "less": "<", "le": "<=", "less_equal": "<="},
    **{"gt": ">", "greater": ">", "ge": ">=", "greater_equal": ">=", "eq": "==", "equal": "==", "ne": "!=", "not_equal": "!="},
    **{"minimum": "minimum", "maximum": "maximum"},
}
_OF_A_ROW = {"softmax": "softmax", "log_softmax": "log_softmax"}
_TO_ONE = {"sum": "sum", "mean": "mean", "amax": "max", "max": "max", "argmax": "argmax", "logsumexp": "logsumexp"}
_TO_COLUMNS = {"sum": "column_sum", "mean": "column_mean", "amax": "column_max"}  # along all axes but the last
_CASTS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class Traced:
    """A value of an expression that is being written down."""

    __array_priority__ = 1000  # NumPy's numbers leave operators to it

    def __init__(self, form: str, operands: Sequence[Any] = ()) -> None:
        self._form, self._operands = form, tuple(operands)
        self._is_signs = form.startswith("-") or form.startswith("{} ")  # and needs brackets beside other signs

    def __getattr__(self, name: str) -> Callable[..., Traced]:
        if name.startswith("_") or not _is_known(name):
            raise AttributeError(f"an expression has no {name}")
        return lambda *arguments, **named: _applied(name, (self, *arguments), named)

    def __bool__(self) -> bool:
        raise RequestError("an expression cannot branch on a value: write where(condition, x, y)")

    def __iter__(self) -> Iterator[Any]:
        raise RequestError("an expression takes whole tensors: none of them can be gone through")

    def __neg__(self) -> Traced:
        return Traced("-{}", (self,))

    def __abs__(self) -> Traced:
        return _applied("abs", (self,), {})

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Traced:
        return _applied(getattr(function, "__name__", str(function)), tuple(arguments), named or {})

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, **named: Any) -> Traced:
        return _applied(function.__name__ if method == "__call__" else f"{function.__name__}.{method}", arguments, named)

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Traced:
        return _applied(function.__name__, tuple(arguments), named)


def _operator(name: str, turned: bool) -> Callable[[Traced, Any], Traced]:
    def operator(self: Traced, other: Any) -> Traced:
        return _applied(name, (other, self) if turned else (self, other), {})

    return operator


for _sign, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}.items():
    setattr(Traced, f"__{_sign}__", _operator(_name, False))
    setattr(Traced, f"__r{_sign}__", _operator(_name, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Traced, f"__{_name}__", _operator(_name, False))
setattr(Traced, "__hash__", object.__hash__)  # noqa: B010  which __eq__ takes away


def _is_known(name: str) -> bool:
    special = ("gelu", "layer_norm", "rms_norm", "where", "neg", "negative", "square", "reciprocal", "to", "type", "clone", "contiguous", "clamp", "clip")
    return any(name in names for names in (_OF_ONE, _OF_TWO, _OF_A_ROW, _TO_ONE, special))


def _applied(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> Traced:
    """What an operator of PyTorch, NumPy or Python is in the language of expressions. Raises RequestError where it is nothing."""
    name = name.strip("_")
    named = {key: value for key, value in named.items() if value is not None and value is not False or key in ("dim", "axis")}
    if name in _OF_ONE:
        return _call(_OF_ONE[name], given, named, 1)
    x: Traced = given[0] if given else None
    if name in ("neg", "negative"):
        return -x
    if name == "square":
        return Traced("{} * {}", (x, x))
    if name == "reciprocal":
        return Traced("{} / {}", (1, x))
    if name in ("clone", "contiguous"):
        return x
    if name in _OF_TWO:
        scale = named.pop("alpha", 1)
        _refuse_named(name, named, 2, given)
        left, right = (_operand(name, value) for value in given)
        right = right if scale == 1 else Traced("{} * {}", (scale, right))
        sign = _OF_TWO[name]
        return Traced(f"{sign}({{}}, {{}})" if sign.isalpha() else f"{{}} {sign} {{}}", (left, right))
    if name in ("clamp", "clip"):
        limits = dict(zip(("min", "max"), given[1:]))
        low, high = ({**limits, **named}.get(key) for key in ("min", "max"))
        x = x if low is None else Traced("maximum({}, {})", (x, _operand(name, low)))
        return x if high is None else Traced("minimum({}, {})", (x, _operand(name, high)))
    if name == "where":
        return _call("where", given, named, 3)
    if name == "gelu":
        tanh = named.pop("approximate", "none") == "tanh"
        return _call("gelu_tanh" if tanh else "gelu", given, named, 1)
    if name in ("max", "min") and len(given) == 2 and isinstance(given[1], Traced):  # PyTorch's other meaning
        return _applied(f"{name}imum", given, named)
    if name in _OF_A_ROW or name in _TO_ONE:
        return _along_rows(name, given, dict(named))
    if name in ("layer_norm", "rms_norm"):
        return _norm(name, given, dict(named))
    if name in ("to", "type"):
        cast = _CASTS.get(str(named.get("dtype", given[-1])).rpartition(".")[2])
        if cast is not None:
            return Traced(f"{cast}({{}})", (given[0],))
    raise RequestError(f"{name} is no operator of expressions; docs/fusion.md lists them")


def _call(name: str, given: tuple[Any, ...], named: Mapping[str, Any], count: int) -> Traced:
    named = {key: value for key, value in named.items() if key != "inplace"}
    _refuse_named(name, named, count, given)
    return Traced(f"{name}({', '.join(['{}'] * count)})", [_operand(name, value) for value in given])


def _refuse_named(name: str, named: Mapping[str, Any], count: int, given: tuple[Any, ...]) -> None:
    if named or len(given) != count:
        extra = f"; {', '.join(named)} cannot be given" if named else ""
        raise RequestError(f"{name} takes {count} operand{'s' * (count > 1)} in an expression and is given {len(given)}{extra}")


def _operand(name: str, value: Any) -> Any:
    if isinstance(value, (Traced, bool)):
        return value
    if getattr(value, "ndim", 0) == 0 and hasattr(value, "item"):  # one number of an array library
        value = value.item()
    if isinstance(value, (int, float)):
        return value
    raise RequestError(f"{name} of a {type(value).__name__}: tensors are the function's parameters, all else are numbers")


def _along_rows(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    x, *rest = given
    axis = named.pop("dim", named.pop("axis", rest.pop(0) if rest else None))
    keep = named.pop("keepdim", named.pop("keepdims", rest.pop(0) if rest and name in _TO_ONE else False))
    named.pop("_stacklevel", None)
    if name in _OF_A_ROW:
        rest = [value for value in rest if value not in (None, 3)]  # _stacklevel by position
    if rest or named:
        raise RequestError(f"{name}: an expression knows its tensor and its axis, not {', '.join(named) or rest}")
    if axis is None and name in ("sum", "mean", "max", "amax"):
        return Traced(f"{_TO_ONE[name]}_all({{}})", (x,))
    if name in _TO_COLUMNS and _leaves_last(axis):
        if keep:
            raise RequestError(f"{name} along axis {axis}: what is reduced loses its axes in an expression; give keepdim=False")
        axes = 1 if isinstance(axis, int) else len(axis)
        return Traced(f"{_TO_COLUMNS[name]}({{}}, axes={axes})", (x,))
    if axis not in (-1, (-1,), [-1]):
        before = ", or along all before it" if name in _TO_COLUMNS else ""
        raise RequestError(f"{name} along axis {axis}: expressions work along the last one, dim=-1{before}")
    if name in _OF_A_ROW:
        return Traced(f"{name}({{}})", (x,))
    if not keep:
        raise RequestError(f"{name}: what is reduced keeps its axis in an expression; give keepdim=True")
    return Traced(f"{_TO_ONE[name]}({{}})", (x,))


def _leaves_last(axis: Any) -> bool:
    """Whether these are all axes but the last, of a tensor with one axis more."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis or ())
    return len(axes) > 0 and sorted(axes) == list(range(len(axes)))


def _norm(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    keys = ("input", "normalized_shape", "weight", "bias", "eps") if name == "layer_norm" else ("input", "normalized_shape", "weight", "eps")
    given_by_key = {**dict(zip(keys, given)), **named}
    shape = given_by_key.pop("normalized_shape", None)
    if shape is not None and not isinstance(shape, int) and len(shape) != 1:
        raise RequestError(f"{name} over {len(shape)} axes: expressions work along the last one")
    eps = given_by_key.pop("eps", None)
    operands = [_operand(name, value) for key in keys if (value := given_by_key.get(key)) is not None]
    if given_by_key.get("bias") is not None and given_by_key.get("weight") is None:
        raise RequestError(f"{name}: a bias without a weight; add it behind")
    form = ", ".join(["{}"] * len(operands)) + ("" if eps is None else f", eps={float(eps)!r}")
    return Traced(f"{'layernorm' if name == 'layer_norm' else 'rmsnorm'}({form})", operands)


class _Writer:
    """Statements, in which what is used twice has a name."""

    def __init__(self, names: set[str]) -> None:
        self.statements: list[str] = []
        self._taken = set(names)
        self._texts: dict[int, str] = {}

    def count(self, value: Any, uses: dict[int, int]) -> None:
        if not isinstance(value, Traced):
            return
        uses[id(value)] = uses.get(id(value), 0) + 1
        if uses[id(value)] == 1:
            for operand in value._operands:
                self.count(operand, uses)

    def text(self, value: Any, uses: dict[int, int]) -> str:
        if not isinstance(value, Traced):
            return repr(float(value)) if isinstance(value, float) else str(int(value))
        if id(value) in self._texts:
            return self._texts[id(value)]
        inner = [self.text(operand, uses) for operand in value._operands]
        if value._is_signs:
            inner = [f"({text})" if self._has_signs(operand, text) else text for operand, text in zip(value._operands, inner)]
        text = value._form.format(*inner)
        if uses[id(value)] > 1 and value._operands:
            name = next(name for n in range(len(self._taken) + 1) if (name := f"t{n}") not in self._taken)
            self._taken.add(name)
            self.statements.append(f"{name} = {text}")
            text = name
        self._texts[id(value)] = text
        return text


    @staticmethod
    def _has_signs(value: Any, text: str) -> bool:
        return text.startswith("-") if not isinstance(value, Traced) else value._is_signs and not text.isidentifier()


def expression(function: Callable[..., Any], outputs: Sequence[str] = ("y",)) -> str:
    """The expression that a Python function computes, as plan(..., expression=...) takes it.

    The function is called once, its parameters being the tensors by their names; it may use Python's signs, and the functions and
    methods of PyTorch and NumPy that docs/fusion.md has an operator for. What it returns, one value or a tuple, has the names
    `outputs`, or its own where it is a dict.
    Raises RequestError where it does anything else: another function, a branch on a value, a tensor that is no parameter.
    """
    parameters = inspect.signature(function).parameters
    if not parameters or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        raise RequestError("the function's parameters are the tensors, each by its name; it has " + (", ".join(map(str, parameters.values())) or "none"))
    names = [name for name, p in parameters.items() if p.default is p.empty]
    try:
        returned = function(**{name: Traced(name) for name in names})
    except (AttributeError, TypeError) as error:
        raise RequestError(f"the function does what no expression can: {error}") from error
    values = returned if isinstance(returned, dict) else dict(zip(outputs, returned if isinstance(returned, tuple) else (returned,), strict=False))
    if isinstance(returned, tuple) and len(returned) > len(outputs):
        raise RequestError(f"the function returns {len(returned)} values; {len(outputs)} names are known for them: {', '.join(outputs)}")
    for name, value in values.items():
        if not isinstance(value, Traced):
            raise RequestError(f"the function returns a {type(value).__name__} for {name}, which depends on none of its tensors")
    writer = _Writer({*names, *values})
    uses: dict[int, int] = {}
    for value in values.values():
        writer.count(value, uses)
    for name, value in values.items():
        writer.statements.append(f"{name} = {writer.text(value, uses)}")
    return "; ".join(writer.statements)
