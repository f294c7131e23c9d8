"""Values of a document, also as attributes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

_MOST_SHOWN = 2000  # characters of a document's repr


class Record(Mapping[str, Any]):
    """An object of a document: record.key is record["key"]. Not changed by anybody."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return wrapped(self._values[key])

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"there is no {key}; there are {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        """All of it, or of a long document what its parts are."""
        text = f"{type(self).__name__}(" + ", ".join(f"{key}={value!r}" for key, value in self._values.items()) + ")"
        return text if len(text) <= _MOST_SHOWN else f"{type(self).__name__}({', '.join(f'{key}: {_brief(value)}' for key, value in self._values.items())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(key)}</th><td>{html.escape(_brief(value))}</td></tr>" for key, value in self._values.items())
        return f"<table><tbody>{rows}</tbody></table>"

    def to_pandas(self) -> pandas.DataFrame:
        """A document's rows or plans, else itself as one row; columns as `config.tile_m`. Needs pandas."""
        for key in ("rows", "plans"):
            if isinstance(self._values.get(key), list):
                return frame_of(self._values[key])
        return frame_of([self._values])


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} of them"
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:80] + "..."


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """A row each, objects within them as columns under `outer.inner`."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas() needs pandas: pip install pandas") from None
    return pandas.DataFrame([dict(_flat(row)) for row in rows])


def wrapped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Record(value)
    if isinstance(value, list):
        return tuple(wrapped(element) for element in value)
    return value
