"""What a cubin holds besides names: machine code, constants and the size of shared memory.

The code is compared by its bytes and not by its listing, so that no disassembler is needed: equal bytes are equal SASS.
Symbols' names stand in other sections, and so a renamed kernel is equal.
"""
import struct

COMPARED = (".text", ".nv.constant", ".nv.shared", ".nv.global", ".nv.local", ".rodata")
NOBITS = 8  # a section that takes no bytes in the file, as shared memory


def sections(cubin):
    """The compared sections, without names, as a sorted list of (kind, bytes or size)."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    table, = struct.unpack_from("<Q", cubin, 40)
    entry, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * entry) for i in range(count)]
    names = headers[names_at][4]
    found = []
    for name, kind, _, _, offset, size, *_ in headers:
        start = names + name
        text = cubin[start:cubin.index(b"\0", start)].decode()
        prefix = next((prefix for prefix in COMPARED if text.startswith(prefix)), None)
        if prefix:
            found.append((prefix, size, b"" if kind == NOBITS else cubin[offset:offset + size]))
    return sorted(found)


def differences(old, new):
    """One line for each kind of section that differs."""
    if old == new:
        return []
    if not old or not new:
        return ["cubin: only one program wrote one"]
    lines = []
    parts = [{}, {}]
    for part, cubin in zip(parts, (old, new)):
        for prefix, size, content in sections(cubin):
            part.setdefault(prefix, []).append((size, content))
    for prefix in COMPARED:
        before, after = (part.get(prefix, []) for part in parts)
        if before != after:
            lines.append(f"cubin{prefix}: {sum(size for size, _ in before)} and {sum(size for size, _ in after)} B")
    return lines
