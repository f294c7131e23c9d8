"""Layer norm of each row: mean, variance, then every element scaled and shifted."""

import torch
import torch.nn.functional as F

EPSILON = 1e-5


def operands(make, size):
    return make(size["rows"], size["columns"]), make(size["columns"]), make(size["columns"])


def exact(x, gamma, beta):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + EPSILON) * gamma + beta


def manual(x, gamma, beta):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + EPSILON) * gamma + beta


def framework(x, gamma, beta):
    return F.layer_norm(x, (x.shape[-1],), gamma, beta, EPSILON)


def cuda(load):
    kernel = load("layernorm.cu").layernorm

    def call(x, gamma, beta):
        y = torch.empty_like(x)
        rows, columns = x.shape
        kernel[rows, 256](y, x, gamma, beta, columns, EPSILON)
        return y

    return call


def derived(rooftile):
    return lambda x, gamma, beta: rooftile.fuse("y = layernorm(x, gamma, beta, eps=1e-5)", x=x, gamma=gamma, beta=beta)
