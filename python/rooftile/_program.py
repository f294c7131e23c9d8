"""The program that comes with the package: measuring has a process of its own, as on the command line."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn, overload

from rooftile import _cuda
from rooftile._errors import ALL, Error, InternalError, RequestError
from rooftile._expression import expression
from rooftile._plan import operations
from rooftile._progress import Progress
from rooftile._record import Record
from rooftile._torch_time import eager_time

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


def _with_keys(message: str) -> str:
    """The command line's flags as keywords: "--any-alignment" as "any_alignment"."""
    return re.sub(r"(?<![\w-])--([a-z0-9][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), message)


_SAID = "rooftile: "  # before what the program says itself


def _read_lines(file: int, lines: list[str], progress: Progress) -> None:
    """What the program says on its stderr, until it ends."""
    rest = b""
    while True:
        try:
            read = os.read(file, 65536)
        except OSError:  # how a terminal's other end is seen to be closed
            read = b""
        *whole, rest = re.split(rb"[\r\n]+", rest + read) if read else (rest, b"")
        for line in filter(None, whole):
            lines.append(line.decode(errors="replace"))
            progress.says(lines[-1].removeprefix(_SAID))
        if not read:
            return


def _output(arguments: list[str], progress: Progress) -> tuple[int, str, list[str]]:
    """Exit code, stdout, and the lines of stderr, which is a terminal to the program where progress is shown: it then speaks."""
    try:
        reads, writes = os.openpty() if progress.is_shown else os.pipe()
    except OSError:  # a system without terminals: the program then says less
        reads, writes = os.pipe()
    lines: list[str] = []
    try:
        process = subprocess.Popen(
            [str(PROGRAM), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, env=_environment(), text=True
        )
    except OSError as error:
        os.close(reads)
        raise InternalError(f"{PROGRAM}: {error.strerror}: the package is not whole; install it again") from None
    finally:
        os.close(writes)
    reader = threading.Thread(target=_read_lines, args=(reads, lines, progress), daemon=True)
    reader.start()
    out: list[str] = []
    try:
        assert process.stdout is not None
        with process.stdout as stdout:
            for line in stdout:
                out.append(line)
                progress.row()
        process.wait()
    except BaseException:  # an interrupt, as a rule: it ends as it does on the command line
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        reader.join(timeout=5)
        os.close(reads)
    return process.returncode, "".join(out), lines


def run(arguments: list[str], total: int | None = None) -> str:
    """What the program prints. `total`: lines that it will. Progress shows on a terminal and in a notebook."""
    with Progress(" ".join(["rooftile", *arguments[:2]]), total) as progress:
        code, out, lines = _output(arguments, progress)
    if code == 0:
        return out
    kind = next((error for error in ALL if error.code == code), Error)
    said = [i for i, line in enumerate(lines) if line.startswith(_SAID)] or [0]
    why = said[-1] if progress.is_shown else said[0]  # behind the steps that it speaks of where somebody looks on
    message = _with_keys(lines[why].removeprefix(_SAID)) if lines else f"rooftile {' '.join(arguments)} ended with {code}"
    error = kind(message)
    error.code = code
    error.detail = out or "\n".join(lines[why + 1 :])
    raise error


def measure(op: str, *, machine: str | None = None, **fields: Any) -> Record:
    """Plans, compiles, verifies and times: the document `rooftile/measurement/1`; `rows` has times in microseconds.

    Takes what plan() takes, and the flags of `rooftile measure OP -h` with _ for -: mode="cold", baseline=..., seed=1.
    Raises NoGpu without a GPU, VerificationFailed where a kernel computes something else; its `detail` is the document.
    """
    request = _request(op, {**fields, **({"machine": machine} if machine else {})})
    return Record(json.loads(run(["measure", *request, "--json"])))


def _of_source(verb: str, source: str | os.PathLike[str], flags: dict[str, Any]) -> str:
    """What `rooftile VERB source` prints on a file, or on text, which has lines."""
    named = {}
    for key, value in flags.items():
        listed = isinstance(value, (list, tuple))
        if listed and key in ("grid", "block"):
            value = "x".join(map(str, value))
        named[key[:-1] if listed and key in ("tensors", "args", "includes") else key] = value
    if not isinstance(source, str) or "\n" not in source:
        return run([verb, "source", str(source), *_flags(named)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "source.cu"
        file.write_text(source)
        return run([verb, "source", str(file), *_flags({"include": os.getcwd(), **named})])


def _named_outputs(tensors: Any, function: Callable[..., Any]) -> list[str]:
    """Of the tensors, those that are no parameters of the reference: what it returns."""
    declared = [tensors] if isinstance(tensors, str) else list(tensors or ())
    names = [str(tensor).partition(":")[0].strip() for tensor in declared]
    parameters = inspect.signature(function).parameters
    return [name for name in names if name not in parameters] or ["y"]


@overload
def measure_source(
    source: str | os.PathLike[str],
    *,
    reference: str | Callable[..., Any] | None = None,
    torch: Callable[..., Any] | bool | None = None,
    table: Literal[False] = False,
    **flags: Any,
) -> Record: ...
@overload
def measure_source(
    source: str | os.PathLike[str],
    *,
    reference: str | Callable[..., Any] | None = None,
    torch: Callable[..., Any] | bool | None = None,
    table: Literal[True],
    **flags: Any,
) -> str: ...
def measure_source(
    source: str | os.PathLike[str],
    *,
    reference: str | Callable[..., Any] | None = None,
    torch: Callable[..., Any] | bool | None = None,
    table: bool = False,
    **flags: Any,
) -> Any:
    """A kernel of your own beside the derived one: the document `rooftile/measurement/1`, whose first row is yours.

    `source`: a file's path, or CUDA C++ itself, of more than one line; its #include then looks in the current folder. Takes the flags of
    `rooftile measure source -h` with _ for -: entry="gelu", tensors=["x:bf16[64,64]", ...], grid=64, block=(32, 8), cluster=2.
    `reference`: what the results must be, as an expression "y = gelu(x)", or as a function of the tensors by their names that
    rooftile.expression() can write down. `torch`: a function of torch's tensors to be timed beside, True for the reference itself: it
    runs in this process before the kernels do, in the same mode, and stands in `baselines` as pytorch_us.
    `table`: the text of the command line instead, with all of it on one table.
    Raises CompileFailed with NVRTC's log in `detail`, VerificationFailed with the document in it, GpuFailed, NoGpu without a GPU.
    """
    tensors = flags.get("tensors", flags.get("tensor"))
    eager = reference if torch is True else torch or None
    if callable(reference):
        flags["reference"] = expression(reference, _named_outputs(tensors, reference))
    elif reference is not None:
        flags["reference"] = reference
    if eager is not None:
        if not callable(eager):
            raise RequestError("torch=True times the reference, which then is a function; or give torch=FUNCTION")
        us, launches = eager_time(eager, [tensors] if isinstance(tensors, str) else list(tensors or ()), flags.get("mode", "sustained"))
        given = flags.get("other", [])
        shown = f"PyTorch={us:.6g}" + (f",{launches}" if launches else "")
        flags["other"] = [*([given] if isinstance(given, str) else given), shown]
    if table:
        return _of_source("measure", source, flags)
    return Record(json.loads(_of_source("measure", source, {**flags, "json": True})))


def build_source(source: str | os.PathLike[str], **flags: Any) -> str:
    """The same compiled alone, for which no GPU is needed: as text its registers, spills and how wide its accesses are.

    Takes the flags of `rooftile build source -h`: entry="gelu", machine="h100-sxm", ptx=True, sass=True: that code annotated instead.
    """
    return _of_source("build", source, flags)


def sweep(op: str, *, machine: str | None = None, **fields: Any) -> Record:
    """Plans or measures many problems, drawn by law or combined from lists: `rooftile sweep OP -h` has the flags,
    as draw=100, seed=1, plan_only=True; measuring needs out=FILE, from which it goes on. The record is the context, and `rows`. Errors are those of measure()."""
    request = _request(op, {**fields, **({"machine": machine} if machine else {})})
    total = None if "out" in fields else fields.get("draw")
    printed = run(["sweep", *request, *([] if "out" in fields else ["--jsonl"])], total if isinstance(total, int) else None)
    context, *rows = (json.loads(line) for line in (Path(fields["out"]).read_text() if "out" in fields else printed).splitlines())
    return Record({**context, "rows": rows})


def validate(**flags: Any) -> Record:
    """Plans the recorded spaces anew and says how far predictions and choices are off: `rooftile validate -h` has the flags.
    Needs no GPU. Raises ThresholdMissed where a threshold given as require= is missed."""
    return Record(json.loads(run(["validate", *_flags(flags), "--json"])))
