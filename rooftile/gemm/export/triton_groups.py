@HEAD@
import torch
import triton
import triton.language as tl

GROUPS = @GROUPS@  # rows of each group
N, K = @N@, @K@
A_TYPE, B_TYPE, C_TYPE = torch.@A_TYPE@, torch.@B_TYPE@, torch.@C_TYPE@
CONFIG = triton.Config({'BLOCK_M': @BLOCK_M@, 'BLOCK_N': @BLOCK_N@, 'BLOCK_K': @BLOCK_K@, 'GROUP_M': @GROUP_M@},
                       num_warps=@WARPS@, num_stages=@STAGES@)


@triton.jit
def matmul_kernel(a, b, c, rows, groups, valid, M_TILES, N, K, lda, ldb, ldc, stride_b, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """One tile of the rows of one group: rows[] of a times b[group]. A row that is not below `valid` fills a tile and is not stored."""
    tile = tl.program_id(0)
    in_band = GROUP_M * tl.cdiv(N, BLOCK_N)
    first = tile // in_band * GROUP_M
    height = min(M_TILES - first, GROUP_M)
    tile_m = first + tile % in_band % height
    group = tl.load(groups + tile_m).to(tl.int64)
    if group < 0:
        return
    n = tile % in_band // height * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.load(rows + tile_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    inside = (row < valid)[:, None]
    k = tl.arange(0, BLOCK_K)
    x = a + row[:, None] * lda + k[None, :]
    y = b + group * stride_b + (n % N).to(tl.int64)[None, :] * ldb + k[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        sums = tl.dot(tl.load(x, mask=inside & (k[None, :] < K - done), other=0.0), tl.load(y, mask=k[:, None] < K - done, other=0.0), sums)
        x += BLOCK_K
        y += BLOCK_K
    tl.store(c + row[:, None] * ldc + n[None, :], sums.to(c.dtype.element_ty), mask=inside & (n[None, :] < N))


def tiles_of(offsets, total, block_m):
    """Rows of a that each tile takes, `total` where there is none, and each tile's group, -1 of those behind the last; no wait for the GPU."""
    count, device = offsets.numel() - 1, offsets.device
    height = (offsets.diff() + block_m - 1) // block_m
    end = height.cumsum(0)
    tile = torch.arange(total // block_m + min(count, total), device=device)
    group = torch.searchsorted(end, tile, right=True).clamp(max=count - 1)
    row = offsets[group] + (tile - end[group] + height[group]) * block_m
    row = row[:, None] + torch.arange(block_m, device=device)
    used = tile < end[-1]
    rows = torch.where(used[:, None] & (row < offsets[group + 1][:, None]), row, total)
    return rows.int().flatten(), torch.where(used, group, -1).int()


def launch(a, b, c, tiles, config):
    """c [M, N] by any configuration; tiles: tiles_of() of its BLOCK_M."""
    (rows, groups), n = tiles, b.shape[1]
    matmul_kernel[(groups.numel() * triton.cdiv(n, config.kwargs['BLOCK_N']),)](
        a, b, c, rows, groups, a.shape[0], groups.numel(), n, a.shape[1], a.stride(0), b.stride(1), c.stride(0), b.stride(0),
        **config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages)


def matmul(a, b, offsets, config=CONFIG):
    """a [M, K], its rows in groups; b [groups, N, K], k contiguous in both; offsets int32 [groups + 1]: where groups begin, and the last one's end."""
    if (a.stride(1), b.stride(2)) != (1, 1) or (a.dtype, b.dtype) != (A_TYPE, B_TYPE):
        raise ValueError('a and b lie otherwise than this kernel reads them: see A_TYPE and B_TYPE')
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=C_TYPE)
    launch(a, b, c, tiles_of(offsets, a.shape[0], config.kwargs['BLOCK_M']), config)
    return c


def operands(device='cuda'):
    """Random a and b, and offsets, as the plan has them."""
    offsets = torch.tensor([0] + GROUPS, device=device).cumsum(0).int()
    a = torch.randn((sum(GROUPS), K), device=device).to(A_TYPE)
    return a, torch.randn((len(GROUPS), N, K), device=device, dtype=torch.bfloat16).to(B_TYPE), offsets


def reference(a, b, offsets):
    """In fp32, and the sum of the products' magnitudes."""
    ends = offsets.tolist()
    parts = [(a[x:y].float(), w.float().T) for x, y, w in zip(ends, ends[1:], b)]
    return torch.cat([x @ w for x, w in parts]), torch.cat([x.abs() @ w.abs() for x, w in parts])


def launcher(a, b, offsets):
    """The kernel alone, to be timed."""
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=C_TYPE)
    tiles = tiles_of(offsets, a.shape[0], CONFIG.kwargs['BLOCK_M'])
    return lambda: launch(a, b, c, tiles, CONFIG)


@MAIN@
