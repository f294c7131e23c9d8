@HEAD@
import torch
import triton
import triton.language as tl

SHAPE = (@M@, @N@, @K@)
A_K_MAJOR, B_K_MAJOR = @A_K_MAJOR@, @B_K_MAJOR@  # whether rows of a, columns of b, are contiguous
A_TYPE, B_TYPE, C_TYPE = torch.@A_TYPE@, torch.@B_TYPE@, torch.@C_TYPE@
CONFIG = triton.Config({'BLOCK_M': @BLOCK_M@, 'BLOCK_N': @BLOCK_N@, 'BLOCK_K': @BLOCK_K@, 'GROUP_M': @GROUP_M@},
                       num_warps=@WARPS@, num_stages=@STAGES@)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, lda, ldb, ldc, A_K_MAJOR: tl.constexpr, B_K_MAJOR: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """One tile of c = a b by pointers. Bands of GROUP_M rows of tiles. Rows and columns outside are read as others and not stored."""
    tile = tl.program_id(0)
    in_band = GROUP_M * tl.cdiv(N, BLOCK_N)
    first = tile // in_band * GROUP_M
    height = min(tl.cdiv(M, BLOCK_M) - first, GROUP_M)
    m = (first + tile % in_band % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile % in_band // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    row, column = (m % M).to(tl.int64)[:, None], (n % N).to(tl.int64)[None, :]
    x = a + (row * lda + k[None, :] if A_K_MAJOR else row + k[None, :].to(tl.int64) * lda)
    y = b + (column * ldb + k[:, None] if B_K_MAJOR else column + k[:, None].to(tl.int64) * ldb)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        sums = tl.dot(tl.load(x, mask=k[None, :] < K - done, other=0.0), tl.load(y, mask=k[:, None] < K - done, other=0.0), sums)
        x += BLOCK_K if A_K_MAJOR else BLOCK_K * lda
        y += BLOCK_K if B_K_MAJOR else BLOCK_K * ldb
    tl.store(c + m.to(tl.int64)[:, None] * ldc + n[None, :], sums.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def launch(a, b, c, config):
    """c [M, N] = a [M, K] b [K, N] by any configuration."""
    (M, K), N, tile = a.shape, b.shape[1], config.kwargs
    matmul_kernel[(triton.cdiv(M, tile['BLOCK_M']) * triton.cdiv(N, tile['BLOCK_N']),)](
        a, b, c, M, N, K, a.stride(0 if A_K_MAJOR else 1), b.stride(1 if B_K_MAJOR else 0), c.stride(0), A_K_MAJOR, B_K_MAJOR, **tile,
        num_warps=config.num_warps, num_stages=config.num_stages)


@MATMUL@
