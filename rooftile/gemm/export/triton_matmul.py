def matmul(a, b, config=CONFIG):
    """As torch.matmul of two matrices of these majors@LINES@."""
    if (a.stride(1 if A_K_MAJOR else 0), b.stride(0 if B_K_MAJOR else 1)) != (1, 1) or (a.dtype, b.dtype) != (A_TYPE, B_TYPE):
        raise ValueError('a and b lie otherwise than this kernel reads them: see A_K_MAJOR, B_K_MAJOR, A_TYPE and B_TYPE')
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=C_TYPE)
    launch(a, b, c, config)
    return c


def operands(shape=SHAPE, device='cuda'):
    """Random a and b as the plan has them."""
    M, N, K = shape
    a = torch.randn((M, K) if A_K_MAJOR else (K, M), device=device).to(A_TYPE)
    b = torch.randn((N, K) if B_K_MAJOR else (K, N), device=device).to(B_TYPE)
    return a if A_K_MAJOR else a.T, b.T if B_K_MAJOR else b


def reference(a, b):
    """In fp32, and the sum of the products' magnitudes."""
    return a.float() @ b.float(), a.float().abs() @ b.float().abs()


def launcher(a, b):
    """The kernel alone, to be timed."""
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=C_TYPE)
    return lambda: launch(a, b, c, CONFIG)


@MAIN@
