"""Plans: from a request to parameters, their reasons, their source and a kernel."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooftile import _cuda, _rooftile
from rooftile._picture import Picture
from rooftile._record import Record, frame_of, wrapped

if TYPE_CHECKING:
    import pandas


class Prediction(Record):
    """What is predicted of a plan, as the document `rooftile/plan/1` has it: beside these what the operation adds."""

    time_us: float | None
    interval_us: tuple[float, float] | None  # 90 % of recorded problems of the kind; None: none are recorded, or `set` changed a number
    bound: str | None


class RoofStep(Record):
    """One step from the roof to the prediction: the time until here, and what the step costs, in nanoseconds."""

    step: str
    time_ns: int
    cost_ns: int
    inputs: tuple[Record, ...]
    note: str | None


class Counterfactual(Record):
    """One number of the machine that would let a plan win, alone: `wins` "below" or "above" `threshold`; `value` is what it is."""

    key: str
    unit: str
    value: float
    wins: str
    threshold: float


class Remark(Record):
    """A reason of a plan, or a limit that it meets, in words."""

    title: str
    text: str


@dataclass(frozen=True)
class Tensor:
    """A tensor of a plan's problem, in the order in which a kernel takes them.

    `type` is an element type's name ("bf16"), `shape` has elements along each axis, `strides` elements from one to the
    next along each axis.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_output: bool


