"""gelu by erf: a value is read, changed and written."""

import torch
import torch.nn.functional as F


def operands(make, size):
    return (make(size["rows"], size["columns"]),)


def exact(x):
    return 0.5 * x * torch.erfc(-x * 0.5**0.5)


def manual(x):
    return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))


framework = F.gelu


def cuda(load):
    kernel = load("gelu.cu").gelu

    def call(x):
        y = torch.empty_like(x)
        kernel[-(-x.numel() // 256), 256](y, x, x.numel())
        return y

    return call


def derived(rooftile):
    return lambda x: rooftile.fuse("y = gelu(x)", x=x)
