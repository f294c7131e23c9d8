"""Pictures of plans, as notebooks show them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Picture:
    """A picture: `id`, `title`, `data` (what is drawn, in units of its axes), `vega_lite` (a specification: altair.Chart.from_dict(it)), `svg`.

    A notebook shows it; JupyterLab by the specification, whose figures show under the pointer.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.id: str = values["id"]
        self.title: str = values["title"]
        self.data: dict[str, Any] = values["data"]
        self.vega_lite: dict[str, Any] = values["vega_lite"]
        self.svg: str = values["svg"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"image/svg+xml": self.svg, "application/vnd.vegalite.v5+json": self.vega_lite, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Picture {self.id}: {self.title}>"
