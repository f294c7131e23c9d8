"""Where CUDA's libraries lie, if they came as wheels."""

from __future__ import annotations

import importlib.util
import os

from rooftile import _rooftile

_prepared = False


def prepare() -> None:
    """Tells the library of every site-packages folder that holds NVIDIA's wheels, once; imports none of them."""
    global _prepared
    if _prepared:
        return
    _prepared = True
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations or () if found else ():
        _rooftile.add_cuda_folder(os.path.dirname(os.path.abspath(folder)))
