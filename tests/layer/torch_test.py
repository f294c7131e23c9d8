"""PyTorch's way of a layer against fp64, at small sizes: python3 tests/layer/torch_test.py

On a GPU by every back end and timed, else what runs on the CPU. Exit code 4: there is no PyTorch.
"""

import importlib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "rooftile", "ways"), os.path.join(ROOT, "rooftile", "layer", "ways")]

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(4)

LAYER = {
    "hidden": 256, "heads": 4, "kv_heads": 2, "head_dim": 64, "intermediate": 512, "experts": None, "activation": "silu", "eps": 1e-5,
    "frequencies": [10000.0 ** (-i / 16) for i in range(16)], "rotated": 32, "amplitude": 1.0, "query_key_norms": False, "qkv_bias": False, "type": "bf16",
    "window": 0, "batch": 3, "context": 48, "prefill": False, "sets": 2, "seed": 1, "package": "",
}
EXPERTS = {"count": 6, "per_token": 2, "intermediate": 128, "shared_intermediate": 0, "shared_gate": False, "renormalized": True}
CASES = {
    "decode": {},
    "prefill": {"prefill": True},
    "norms and bias": {"query_key_norms": True, "qkv_bias": True, "activation": "gelu_tanh"},
    "window": {"window": 16},
    "angles of another scale": {"amplitude": 1.2},
    "experts": {"experts": EXPERTS},
    "shared expert": {"experts": EXPERTS | {"shared_intermediate": 64, "shared_gate": True, "renormalized": False}, "prefill": True},
}


def main():
    module = importlib.import_module("layer_torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    failed = []
    for name, changes in CASES.items():
        with torch.no_grad():
            ways = module.measure(torch, LAYER | changes | {"device": device})
        for way in ways:
            right = way.get("error") is not None and (device == "cpu" or way.get("time_us", 0) > 0)
            # A back end may lack a case; one at least must have it.
            print(f"{name}, {way['name']}: {way.get('error', way.get('absent'))}")
            if not right and (device == "cpu" or "is off by" in way.get("absent", "")):
                failed.append(f"{name}, {way['name']}")
        if not any(way.get("error") is not None for way in ways):
            failed.append(f"{name}: no way has it")
    # A layer without its residual must not pass.
    layer = module.Layer(torch, LAYER | {"device": device}, torch.Generator(device).manual_seed(2))
    x = torch.randn(LAYER["batch"], LAYER["hidden"], device=device).to(layer.dtype)
    with torch.no_grad():
        try:
            module.checked(torch, layer, lambda layer, x: layer.run(x) - x, x)
            failed.append("a residual left out was not seen")
        except module.Absent:
            pass
    for each in failed:
        print("FAILED", each)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
