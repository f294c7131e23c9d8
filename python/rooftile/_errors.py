"""Exceptions, one a status of rooftile.h, under the names that it gives them."""

from __future__ import annotations

import json
from typing import Any

from rooftile import _rooftile


class Error(Exception):
    """What every exception of this package is. `code` is the exit code that the command line ends with; `detail`
    holds what is too long for the message: a compiler's log, a document."""

    code: int = 1
    detail: str = ""


class InternalError(Error):
    """Our own fault: please report it."""

    code = 1


class RequestError(Error, ValueError):
    """A field, a tensor or a file is not what is accepted; the message says what is."""

    code = 2


class VerificationFailed(Error):
    """A kernel computed something else than it should."""

    code = 3


class NoGpu(Error):
    """No usable driver or GPU, or one of another architecture."""

    code = 4


class CompileFailed(Error):
    """The kernel compiler is missing or refuses; `detail` has its log."""

    code = 5


class GpuFailed(Error):
    """The driver reports an error."""

    code = 6


class CountersDenied(Error):
    """Hardware counters are needed and not permitted."""

    code = 7


class ThresholdMissed(Error):
    """A regression, or a threshold that was asked for."""

    code = 8


class Infeasible(Error):
    """The request is right, but no plan fits. `document` is the plan document, with the reasons."""

    code = 10

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.detail)
        return document


ALL = (
    InternalError,
    RequestError,
    VerificationFailed,
    NoGpu,
    CompileFailed,
    GpuFailed,
    CountersDenied,
    ThresholdMissed,
    Infeasible,
)
_rooftile.errors.update({error.code: error for error in ALL})
