"""How far a program of this package is, on a terminal or in a notebook."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import time

_WIDTH = 20  # of the bar itself
_OF = re.compile(r"(\d+)/(\d+) ")  # what the program says where it goes through a list


class Progress:
    """One line on stderr, written over and gone at the end; nothing where nobody looks on."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self._title, self._total, self._done, self._line = title, total, 0, ""
        self._begin = time.monotonic()
        in_notebook = "ipykernel" in sys.modules
        self.is_shown = in_notebook or (sys.stderr is not None and sys.stderr.isatty())
        self._columns = 100 if in_notebook else shutil.get_terminal_size().columns
        self._ended = threading.Event()
        self._ticks = threading.Thread(target=self._tick, daemon=True) if self.is_shown else None

    def __enter__(self) -> Progress:
        if self._ticks:
            self._ticks.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._ticks:
            self._ended.set()
            self._ticks.join()
            sys.stderr.write("\r" + " " * (self._columns - 1) + "\r")
            sys.stderr.flush()

    def says(self, line: str) -> None:
        """A line of the program's."""
        of = _OF.match(line)
        if of:
            self._done, self._total = int(of[1]), int(of[2])
        self._line = line

    def row(self) -> None:
        """A row that is done."""
        self._done += 1

    def text(self) -> str:
        """The line as it is now."""
        elapsed = time.monotonic() - self._begin
        bar = left = ""
        if self._total:
            full = min(_WIDTH, self._done * _WIDTH // self._total)
            bar = f" [{'#' * full}{'.' * (_WIDTH - full)}] {self._done}/{self._total}"
            if elapsed >= 1 and 0 < self._done < self._total:
                left = f", about {elapsed * (self._total - self._done) / self._done:.0f} s left"
        return f"{self._title}{bar} {elapsed:.0f} s{left} {_OF.sub('', self._line, count=1)}"

    def _tick(self) -> None:
        while True:
            sys.stderr.write("\r" + self.text()[: self._columns - 1].ljust(self._columns - 1))
            sys.stderr.flush()
            if self._ended.wait(0.2):
                return
