"""The tests that need PyTorch and a GPU: gpu/test_*.py beside this file, and every operation's tests/OPERATION/python/test_*.py. Arguments are
words, of which a test's name must have one. Ends with 4 where none can run."""

import sys
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    sys.exit(print("skipped: no torch") or 4)
if not torch.cuda.is_available():
    sys.exit(print("skipped: no device") or 4)

here = Path(__file__).parent
sys.path.insert(0, str(here))
suite = unittest.TestSuite()
loader = unittest.TestLoader()
loader.testNamePatterns = [f"*{word}*" for word in sys.argv[1:]] or None
for folder in (here / "gpu", *sorted(here.parent.glob("*/python"))):
    if list(folder.glob("test_*.py")):
        suite.addTests(loader.discover(str(folder), top_level_dir=str(folder)))
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
