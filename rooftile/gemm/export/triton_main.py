def check(*tensors, config=CONFIG):
    """Raises where an element is further from fp32's than the result's type and fp32 sums (14 bits of fp8's) allow."""
    result, (expected, magnitude) = matmul(*tensors, config=config).float(), reference(*tensors)
    bound = expected.abs() * torch.finfo(C_TYPE).eps + magnitude * (2**-10 if A_TYPE.itemsize == 1 else 2**-16)
    if not ((result - expected).abs() <= bound).all():
        raise ValueError(f'wrong: {((result - expected).abs() / bound).max().item():.3g} times the bound')


if __name__ == '__main__':
    tensors = operands()
    check(*tensors)
    us = 1000 * triton.testing.do_bench_cudagraph(launcher(*tensors))
    print(f'right; {us:.1f} us, predicted @TIME@')
