"""A product of A [rows, inner] and the transpose of B [columns, inner], as a linear layer has it."""

import torch
import torch.nn.functional as F


def operands(make, size):
    return make(size["rows"], size["inner"]), make(size["columns"], size["inner"], scale=size["inner"] ** -0.5)


def exact(a, b):
    return a @ b.t()


manual = "a product is one operator: there is nothing to take apart"


def framework(a, b):
    return F.linear(a, b)


def cuda(load):
    kernel = load("matmul.cu", ["matmul<false, false>"])["matmul"]

    def call(a, b):
        (rows, inner), columns = a.shape, b.shape[0]
        c = torch.empty(rows, columns, dtype=a.dtype, device=a.device)
        kernel[(-(-columns // 64), -(-rows // 64)), 256](c, a, b, None, rows, columns, inner)
        return c

    return call


def derived(rooftile):
    return rooftile.linear
