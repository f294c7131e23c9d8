"""Every header compiles alone, twice over. usage: headers_alone.py COMPILER FOLDER,... HEADER,...

Some of them, drawn by ROOFTILE_SAMPLE_SEED; all with ROOFTILE_TEST_ALL=1.
"""
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FEW = 8
compiler, folders, headers = sys.argv[1], sys.argv[2].split(","), sorted(filter(None, sys.argv[3].split(",")))
count, seed = len(headers), os.environ.get("ROOFTILE_SAMPLE_SEED", "1")
if os.environ.get("ROOFTILE_TEST_ALL") != "1":
    headers = random.Random(seed).sample(headers, min(FEW, count))
print(f"{len(headers)} of {count} headers, ROOFTILE_SAMPLE_SEED={seed}")


def errors(header):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-x", "c++", "-I", folders[0]]
    command += ["-isystem" + folder for folder in folders[1:]] + ["-DTOML_HEADER_ONLY=1", "-"]
    text = f'#include "{header}"\n' * 2
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return f"{header} does not compile alone:\n{done.stderr}" if done.returncode or done.stderr else ""


with ThreadPoolExecutor(os.cpu_count() if len(headers) == count else 1) as pool:
    faults = [fault for fault in pool.map(errors, headers) if fault]
print("".join(faults), end="")
sys.exit(bool(faults))
