@HEAD@
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SHAPE = (@M@, @N@, @K@)
A_K_MAJOR, B_K_MAJOR = @A_K_MAJOR@, @B_K_MAJOR@  # whether rows of a, columns of b, are contiguous
A_TYPE, B_TYPE, C_TYPE = torch.@A_TYPE@, torch.@B_TYPE@, torch.@C_TYPE@
CONFIG = triton.Config({'BLOCK_M': @BLOCK_M@, 'BLOCK_N': @BLOCK_N@, 'BLOCK_K': @BLOCK_K@, 'GROUP_M': @GROUP_M@},
                       num_warps=@WARPS@, num_stages=@STAGES@)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, A_K_MAJOR: tl.constexpr, B_K_MAJOR: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """One tile of c = a b by descriptors: what lies outside is read as zeros and not stored. Bands of GROUP_M rows of tiles."""
    tile = tl.program_id(0)
    in_band = GROUP_M * tl.cdiv(N, BLOCK_N)
    first = tile // in_band * GROUP_M
    height = min(tl.cdiv(M, BLOCK_M) - first, GROUP_M)
    m = (first + tile % in_band % height) * BLOCK_M
    n = tile % in_band // height * BLOCK_N
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = a.load([m, k]) if A_K_MAJOR else a.load([k, m]).T
        y = b.load([n, k]).T if B_K_MAJOR else b.load([k, n])
        sums = tl.dot(x, y, sums)
    c.store([m, n], sums.to(c.dtype))


def launch(a, b, c, config):
    """c [M, N] = a [M, K] b [K, N] by any configuration."""
    (M, K), N, tile = a.shape, b.shape[1], config.kwargs
    bm, bn, bk = tile['BLOCK_M'], tile['BLOCK_N'], tile['BLOCK_K']
    of_a = TensorDescriptor.from_tensor(a, [bm, bk]) if A_K_MAJOR else TensorDescriptor.from_tensor(a.T, [bk, bm])
    of_b = TensorDescriptor.from_tensor(b.T, [bn, bk]) if B_K_MAJOR else TensorDescriptor.from_tensor(b, [bk, bn])
    matmul_kernel[(triton.cdiv(M, bm) * triton.cdiv(N, bn),)](
        of_a, of_b, TensorDescriptor.from_tensor(c, [bm, bn]), M, N, K, A_K_MAJOR, B_K_MAJOR, **tile,
        num_warps=config.num_warps, num_stages=config.num_stages)


@MATMUL@
