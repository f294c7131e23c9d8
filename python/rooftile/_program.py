"""The program that comes with the package: measuring has a process of its own, as on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from rooftile import _cuda
from rooftile._errors import ALL, Error
from rooftile._plan import operations
from rooftile._record import Record

PROGRAM = Path(__file__).parent / "bin" / "rooftile"


def main() -> NoReturn:
    """`rooftile` on the command line."""
    os.execve(PROGRAM, [str(PROGRAM), *sys.argv[1:]], _environment())


def _environment() -> dict[str, str]:
    """This one, and where CUDA's libraries lie as wheels, where it does not say itself."""
    environment = dict(os.environ)
    folders = _cuda.folders()
    if folders:
        environment.setdefault("ROOFTILE_CUDA_PATH", folders[0])
    return environment


def _flags(values: dict[str, Any]) -> list[str]:
    flags: list[str] = []
    for key, value in values.items():
        flag = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            flags += [flag, str(one)]
    return flags


def _request(op: str, fields: dict[str, Any]) -> list[str]:
    """A request of plan() as the command line takes it: on|off for booleans of such fields, lists also under the key with an s."""
    known = {field.key: field for field in operations()[op].fields} if op in operations() else {}
    positional, named = [], {}
    for key, value in fields.items():
        field = known.get(key) or (known.get(key[:-1]) if key.endswith("s") and isinstance(value, (list, tuple)) else None)
        if field is not None and field.kind == "positional":
            positional.append(str(value))
        elif field is not None and field.form == "on|off" and isinstance(value, bool):
            named[field.key] = "on" if value else "off"
        elif field is not None and field.kind != "list" and isinstance(value, (list, tuple)):
            named[field.key] = "x".join(map(str, value))
        else:
            named[field.key if field is not None else key] = value
    return [op, *positional, *_flags(named)]


def run(arguments: list[str]) -> str:
    """What the program prints. Its progress goes to this process's stderr where that is a terminal."""
    shown = sys.stderr is not None and sys.stderr.isatty()
    done = subprocess.run(
        [str(PROGRAM), *arguments],
        stdout=subprocess.PIPE,
        stderr=None if shown else subprocess.PIPE,
        env=_environment(),
        text=True,
        check=False,
    )
    if done.returncode != 0:
        kind = next((error for error in ALL if error.code == done.returncode), Error)
        lines = [] if shown else [line for line in done.stderr.splitlines() if line]
        message = lines[0].removeprefix("rooftile: ") if lines else f"rooftile {' '.join(arguments)} ended with {done.returncode}"
        error = kind(message)
        error.code = done.returncode
        error.detail = done.stdout or "\n".join(lines[1:])
        raise error
    return done.stdout


def measure(op: str, *, machine: str | None = None, **fields: Any) -> Record:
    """Plans, compiles, verifies and times: the document `rooftile/measurement/1`; `rows` has times in microseconds.

    Takes what plan() takes, and the flags of `rooftile measure OP -h` with _ for -: mode="cold", baseline=..., seed=1.
    Raises NoGpu without a GPU, VerificationFailed where a kernel computes something else; its `detail` is the document.
    """
    request = _request(op, {**fields, **({"machine": machine} if machine else {})})
    return Record(json.loads(run(["measure", *request, "--json"])))


def sweep(op: str, *, machine: str | None = None, **fields: Any) -> Record:
    """Plans or measures many problems, drawn by law or combined from lists: `rooftile sweep OP -h` has the flags,
    as draw=100, seed=1, plan_only=True; measuring needs out=FILE, from which it goes on. The record is the context, and `rows`. Errors are those of measure()."""
    request = _request(op, {**fields, **({"machine": machine} if machine else {})})
    printed = run(["sweep", *request, *([] if "out" in fields else ["--jsonl"])])
    context, *rows = (json.loads(line) for line in (Path(fields["out"]).read_text() if "out" in fields else printed).splitlines())
    return Record({**context, "rows": rows})


def validate(**flags: Any) -> Record:
    """Plans the recorded spaces anew and says how far predictions and choices are off: `rooftile validate -h` has the flags.
    Needs no GPU. Raises ThresholdMissed where a threshold given as require= is missed."""
    return Record(json.loads(run(["validate", *_flags(flags), "--json"])))
