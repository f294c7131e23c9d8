"""The notebooks of examples/notebooks run from their first cell to their last, and each cell's last value can be shown."""

import ast
import contextlib
import io
import json
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples/notebooks"


def shown(value):
    """As a notebook would show it."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    return bundle()["image/svg+xml"] if bundle else value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def run(cells):
    """What each cell prints, or shows at its end."""
    names, out = {}, []
    for cell in cells:
        body = ast.parse(cell).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        out.append(printed.getvalue() + ("" if value is None else shown(value)))
    return out


class Notebooks(unittest.TestCase):
    def test_run(self):
        files = sorted(FOLDER.glob("*.ipynb"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            with self.subTest(file.name):
                document = json.loads(file.read_text())
                cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
                for cell, text in zip(cells, run(cells), strict=True):
                    self.assertTrue(text or cell.startswith("import"), cell)
                self.assertTrue(all(not cell.get("outputs") for cell in document["cells"]), "notebooks are kept without outputs")
