"""softmax of each row: the largest, the sum of exponentials, then every element again."""

import torch
import torch.nn.functional as F


def operands(make, size):
    return (make(size["rows"], size["columns"]),)


def exact(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def manual(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def framework(x):
    return F.softmax(x, -1)


def cuda(load):
    kernel = load("softmax.cu").softmax

    def call(x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        kernel[rows, 256](y, x, columns)
        return y

    return call


def derived(rooftile):
    return lambda x: rooftile.fuse("y = softmax(x)", x=x)
