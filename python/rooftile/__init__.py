"""Rooftile: GPU kernel parameters derived from hardware numbers, with every reason.

    import rooftile
    print(rooftile.machines())                                  # neither GPU nor toolkit is needed for these
    plan = rooftile.OP(..., machine="h100-sxm")                 # a function an operation: operations() lists them, help() its fields
    plan = rooftile.plan(OP, machine="h100-sxm", **fields)      # the same by its name, and of a range of sizes
    print(plan.config, plan.prediction.time_us)                 # microseconds
    print(plan.explain())
    kernel = rooftile.compile(plan)                             # needs NVRTC
    y = kernel(x, ...)                                          # needs the GPU; tensors with DLPack
    print(rooftile.measure(OP, **fields).rows[0].time_us)       # verified and timed, in a process of its own
"""

from rooftile import _operations, _rooftile
from rooftile._errors import (
    CompileFailed,
    CountersDenied,
    Error,
    GpuFailed,
    Infeasible,
    InternalError,
    NoGpu,
    RequestError,
    ThresholdMissed,
    VerificationFailed,
)
from rooftile._expression import expression
from rooftile._load import Function, Module, load
from rooftile._operations import *  # noqa: F403  a function an operation
from rooftile._pack import Packed, pack, pack_file
from rooftile._picture import Picture
from rooftile._plan import Counterfactual, Field, Operation, Plan, Prediction, Remark, RoofStep, Tensor, machine, machines, operations
from rooftile._program import build_source, measure, measure_source, sweep, validate
from rooftile._range import KernelRange, PlanRange
from rooftile._record import Record
from rooftile._request import compile, explain, plan
from rooftile._rooftile import Kernel
from rooftile._tuned import TunedKernel

__version__ = _rooftile.version()
__all__ = [
    "CompileFailed",
    "Counterfactual",
    "CountersDenied",
    "Error",
    "Field",
    "Function",
    "GpuFailed",
    "Infeasible",
    "InternalError",
    "Kernel",
    "KernelRange",
    "Module",
    "NoGpu",
    "Operation",
    "Packed",
    "Picture",
    "Plan",
    "PlanRange",
    "Prediction",
    "Record",
    "Remark",
    "RequestError",
    "RoofStep",
    "Tensor",
    "ThresholdMissed",
    "TunedKernel",
    "VerificationFailed",
    "build_source",
    "compile",
    "explain",
    "expression",
    "load",
    "machine",
    "machines",
    "measure",
    "measure_source",
    "operations",
    "pack",
    "pack_file",
    "plan",
    "sweep",
    "validate",
]
__all__ += _operations.__all__
