"""What the tests with PyTorch share."""

import torch

# Half a unit in the last place of the type, and as much for the sums' order.
TOLERANCE = {torch.bfloat16: 2**-7, torch.float16: 2**-10, torch.float32: 2e-5}


def rand(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda").to(dtype)


def assert_close(result, exact, scale=1.0):
    """`scale`: how large the terms are that make up an element."""
    assert result.shape == exact.shape, (result.shape, exact.shape)
    tolerance = TOLERANCE[result.dtype]
    torch.testing.assert_close(result.double(), exact.double(), rtol=tolerance, atol=tolerance * scale)
