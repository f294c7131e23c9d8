"""plan() and compile(): of one problem, or of a range of them."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rooftile import _rooftile
from rooftile._errors import RequestError
from rooftile._plan import Plan, operations, plan_of
from rooftile._range import KernelRange, PlanRange, is_range
from rooftile._tuned import TunedKernel

if TYPE_CHECKING:
    import torch


_WIDEST, _EXACT, _MOST_DIGITS = 2**63, 2.0**53, 300


def _plain(value: Any) -> Any:
    """As JSON takes it: numbers of array libraries, and whole numbers of any size as text, by which the library refuses them."""
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "__index__"):
        value = operator.index(value)
    elif getattr(value, "ndim", None) == 0 and hasattr(value, "__float__"):
        value = float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    if isinstance(value, int) and abs(value) >= _WIDEST:
        if abs(value) >= 10**_MOST_DIGITS:
            raise RequestError(f"a whole number of more than {_MOST_DIGITS} digits is given; no field takes one")
        return str(value)
    return value


def _checked(request: dict[str, Any]) -> dict[str, Any]:
    request = {key: _plain(value) for key, value in request.items()}
    try:
        json.dumps(request, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # also of surrogates, which are no text
        for key, value in request.items():
            try:
                json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
            except (TypeError, ValueError, RecursionError):
                raise RequestError(f"{key} is {value!r:.60}; accepted are texts, finite numbers, booleans, and lists of them") from None
        raise RequestError(str(error)) from None
    return request


def plan(op: str, *, machine: str | None = None, **fields: Any) -> Any:
    request = {"op": op, **fields}
    if machine is not None:
        request["machine"] = machine
    request = _checked(request)
    return PlanRange(request) if any(map(is_range, fields.values())) else plan_of(request)


def plan_one(op: str, machine: str | os.PathLike[str] | None, fields: dict[str, Any]) -> Plan:
    """plan() of what is given, None being what is not."""
    given = {key: value for key, value in fields.items() if value is not None}
    ranges = [key for key, value in given.items() if is_range(value)]
    if ranges:
        raise RequestError(f"{ranges[0]} is {given[ranges[0]]}: a range is planned by rooftile.plan({op!r}, ...), which gives a PlanRange")
    if machine is not None:
        given["machine"] = machine
    return plan_of(_checked({"op": op, **given}))


def compile(  # noqa: A001  the contract's name
    plan: Plan | PlanRange, *, tune: int | None = None
) -> _rooftile.Kernel | KernelRange | TunedKernel:
    """A plan made runnable: a callable on tensors, see help(rooftile.Kernel); of a range, help(rooftile.KernelRange).

    `tune`: so many unlike plans of the request are timed on the tensors of the first call, once: help(rooftile.TunedKernel).

    Takes the machine code from the cache (ROOFTILE_CACHE_DIR) or compiles it, in some 0.1 to 1 s a kernel; needs CUDA 13's
    NVRTC (a toolkit, or `pip install nvidia-cuda-nvrtc`), no GPU.
    Raises RequestError where the plan is not buildable, CompileFailed where the compiler is missing or refuses.
    """
    if not isinstance(plan, (Plan, PlanRange)):
        raise RequestError(f"compile() takes what plan() gives, not {type(plan).__name__}")
    if tune is None:
        return plan.compile()
    if isinstance(plan, PlanRange):
        raise RequestError(f"tune is {tune}, and the plan is of a range: tune plans of single values")
    return TunedKernel(plan, tune)


def explain(function: Callable[..., Any], *tensors: torch.Tensor, machine: str | None = None, **arguments: Any) -> Plan:
    """The plan of what a function of PyTorch computes of such tensors, which may lie anywhere, on the device "meta" too; no GPU is needed.

    `function`: torch.matmul, mm, bmm, nn.functional.linear, another one that an operation is the `array_function` of (`is_causal` is
    known), or one that rooftile.expression() takes, its parameters being the tensors: rooftile.explain(lambda x, b: gelu(x + b), x, b).explain().
    Raises RequestError where it computes something else, Infeasible where no plan fits.
    """
    from rooftile import torch as by_torch

    return by_torch.explain(function, *tensors, machine=machine, **arguments)


def _documented() -> str:
    lines = [
        'plan(op, *, machine=None, **fields) -> Plan: the best plan of a problem; its attribute `plans` has the others.',
        "",
        "`machine`: an id of machines(), or a machine file's path; without it the GPU of this computer, else h100-sxm.",
        "Needs neither GPU nor toolkit. Numbers may be given as numbers, MxNxK as a list, lists as lists (also under the",
        "key with an s), on|off as booleans. Sizes and strides are in elements, offsets too; BYTES are bytes.",
        'One number of the problem may be a range, as "1..16384": the result is a PlanRange, the fewest kernels that serve it,',
        "none slower than each value's own plan by more than `within` percent (3), as predicted.",
        "Raises RequestError where a field is not what is accepted, Infeasible where no plan fits.",
    ]
    for op in operations().values():
        lines += ["", f"plan({op.name!r}, ...): {op.meaning}"]
        lines += [f"    {field.key:22} {field.form:18} {field.meaning}" for field in op.fields]
    return "\n".join(lines)


plan.__doc__ = _documented()
