"""Where CUDA's libraries lie, if they came as wheels."""

from __future__ import annotations

import importlib.util
import os

from rooftile import _rooftile

_prepared = False


def folders() -> list[str]:
    """Every site-packages folder that holds NVIDIA's wheels; imports none of them."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations or () if found else ()
    return [os.path.dirname(os.path.abspath(place)) for place in places]


def prepare() -> None:
    """Tells the library of them, once."""
    global _prepared
    if not _prepared:
        _prepared = True
        for folder in folders():
            _rooftile.add_cuda_folder(folder)
