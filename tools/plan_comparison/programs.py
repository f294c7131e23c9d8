"""Runs a program, and keeps what it gave in a file, so that the old one runs once for each command."""
import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import tempfile
import threading
import zlib

CUBIN = "{cubin}"  # stands in a command for a file that the program writes
KEPT_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")


class Result:
    def __init__(self, code, out, err, cubin):
        self.code, self.out, self.err, self.cubin = code, out, err, cubin


def run(program, arguments):
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment |= {"LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "100", "ROOFTILE_CACHE": "off"}
    cubin = b""
    with tempfile.TemporaryDirectory() if CUBIN in arguments else contextlib.nullcontext() as folder:
        file = os.path.join(folder or "", "kernel.cubin")
        command = [program, *(file if argument == CUBIN else argument for argument in arguments)]
        done = subprocess.run(command, capture_output=True, env=environment, stdin=subprocess.DEVNULL)
        if folder and os.path.exists(file):
            with open(file, "rb") as stream:
                cubin = stream.read()
    return Result(done.returncode, done.stdout, done.stderr, cubin)


class CachedProgram:
    """One file a program, named by the hash of its bytes; without a folder nothing is kept."""

    def __init__(self, program, folder):
        self.program, self.lock, self.database = program, threading.Lock(), None
        if folder:
            os.makedirs(folder, exist_ok=True)
            with open(program, "rb") as stream:
                name = hashlib.sha256(stream.read()).hexdigest()[:16]
            path = os.path.join(folder, name + ".sqlite")
            self.database = sqlite3.connect(path, timeout=120, check_same_thread=False, isolation_level=None)
            # Several comparisons may share the file, and what is lost can be run again.
            self.database.execute("PRAGMA journal_mode = WAL")
            self.database.execute("PRAGMA synchronous = OFF")
            self.database.execute("CREATE TABLE IF NOT EXISTS runs"
                                  " (command TEXT PRIMARY KEY, code INT, out BLOB, err BLOB, cubin BLOB)")

    def run(self, arguments):
        key = json.dumps(arguments)
        if self.database:
            with self.lock:
                row = self.database.execute(
                    "SELECT code, out, err, cubin FROM runs WHERE command = ?", (key,)).fetchone()
            if row:
                return Result(row[0], *(zlib.decompress(part) for part in row[1:]))
        result = run(self.program, arguments)
        if self.database and result.code >= 0:
            parts = [zlib.compress(part, 1) for part in (result.out, result.err, result.cubin)]
            with self.lock:
                self.database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", (key, result.code, *parts))
        return result
