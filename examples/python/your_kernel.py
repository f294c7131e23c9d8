"""A kernel of one's own from Python: proved right by a function, and timed beside the derived kernel, PyTorch and copies.

    python examples/python/your_kernel.py        # needs a GPU, and PyTorch for its column
"""

import sys
from pathlib import Path

try:
    import torch.nn.functional as F

    import rooftile
except ImportError as missing:
    sys.exit(print(f"skipped: {missing}") or 4)

ROWS, COLUMNS = 8192, 8192


def gelu(x):  # what the kernel must compute; PyTorch takes its time of the same function
    return F.gelu(x)


source = Path(__file__).parent.parent / "source" / "gelu.cu"
kernel = {
    "entry": "gelu",
    "tensors": [f"x:bf16[{ROWS},{COLUMNS}]", f"y:bf16[{ROWS},{COLUMNS}]"],
    "args": [f"int64:{ROWS * COLUMNS}"],
    "grid": ROWS,
    "block": 512,
}

print(rooftile.expression(gelu))
print(rooftile.measure_source(source, reference=gelu, torch=True, mode="cold", table=True, **kernel))

# The textbook's formula cancels below -4: it is no gelu, and one line says where.
wrong = source.read_text().replace("0.5f * x * erfcf(-0.70710678f * x)", "0.5f * x * (1.0f + erff(0.70710678f * x))")
try:
    rooftile.measure_source(wrong, reference=gelu, no_time=True, **kernel)
except rooftile.VerificationFailed as error:
    print(error)
