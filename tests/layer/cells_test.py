"""bench/layer/cells.py with a program that answers what was measured before: python3 tests/layer/cells_test.py"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = (ROOT / "bench/results/history/2026-11-29-h200-layer.jsonl").read_text().splitlines()

# What stands in for the program: a recorded document of 16 x 2048, changed as the variable says; any other cell fails.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
arguments = sys.argv[1:]
given = dict(zip(arguments[2::2], arguments[3::2]))
assert arguments[:2] == ["measure", "layer"] and "--json" in arguments, arguments
assert json.load(open(given["--config"]))["hidden_size"] == 4096
out = arguments[arguments.index("--out") + 1]
if given.get("--context") != "2048":
    sys.exit(print("rooftile: out of memory", file=sys.stderr) or 6)
document = json.loads({RECORDED[0]!r})
measured = document["cells"][0]["measured"]
measured["kernels_dram_bytes"] = 571000000
if os.environ["MADE"] == "wrong":
    measured["verified"] = False
open(out, "w").write(json.dumps(document))
sys.exit(3 if os.environ["MADE"] == "wrong" else 0)
"""


def said(made, *more):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        done = subprocess.run([sys.executable, ROOT / "bench/layer/cells.py", program, Path(folder) / "out", *more],
                              env=os.environ | {"MADE": made}, capture_output=True, text=True)  # fmt: skip
        return done.returncode, done.stdout.splitlines(), sorted(file.name for file in Path(folder, "out").glob("*"))


def main():
    cell = json.loads(RECORDED[0])["cells"][0]
    code, lines, files = said("right", "--only", "llama")
    assert code == 0 and len(lines) == 1 + 5 + 1, lines
    assert files == ["layer-llama-16x2048.json"], files
    assert lines[1] == f"{'llama-1x8192':22}did not run: rooftile: out of memory", lines[1]
    words = lines[2].split()
    took = cell["measured"]["time_us"]["median"]
    assert words[:4] == ["llama-16x2048", f"{cell['time_us']:.1f}", f"{took:.1f}", f"{cell['time_us'] / took:.3f}"], words
    within = [k["interval_us"][0] <= k["measured_us"]["median"] <= k["interval_us"][1] for k in cell["kernels"] if k["interval_us"]]
    assert words[4:] == [str(sum(within)), "of", str(len(within)), "1.17", "571.0", "MB"], words
    code, lines, _ = said("wrong", "--only", "16x2048")
    assert code == 3 and len(lines) == 1 + 3 + 1 and all(line.endswith("WRONG") for line in lines[1:4]), lines
    print("ok")


if __name__ == "__main__":
    main()
