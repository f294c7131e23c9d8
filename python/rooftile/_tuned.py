"""A kernel that is chosen on the tensors of its first call."""

from __future__ import annotations

import threading
from typing import Any

from rooftile import _rooftile
from rooftile._errors import RequestError
from rooftile._plan import Plan, operations, plan_of

_LEAST, _MOST = 2, 16
KEPT = 32  # plans among which unlike ones are found, as `rooftile tune` keeps them


def _of_many(plan: Plan) -> Plan:
    """The same plan among more of its request, where that does not say how many."""
    request = plan._request
    if request is None or "top" in request or not keeps(request["op"]):
        return plan
    again = plan_of({**request, "top": KEPT}).plans
    return next((each for each in again if each._plan["config"] == plan._plan["config"]), plan)


def keeps(op: str) -> bool:
    """Whether a request of that operation says how many plans are kept."""
    return any(field.key == "top" for field in operations()[op].fields)


class TunedKernel:
    """A plan made runnable, as rooftile.compile(plan, tune=N) gives it: called like rooftile.Kernel, whose methods it has too.

    The first call looks for the choice that is kept of this problem on this GPU. Where there is none, N unlike plans of the
    request are compiled and timed on the tensors of the call, for some 0.3 s after the compilers: results are written again and
    again, with the same values, and inputs are not. Another plan than the first is chosen where it is faster beyond the noise. The
    choice is kept for later processes (`rooftile tune list`). While a CUDA graph is captured nothing is timed: what load() or a
    call before it chose is used, else plan 1, and a later call chooses.
    """

    def __init__(self, plan: Plan, count: int, first: _rooftile.Kernel | None = None) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not _LEAST <= count <= _MOST:
            raise RequestError(f"tune is {count!r}; accepted are {_LEAST} to {_MOST} plans to time")
        self._plan, self._count = _of_many(plan), count
        self._first = first or self._plan.compile()
        self._chosen: _rooftile.Kernel | None = None
        self._lock = threading.Lock()

    @property
    def plan(self) -> Plan:
        """The chosen Plan; before the first call plan 1."""
        plan: Plan = (self._chosen or self._first).plan
        return plan

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._chosen or self._first, name)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return (self._chosen or self._choose(inputs, named))(*inputs, **named)

    def load(self, device: int = 0) -> None:
        """Loads the code onto a GPU: of the choice that is kept for it, where there is one, else of plan 1. Times nothing."""
        with self._lock:
            if self._chosen is None and (rank := self._plan._plans.tuned(device)) > 0:
                self._chosen = self._ranked(rank)
        (self._chosen or self._first).load(device)

    def _choose(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> _rooftile.Kernel:
        with self._lock:
            if self._chosen is None:
                rank = self._first.tune(self._plan._plans, self._count, inputs, named)
                if rank == 0:
                    return self._first
                self._chosen = self._ranked(rank)
            return self._chosen

    def _ranked(self, rank: int) -> _rooftile.Kernel:
        return self._first if rank == self._first.plan.rank else self._plan.plans[rank - 1].compile()

    def __repr__(self) -> str:
        return f"<TunedKernel of {self.plan!r}>"
