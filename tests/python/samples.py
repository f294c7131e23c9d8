"""PyTorch's own sample inputs of its operators (OpInfo), as they are and not contiguous."""

import unittest

import torch
from on_gpu import TOLERANCE

import rooftile

try:
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:  # it takes expecttest
    raise unittest.SkipTest(f"PyTorch's samples: {missing}") from None


def check(name, dtype, ours, variant="", scale=4.0):
    """Right within the type's tolerance, or refused as a request: how many samples were right, and what was refused."""
    (op,) = [op for op in op_db if (op.name, op.variant_test_name) == (name, variant)]
    right, refused = 0, []
    for sample in op.sample_inputs("cuda", dtype):
        for given in (sample, sample.noncontiguous()):
            exact = given.transform(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t)
            wanted = op.op(exact.input, *exact.args, **exact.kwargs)
            try:
                result = ours(given.input, *given.args, **given.kwargs)
            except rooftile.RequestError as error:
                refused.append((given.summary(), str(error)))
                continue
            assert result.shape == wanted.shape, (given.summary(), result.shape)
            assert result.dtype == dtype, (given.summary(), result.dtype)
            torch.testing.assert_close(
                result.double(), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale, equal_nan=True,
                msg=lambda text, given=given: f"{name} of {given.summary()}: {text}",
            )  # fmt: skip
            right += 1
    return right, refused
