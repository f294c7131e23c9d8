"""The suite of memory-bound kernels written by hand with Triton, as its tutorials write them: rows in tiles of several
where they are short, held in registers where they fit, read in blocks again where they do not.

`launch_for(group, rows, columns)` gives a function (inputs, output) that launches the kernel of a group of
bench/suites/memory.toml; it takes the inputs in the suite's order."""
import triton
import triton.language as tl

HELD = 16384             # columns of a row that a program keeps in registers
TILE = 4096              # elements of a program's tile of short rows, or of a block of a long one
POINTWISE_BLOCK = 2048
DROPOUT, SEED = 0.1, 1
EPSILON = {"layernorm": 1e-5, "layernorm_chain": 1e-5, "rmsnorm": 1e-6}


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def softmax_held(y, x, rows, columns, R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    at = row.to(tl.int64) * columns + column
    v = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=1)[:, None])
    tl.store(y + at, (e / tl.sum(e, axis=1)[:, None]).to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_blocks(y, x, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    most = tl.full([BLOCK], -1e30, tl.float32)  # finite: the difference of two infinities is none
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        v = tl.load(x + row + first + column, mask=first + column < columns, other=-1e30).to(tl.float32)
        larger = tl.maximum(most, v)
        total = total * tl.exp(most - larger) + tl.exp(v - larger)
        most = larger
    peak = tl.max(most, axis=0)
    scale = 1 / tl.sum(total * tl.exp(most - peak), axis=0)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        v = tl.load(x + row + first + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row + first + column, (tl.exp(v - peak) * scale).to(y.dtype.element_ty), mask=inside)


@triton.jit
def finished(v, at, residual, inside, dropout, seed, CHAIN: tl.constexpr):
    """What follows the norm of the chain."""
    if CHAIN:
        v += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
        v = tl.where(tl.rand(seed, at) >= dropout, v / (1 - dropout), 0.0)
        v = gelu(v)
    return v


@triton.jit
def norm_held(y, x, residual, gamma, beta, rows, columns, epsilon, dropout, seed, MEAN: tl.constexpr,
              CHAIN: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    at = row.to(tl.int64) * columns + column
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if MEAN:
        v = tl.where(inside, v - (tl.sum(v, axis=1) / columns)[:, None], 0.0)
    v *= tl.rsqrt(tl.sum(v * v, axis=1) / columns + epsilon)[:, None]
    v *= tl.load(gamma + column, mask=column < columns, other=0.0).to(tl.float32)
    if MEAN:
        v += tl.load(beta + column, mask=column < columns, other=0.0).to(tl.float32)
    v = finished(v, at, residual, inside, dropout, seed, CHAIN)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_blocks(y, x, residual, gamma, beta, rows, columns, epsilon, dropout, seed, MEAN: tl.constexpr,
                CHAIN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    mean = 0.0
    if MEAN:
        total = tl.zeros([BLOCK], tl.float32)
        for first in range(0, columns, BLOCK):
            total += tl.load(x + row + first + column, mask=first + column < columns, other=0.0).to(tl.float32)
        mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        v = tl.load(x + row + first + column, mask=inside, other=0.0).to(tl.float32)
        v = tl.where(inside, v - mean, 0.0)
        squares += v * v
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        v = tl.load(x + row + first + column, mask=inside, other=0.0).to(tl.float32)
        v = (v - mean) * scale * tl.load(gamma + first + column, mask=inside, other=0.0).to(tl.float32)
        if MEAN:
            v += tl.load(beta + first + column, mask=inside, other=0.0).to(tl.float32)
        v = finished(v, row + first + column, residual, inside, dropout, seed, CHAIN)
        tl.store(y + row + first + column, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def reduced_rows(y, x, rows, columns, MAX: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    column = tl.arange(0, BLOCK)[None, :]
    nothing = -float("inf") if MAX else 0.0
    partial = tl.full([R, BLOCK], nothing, tl.float32)
    for first in range(0, columns, BLOCK):
        inside = (row[:, None] < rows) & (first + column < columns)
        v = tl.load(x + row[:, None].to(tl.int64) * columns + first + column, mask=inside,
                    other=nothing).to(tl.float32)
        partial = tl.maximum(partial, v) if MAX else partial + v
    result = tl.max(partial, axis=1) if MAX else tl.sum(partial, axis=1)
    tl.store(y + row, result.to(y.dtype.element_ty), mask=row < rows)


@triton.jit
def pointwise(y, x, a, b, elements, columns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < elements
    v = tl.load(x + at, mask=inside).to(tl.float32)
    if KIND == "gelu":
        v = gelu(v)
    elif KIND == "gelu_tanh":
        v = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))
    elif KIND == "bias_gelu":
        v = gelu(v + tl.load(a + at % columns, mask=inside).to(tl.float32))
    else:
        p = tl.load(a + at % columns, mask=inside).to(tl.float32)
        q = tl.load(b + at % columns, mask=inside).to(tl.float32)
        v = tl.abs(tanh(tl.sigmoid((v + p) * 0.5) - q) * v + 1.0) * 0.25 - p
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


def warps_for(elements):
    """Sixteen elements a thread."""
    return max(1, min(16, triton.next_power_of_2(elements) // (32 * 16)))


def row_tile(columns):
    """Rows and columns of a program's tile."""
    block = triton.next_power_of_2(columns)
    return max(1, TILE // block), block


def launch_for(group, rows, columns):
    held = columns <= HELD
    r, block = row_tile(columns) if held else (1, TILE)
    grid, warps = (triton.cdiv(rows, r),), warps_for(r * block)
    if group == "softmax":
        if held:
            return lambda i, y: softmax_held[grid](y, i[0], rows, columns, R=r, BLOCK=block, num_warps=warps)
        return lambda i, y: softmax_blocks[grid](y, i[0], rows, columns, BLOCK=block, num_warps=warps)
    if group in EPSILON:
        mean, chain = group != "rmsnorm", group == "layernorm_chain"
        tile = {"R": r, "BLOCK": block} if held else {"BLOCK": block}
        kernel = norm_held if held else norm_blocks

        def norm(i, y):
            residual = i[1] if chain else i[0]
            gamma = i[2] if chain else i[1]
            beta = i[-1]
            kernel[grid](y, i[0], residual, gamma, beta, rows, columns, EPSILON[group], DROPOUT, SEED, MEAN=mean,
                         CHAIN=chain, num_warps=warps, **tile)
        return norm
    if group in ("sum", "max"):
        block = min(block, TILE)
        r = max(1, TILE // block)
        grid, warps = (triton.cdiv(rows, r),), warps_for(r * block)
        return lambda i, y: reduced_rows[grid](y, i[0], rows, columns, MAX=group == "max", R=r, BLOCK=block,
                                               num_warps=warps)
    elements = rows * columns
    grid = (triton.cdiv(elements, POINTWISE_BLOCK),)

    def each(i, y):
        a, b = (i + [i[0], i[0]])[1:3]
        pointwise[grid](y, i[0], a, b, elements, columns, KIND=group, BLOCK=POINTWISE_BLOCK, num_warps=4)
    return each