class Plan:
    """One plan of a request: every parameter of its kernel, what it will use and achieve, and why.

    Attributes as in the document `rooftile/plan/1`: `problem`, `machine`, `config`, `resources`, `prediction` (units are in
    the keys: `prediction.time_us`), `derivation`, `unknown`; `rank` (1 is the best), `label`, `buildable`, and where that is
    False `why_not`. `breakdown`, `counterfactuals`, `reasons` and `walls` are what explain() says, as data.
    """

    label: str
    buildable: bool
    why_not: str
    problem: Record
    machine: Record
    context: Record
    config: Record
    resources: Record
    prediction: Prediction
    derivation: tuple[Record, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]

    def __init__(self, plans: _rooftile.Plans, document: dict[str, Any], rank: int, request: dict[str, Any] | None = None) -> None:
        self._plans = plans
        self._document = document
        self._request = request
        self._plan = document["plans"][rank - 1]
        self.rank = rank

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        for values in (self._plan, self._document):
            if key in values and key != "plans":
                return Prediction(values[key]) if key == "prediction" else wrapped(values[key])
        known = [*self._plan, *(k for k in self._document if k not in self._plan and k != "plans")]
        raise AttributeError(f"a plan has no {key}; its document has {', '.join(known)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._plan, *(k for k in self._document if k != "plans")]

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """All plans of the request, best first; this is one of them."""
        return tuple(Plan(self._plans, self._document, rank + 1, self._request) for rank in range(len(self._plans)))

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, then outputs, in the order of a launch."""
        return tuple(Tensor(*values) for values in self._plans.tensors())

    @cached_property
    def _explanation(self) -> dict[str, Any]:
        return json.loads(self._plans.explanation(self.rank))  # type: ignore[no-any-return]

    @property
    def breakdown(self) -> tuple[RoofStep, ...]:
        """From the datasheet's roof to the prediction; empty where the time is unknown."""
        return tuple(map(RoofStep, self._explanation.get("attainability", ())))

    @property
    def counterfactuals(self) -> tuple[Counterfactual, ...]:
        """Single numbers of the machine that would let this plan win; none of plan 1."""
        return tuple(map(Counterfactual, self._explanation.get("counterfactuals", ())))

    @property
    def reasons(self) -> tuple[Remark, ...]:
        """Why this configuration."""
        return tuple(map(Remark, self._explanation["reasons"]))

    @property
    def walls(self) -> tuple[Remark, ...]:
        """What stops a larger tile, another stage, ..."""
        return tuple(map(Remark, self._explanation["walls"]))

    def pictures(self) -> dict[str, Picture]:
        """All that can be drawn of it, by name (docs/pictures.md)."""
        return {values["id"]: Picture(values) for values in json.loads(self._plans.pictures(self.rank, None))["pictures"]}

    def _picture(self, name: str) -> Picture:
        return Picture(json.loads(self._plans.pictures(self.rank, name))["pictures"][0])

    def waterfall(self) -> Picture:
        """From the datasheet's roof to the prediction."""
        return self._picture("waterfall")

    def tile_map(self) -> Picture:
        """Of each pair of tile sizes the best plan's time, or the wall that forbids it. Takes a second or so."""
        return self._picture("tile_map")

    def roofline(self) -> Picture:
        """FLOP a byte at each level of memory, with the peak that power leaves."""
        return self._picture("roofline")

    def pipeline(self) -> Picture:
        """One CTA's way through a tile, by the model's cycles."""
        return self._picture("pipeline")

    def to_pandas(self) -> pandas.DataFrame:
        """All plans of the request, a row each; columns as `config.tile_m`. Needs pandas."""
        return frame_of(self._document["plans"])

    def explain(self, width: int = 100) -> str:
        """Every step that led to this plan with its inputs and the limit it met, where its time comes from, and, of plan 1,
        why the others lost. `width`: columns, 0 for no limit."""
        return self._plans.explain(self.rank, width)

    def source(self) -> str:
        """The kernel as one CUDA C++ file that nvcc compiles by itself, with a launcher and a check: what `rooftile emit`
        writes. Needs NVRTC, no GPU.

        Raises RequestError where the plan is not buildable."""
        return self._plans.source(self.rank)

    def json(self, indent: int | None = None) -> str:
        """The document `rooftile/plan/1` of the whole request, as text."""
        return self._plans.json() if indent is None else json.dumps(self._document, indent=indent, ensure_ascii=False)

    def compile(self) -> _rooftile.Kernel:
        """The same as rooftile.compile(plan)."""
        _cuda.prepare()
        return self._plans.compile(self.rank, self)

    def __reduce__(self) -> Any:
        """Pickled as its request, which is planned again where it is read."""
        if self._request is None:
            raise TypeError("a plan that was made for tensors cannot be pickled: plan for them where it is used")
        return _planned_again, (self._request, self.rank)

    def __repr__(self) -> str:
        prediction = self._plan["prediction"]
        time, bound = prediction.get("time_us"), prediction.get("bound")
        predicted = f"; {time:.4g} us, bound by {bound}" if time is not None else ""
        return f"<Plan {self.rank} of {len(self._plans)}, {self._title()}: {self._plan['label']}{predicted}>"

    def _title(self) -> str:
        """As the command line has it, without what is as it is by default."""
        command: str = self._document["context"]["command"]
        return command.removeprefix("rooftile plan ")

    def _repr_html_(self) -> str:
        """For notebooks: the plans beside each other, this plan's reasons; its walls unfold."""
        parts = [f"<b>{html.escape(self._title())}</b>", _plans_table(self._document["plans"], self.rank), _remarks(self.reasons)]
        if self.breakdown:
            parts.append(self.waterfall().svg)
        parts.append("<details><summary>What stops it, where its time comes from</summary>" + _remarks(self.walls) + _steps_table(self.breakdown) + "</details>")
        return "".join(parts)


def _plans_table(plans: list[dict[str, Any]], chosen: int) -> str:
    """What differs between the plans' configurations, and what is predicted of each."""
    configs = [plan["config"] for plan in plans]
    keys = [key for key in configs[0] if any(config.get(key) != configs[0][key] for config in configs)]
    predicted = [key for key in ("time_us", "bound") if key in plans[0]["prediction"]]
    head = "".join(f"<th>{html.escape(key)}</th>" for key in ["#", *keys, *predicted])
    rows = ""
    for plan in plans:
        values = [plan["rank"], *(plan["config"].get(key) for key in keys)]
        values += [plan["prediction"][key] for key in predicted]
        cells = "".join(f"<td>{html.escape(_shown(value))}</td>" for value in values)
        mark = ' style="font-weight:bold"' if plan["rank"] == chosen else ""
        rows += f"<tr{mark}>{cells}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _remarks(remarks: tuple[Remark, ...]) -> str:
    return "<dl>" + "".join(f"<dt>{html.escape(r.title)}</dt><dd>{html.escape(r.text)}</dd>" for r in remarks) + "</dl>"


def _steps_table(steps: tuple[RoofStep, ...]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(s.step.replace('_', ' '))}</td><td>{s.time_ns / 1000:.4g}</td><td>{s.cost_ns / 1000:+.4g}</td></tr>" for s in steps)
    return f"<table><thead><tr><th>step</th><th>us</th><th>costs</th></tr></thead><tbody>{rows}</tbody></table>"


def _shown(value: Any) -> str:
    return "?" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def plan_of(request: dict[str, Any]) -> Plan:
    plans = _rooftile.Plans(json.dumps(request))
    return Plan(plans, json.loads(plans.json()), 1, request)


def _planned_again(request: dict[str, Any], rank: int) -> Plan:
    return plan_of(request).plans[rank - 1]


def machines() -> dict[str, Record]:
    """The machines that the library knows, by id: what a plan's `machine=` takes beside a machine file's path."""
    return {machine["id"]: Record(machine) for machine in json.loads(_rooftile.machines())["machines"]}


def machine(id: str | None = None) -> Record:  # noqa: A002  the command line's name
    """One machine with the unit and the source of every number; `id` None: the GPU of this computer.

    Raises RequestError where there is no such machine, NoGpu without a GPU.
    """
    return Record(json.loads(_rooftile.machine(id)))


@dataclass(frozen=True)
class Field:
    """A value that plan() takes: its text's form, what it means, and its kind (value, list, positional, on)."""

    key: str
    form: str
    meaning: str
    group: str
    kind: str


@dataclass(frozen=True)
class Operation:
    """A kind of problem that can be planned. `array_function`: what libraries of arrays call what it computes."""

    name: str
    meaning: str
    example: str
    array_function: str | None
    fields: tuple[Field, ...]


def operations() -> dict[str, Operation]:
    """What can be planned, with the fields that plan() takes of each."""
    return {
        op["name"]: Operation(fields=tuple(Field(**field) for field in op.pop("fields")), **op)
        for op in json.loads(_rooftile.operations())
    }
