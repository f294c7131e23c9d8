"""What a terminal shows while the program runs."""

import os
import re
import subprocess
import sys
import threading
import time
import unittest

from support import REQUESTS

from rooftile._progress import Progress


def on_a_terminal(code):
    """Exit code and all that a terminal gets of a Python's stderr."""
    try:
        reads, writes = os.openpty()
    except OSError as error:
        raise unittest.SkipTest(f"skipped: no terminals here: {error}") from None
    plain = {**os.environ, "PYTHON_COLORS": "0"}  # a traceback of Python 3.13
    process = subprocess.Popen([sys.executable, "-c", code], stderr=writes, stdout=subprocess.DEVNULL, env=plain)
    os.close(writes)
    shown = b""
    while True:
        try:
            read = os.read(reads, 65536)
        except OSError:
            read = b""
        if not read:
            break
        shown += read
    os.close(reads)
    return process.wait(), shown.decode()


class Shown(unittest.TestCase):
    def test_a_bar_of_what_is_counted(self):
        bar = Progress("rooftile sweep x", 4)
        bar.row()
        self.assertRegex(bar.text(), re.escape("rooftile sweep x [#####...............] 1/4 0 s "))
        bar.says("3/4 the third: 5 us")
        self.assertRegex(bar.text(), re.escape("[###############.....] 3/4 0 s the third: 5 us"))
        bar.says("9/4 beyond")
        self.assertIn("[####################] 9/4", bar.text())
        self.assertEqual(Progress("x").text(), "x 0 s ")

    def test_what_is_left_follows_from_what_is_done(self):
        bar = Progress("x", 4)
        bar._begin -= 10
        self.assertNotIn("left", bar.text())
        bar.row()
        self.assertIn("1/4 10 s, about 30 s left", bar.text())
        for _ in range(3):
            bar.row()
        self.assertNotIn("left", bar.text())

    def test_on_a_terminal_only(self):
        name = next(iter(REQUESTS))
        code = f"import rooftile; rooftile.sweep({name!r}, draw=300, seed=1, plan_only=True, machine='h100-sxm')"
        ended, shown = on_a_terminal(code)
        self.assertEqual(ended, 0, shown)
        self.assertIn(f"rooftile sweep {name} [", shown)
        self.assertTrue(shown.endswith(" \r"), "and is gone at the end")
        quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_faults_have_their_message_there_too(self):
        ended, shown = on_a_terminal("import rooftile; rooftile.validate(nothing_like_this=True)")
        self.assertEqual(ended, 1)
        self.assertRegex(shown, r"RequestError: validate has no flag nothing_like_this")

    def test_an_interrupt_ends_the_program(self):
        name = next(iter(REQUESTS))
        code = (
            "import os, signal, threading, rooftile\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which what runs in the background has not
            "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            f"try: rooftile.sweep({name!r}, draw=10000, seed=1, plan_only=True, machine='h100-sxm')\n"
            "except KeyboardInterrupt: raise SystemExit(7)\n"
        )
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(threading.active_count(), 1)


if __name__ == "__main__":
    unittest.main()
