"""Every function of rooftile.h with every choice of its pointers null: none may end the process, and what needs the pointer
says so by its status. null_pointers.py LIBRARY HEADER REQUEST.json; the functions are read from the header."""

import ctypes
import itertools
import os
import re
import sys
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

library, header, request = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]).read_text(), Path(sys.argv[3]).read_bytes()
BAD_REQUEST = 2
# A null has a meaning there: the GPU here, the legacy stream, no workspace, nothing to free.
MAY_BE_NULL = {"id", "stream", "workspace", "cluster", "scale"}
FREES = re.compile("rooftile_free_")

library.rooftile_error_message.restype = c_char_p
plans, kernel, memory, text = c_void_p(), c_void_p(), c_void_p(), c_void_p()
if cuda := os.environ.get("ROOFTILE_TEST_CUDA"):
    library.rooftile_add_cuda_folder(cuda.encode())


def must(status, what):
    if status != 0:
        sys.exit(f"{what}: {library.rooftile_error_message().decode()}")


must(library.rooftile_plan(request, byref(plans)), "rooftile_plan")
must(library.rooftile_compile(plans, 0, byref(kernel)), "rooftile_compile")
must(library.rooftile_allocate(0, c_size_t(1 << 26), byref(memory)), "rooftile_allocate")
module = c_void_p()
text_of_module = b'{"text": "__global__ void scale(float* y, int n) {}", "arch": "sm_90"}'
must(library.rooftile_load_source(text_of_module, byref(module)), "rooftile_load_source")
extents = (c_int64 * 3)(1, 1, 1)
count = library.rooftile_kernel_tensor_count(kernel)
tensors = (c_void_p * count)(*[memory.value] * count)

# What a parameter of that type and name is given; of a number always.
GIVEN = {
    "int64_t": lambda _: c_int64(64),
    "size_t": lambda _: c_size_t(256),
    "int": lambda name: {"rank": 1, "count": count, "index": 0}.get(name, 0),
    "const char*": lambda name: {"id": b"h100-sxm", "folder": b"/nowhere", "field": b"m"}.get(name, request),
    "char*": lambda _: None,
    "char**": lambda _: byref(c_void_p()),
    "const rooftile_plans*": lambda _: plans,
    "rooftile_plans*": lambda _: None,
    "rooftile_plans**": lambda _: byref(c_void_p()),
    "const rooftile_kernel*": lambda _: kernel,
    "rooftile_kernel*": lambda _: None,
    "rooftile_kernel**": lambda _: byref(c_void_p()),
    "const rooftile_tensor*": lambda _: None,
    "const rooftile_array*": lambda _: None,
    "void*": lambda name: memory if name == "memory" else None,
    "void**": lambda _: byref(c_void_p()),
    "void* const*": lambda _: tensors,
    "size_t*": lambda _: byref(c_size_t()),
    "const rooftile_module*": lambda _: module,
    "rooftile_module*": lambda _: None,
    "rooftile_module**": lambda _: byref(c_void_p()),
    "const int64_t*": lambda _: extents,
    "const size_t*": lambda _: (c_size_t * count)(*[8] * count),
    "int*": lambda _: byref(c_int()),
}


def functions():
    plain = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    for result, name, parameters in re.findall(r"^([\w ]+?\*?) ?(rooftile_\w+)\(([^)]*)\);", plain, flags=re.M):
        pairs = [re.fullmatch(r"\s*(.*?[ *])(\w+)\s*", p).groups() for p in parameters.split(",") if p.strip() != "void"]
        yield result, name, [(type.strip(), name) for type, name in pairs]


def status_of(name, arguments):
    """In a child; None: a signal ended it."""
    child = os.fork()
    if child == 0:
        status = getattr(library, name)(*arguments)
        os._exit(status & 0x7F if library.rooftile_error_message() or status == 0 else 0x7F)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else None


failures = calls = 0
seen = set()
for result, name, parameters in functions():
    seen.add(name)
    pointers = [i for i, (type, _) in enumerate(parameters) if type.endswith("*")]
    for nulls in itertools.chain.from_iterable(itertools.combinations(pointers, n) for n in range(1, len(pointers) + 1)):
        arguments = [None if i in nulls else GIVEN[type](which) for i, (type, which) in enumerate(parameters)]
        status = status_of(name, arguments)
        calls += 1
        needed = [parameters[i][1] for i in nulls if parameters[i][1] not in MAY_BE_NULL]
        gives_status = result == "int" and not name.endswith("_count")
        expected = BAD_REQUEST if gives_status and needed and not FREES.match(name) else None
        if status is None or (expected is not None and status != expected):
            failures += 1
            ends = "ends the process" if status is None else f"gives {status}, not {expected}"
            print(f"{name} with {', '.join(parameters[i][1] for i in nulls)} null {ends}", file=sys.stderr)
if not {"rooftile_plan", "rooftile_launch", "rooftile_error_message"} <= seen or len(seen) < 25:
    sys.exit(f"{len(seen)} functions were found in {sys.argv[2]}")
print(f"{calls} calls of {len(seen)} functions with nulls, {failures} wrong")
sys.exit(failures != 0)
