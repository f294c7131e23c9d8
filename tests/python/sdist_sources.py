"""Preprocesses every source of a build and says which headers that are carried come from elsewhere: sdist_sources.py COMMANDS CARRIED"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

commands = json.loads(Path(sys.argv[1]).read_text())
carried = Path(sys.argv[2])
names = sorted(path.name for path in carried.iterdir())
elsewhere = re.compile(rf"(?<!{re.escape(str(carried))})/({'|'.join(map(re.escape, names))})(/|$)")


def headers(command):
    """Of one source; the text is left out, of which nothing but the names is wanted."""
    words = shlex.split(command["command"])
    out = words.index("-o")
    words = [word for i, word in enumerate(words) if i not in (out, out + 1) and word != "-c" and not word.endswith("ccache")]
    made = subprocess.run([*words, "-M"], cwd=command["directory"], capture_output=True, text=True)
    return command["file"], made.stdout.replace("\\\n", " ").split()[1:], made.stderr if made.returncode else ""


# What CMake writes while it builds is not there yet.
sources = [command for command in commands if "/embedded/" not in command["file"] and not command["file"].endswith((".gch", "cmake_pch.hxx.cxx"))]
faults, used = [], set()
with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    for source, found, error in pool.map(headers, sources):
        faults += [f"{source}: {error}"] if error else []
        faults += [f"{source}: {header} is not the carried one" for header in found if elsewhere.search(header)]
        used |= {name for name in names for header in found if header.startswith(f"{carried}/{name}")}
faults += [f"{name} is carried, and no source reads it" for name in set(names) - used]
print("\n".join(faults[:20]) or f"{len(sources)} sources, all of {', '.join(names)} from {carried.name} of the package")
sys.exit(bool(faults) or len(sources) < 20)
