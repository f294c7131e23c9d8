"""Plans for a range of one field's values, and their kernels, compiled ahead."""

from __future__ import annotations

import bisect
import functools
import json
import operator
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rooftile import _cuda, _rooftile
from rooftile._errors import Infeasible, RequestError
from rooftile._plan import Plan, Tensor, plan_of
from rooftile._record import Record

_RANGE = re.compile(r"[0-9]+\.\.[0-9]+")


def is_range(value: Any) -> bool:
    return isinstance(value, str) and _RANGE.fullmatch(value) is not None


class PlanRange:
    """The fewest kernels that serve every value of one field, as rooftile.plan(OP, FIELD="A..B", within=PERCENT) gives it.

    `field`, `least`, `most`; `kernels`: so many are compiled; `ratio`: at most so many times the predicted time of a value's
    own plan, reached at `worst`; `parts`: records with `from`, `to`, `kernel`, `config`, `ratio`, `worst`, as in the document
    `rooftile/range/1`.
    """

    def __init__(self, request: dict[str, Any], inputs: tuple[Any, ...] = ()) -> None:
        self._request, self._inputs = request, inputs
        self._document = json.loads(_rooftile.plan_range(json.dumps(request), inputs))
        self.field: str = self._document["field"]
        self.least: int = self._document["from"]
        self.most: int = self._document["to"]
        self.kernels: int = self._document["kernels"]
        self.ratio: float = self._document["ratio"]
        self.worst: int = self._document["worst"]
        self.parts = tuple(Record(part) for part in self._document["plans"])
        self._begins = [part["from"] for part in self._document["plans"]]
        self._plans: dict[int, Plan] = {}

    def part(self, value: int) -> int:
        """The place in `parts` of the one that serves that value. Raises RequestError outside the range."""
        value = operator.index(value)
        if not self.least <= value <= self.most:
            raise RequestError(f"{self.field} is {value}; the plans are for {self.least} to {self.most}")
        return bisect.bisect_right(self._begins, value) - 1

    def fields(self, value: int) -> dict[str, str]:
        """What fixes the configuration that serves that value. Raises RequestError outside the range."""
        fields: dict[str, str] = self._document["plans"][self.part(value)]["fields"]
        return fields

    def at(self, value: int) -> Plan:
        """The plan that serves that value: made when it is first asked for, in some milliseconds, then found.

        A value that was not looked at, and that the part's configuration cannot compute, has its own best plan.
        Raises RequestError outside the range."""
        plan = self._plans.get(value)
        if plan is None:
            own = {key: of for key, of in self._request.items() if key != "within"}
            fixed = self.fields(value)
            own[self.field] = operator.index(value)
            try:
                plan = plan_of({**own, **fixed})
            except Infeasible:
                plan = plan_of({**own, "buildable_only": True})
            self._plans[value] = plan
        return plan

    def __reduce__(self) -> Any:
        """Pickled as its request, as a Plan is."""
        if self._inputs:
            raise TypeError("a range of plans that was made for tensors cannot be pickled")
        return PlanRange, (self._request,)

    def json(self, indent: int | None = None) -> str:
        """The document `rooftile/range/1`, as text."""
        return json.dumps(self._document, indent=indent, ensure_ascii=False)

    def compile(self) -> KernelRange:
        """The same as rooftile.compile(plan)."""
        return KernelRange(self)

    def __repr__(self) -> str:
        return (
            f"<PlanRange {self.field} {self.least}..{self.most}: {self.kernels} kernels in {len(self.parts)} parts, at most "
            f"{self.ratio:.3f} of each value's own plan>"
        )


def compile_all(plans: list[Plan]) -> list[_rooftile.Kernel]:
    """Several at once, in as many threads as there are cores to use."""
    _cuda.prepare()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        try:
            return list(threads.map(Plan.compile, plans))
        except BaseException:  # one that does not compile, or an interrupt: the others need not begin
            threads.shutdown(wait=False, cancel_futures=True)
            raise


class PartKernels:
    """A kernel of each part of a range, compiled ahead: other values of a part take that one's code and configuration."""

    def __init__(self, plan: PlanRange, planned: Callable[[int], Plan]) -> None:
        self.plan = plan
        self._planned = planned
        # The last value of each, since an extent of 1, which may be the first, says nothing of how a tensor lies. They stay alive
        # with this object, and their code with them.
        lasts = [part["to"] for part in plan.parts]
        self._of_parts = compile_all([planned(value) for value in lasts])
        self._kernels: dict[int, _rooftile.Kernel] = dict(zip(lasts, self._of_parts, strict=True))
        self._field = plan.field

    def at(self, value: int) -> _rooftile.Kernel:
        """The kernel for that value: made when it is first asked for, in some microseconds, or some milliseconds where its operation
        plans each value; then found. Raises RequestError outside the range."""
        kernel = self._kernels.get(value)
        if kernel is None:  # no lock: of two threads that make one the first is kept
            planned = functools.partial(self._planned, value)
            kernel = self._of_parts[self.plan.part(value)].at(self._field, value, planned)
            if kernel is None:
                kernel = planned().compile()
            kernel = self._kernels.setdefault(value, kernel)
        return kernel


class KernelRange:
    """Kernels of a PlanRange, all compiled: a callable on tensors like rooftile.Kernel, for any value of the range.

    The first call for a value compiles nothing, and plans nothing where the kernel's code serves it as it is; later ones find it.
    """

    def __init__(self, plan: PlanRange) -> None:
        self.plan = plan
        self._kernels = PartKernels(plan, plan.at)
        self._axis = self._varying_axis()

    def _varying_axis(self) -> tuple[int, int] | None:
        """The input and its axis whose extent is the field's value; None: none is."""

        def inputs(value: int) -> list[Tensor]:
            return [tensor for tensor in self.plan.at(value).tensors if not tensor.is_output]

        least, most = self.plan.least, self.plan.most
        for index, (small, large) in enumerate(zip(inputs(least), inputs(most), strict=True)):
            for axis, extents in enumerate(zip(small.shape, large.shape, strict=True)):
                if extents == (least, most):
                    return index, axis
        return None

    def at(self, value: int) -> _rooftile.Kernel:
        """The kernel for that value. Raises RequestError outside the range."""
        return self._kernels.at(value)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self._axis is None or len(inputs) <= self._axis[0]:
            raise RequestError(f"{self.plan.field} is not seen from the tensors that are given by position: call at(value)(...)")
        index, axis = self._axis
        shape = getattr(inputs[index], "shape", ())
        if len(shape) <= axis:
            raise RequestError(f"tensor {index + 1} has no axis {axis + 1}, along which {self.plan.field} is its extent")
        return self.at(int(shape[axis]))(*inputs, **named)

    def __repr__(self) -> str:
        return f"<KernelRange of {self.plan!r}>"
