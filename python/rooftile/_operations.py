"""One function an operation, with every field by name. Written by tools/python-operations: change that, or the operation's fields."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from rooftile._plan import Plan
from rooftile._request import plan_one

__all__ = ["attention", "chain", "conv", "fuse", "gemm"]


def gemm(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    machine: str | os.PathLike[str] | None = None,
    shape: str | Sequence[int] | None = None,
    type: str | None = None,
    types: str | Sequence[str] | None = None,
    scales: str | None = None,
    accumulation: str | None = None,
    a_major: Literal["k", "m"] | None = None,
    b_major: Literal["k", "n"] | None = None,
    lda: int | None = None,
    ldb: int | None = None,
    ldc: int | None = None,
    a_offset: int | None = None,
    b_offset: int | None = None,
    c_offset: int | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    epilogue: str | None = None,
    pairs: str | None = None,
    tensors: str | Sequence[str] | None = None,
    batch: int | None = None,
    stride_a: int | None = None,
    stride_b: int | None = None,
    stride_d: int | None = None,
    groups: str | Sequence[int] | None = None,
    quant_group: str | None = None,
    quant_scale: str | None = None,
    quant_zero: str | None = None,
    kernel: str | None = None,
    tile: str | Sequence[int] | None = None,
    stages: int | None = None,
    consumer_warpgroups: int | None = None,
    schedule: str | None = None,
    swap_ab: bool | None = None,
    cluster: str | Sequence[int] | None = None,
    order: str | None = None,
    group: int | None = None,
    split_k: int | None = None,
    grid_split_k: int | None = None,
    ctas_per_sm: int | None = None,
    overlapped_epilogue: bool | None = None,
    epilogue_tile_n: int | None = None,
    pdl: bool | None = None,
    early_weights: bool | None = None,
    evict_first: str | None = None,
    pack_a: bool | None = None,
    pack_b: bool | None = None,
    epilogue_apart: bool | None = None,
    dynamic_scheduler: bool | None = None,
    reverse: bool | None = None,
    exhaustive: bool | None = None,
    top: int | None = None,
    sample: int | None = None,
    orders: str | None = None,
    numbers: str | None = None,
    set: str | Sequence[str] | None = None,
    buildable_only: bool | None = None,
    seed: int | None = None,
) -> Plan:
    r"""A matrix product C = A B: the best plan; its attribute `plans` has the others.

    Problem, C[M,N] = A[M,K] B[K,N]:
        m: Rows of A and C
        n: Columns of B and C
        k: Columns of A, rows of B
    Machine:
        machine: A machine's id, or a machine file; default: the GPU here, else h100-sxm
    Problem, C[M,N] = A[M,K] B[K,N]:
        shape: All three at once; the flag may be left out
        type: bf16 (default) or fp16, for A, B and C; fp32 accumulation
        types: Types of A, B and the result: bf16, fp16, fp8_e4m3, fp8_e5m2; of 8-bit operands the result is any of
            them or fp32, fp8 saturated; of others their type or fp32; B also packed, beside bf16, fp16 or fp8 (to a
            result of bf16 or fp16): int4, uint4, int8, fp8_e4m3, fp8_e5m2, mxfp4 or nf4
        scales: none (default); tensor: A B is multiplied by fp32 numbers scale_a and scale_b of device memory; row:
            by one a row of A and column of B; block: each 128 of K by one a row of A and one a 128 columns of B
        accumulation: 8-bit operands: fast (default), 14 bits in the matrix units; promoted: in fp32 from 128 of K
            to the next
        a_major: Contiguous index of A: k (default, row-major M x K) or m
        b_major: Contiguous index of B: k (default, row-major N x K) or n
        lda: Elements from one line of A to the next; default: dense
        ldb: The same of B
        ldc: The same of C, which is row-major
        a_offset: Elements from a multiple of 128 B to the first of A; default 0
        b_offset: The same of B
        c_offset: The same of C
        alpha: D = alpha A B + beta C; default 1
        beta: Default 0; else --tensor "c:bf16[M,N]" says what C is
        epilogue: What is stored, of acc = alpha A B + beta C and point-wise operators: "d = gelu(acc + bias)"
        pairs: none (default); interleaved, split: the epilogue is of pairs of B's columns, gate and up, side by
            side or N/2 apart, and the result has N/2 columns: "d = silu(gate) * up"
        tensors: A tensor that the epilogue reads: "bias:bf16[N]", [M,1] one a row, [M,N] one an element; of a batch
            [B,M,N] too, of groups [G,1,N]; repeatable
        batch: So many products of that shape, one matrix behind the other; default 1
        stride_a: Elements from one A of a batch to the next, 0: one A for all; default: dense
        stride_b: The same of B, of groups too, which have one each
        stride_d: The same of the results, which are separate
        groups: Rows of A and C in groups with a B each, m rows in all: 1,7,512; 8x1024; 128x[64..512], drawn and
            scaled to m; a flag may name a file of them
        quant_group: Packed B: so many of K share a scale, 32 (mxfp4 always), 64 (default of nf4) or 128 (default of
            others), or a row
        quant_scale: Its scales: bf16 (default) or fp16; of mxfp4 e8m0, powers of two
        quant_zero: none (default): B is q * scale; int: (q - zero) * scale, a whole number a group; float: q *
            scale - zero, a number of the scales' type
    Fixed parameters (the rest is searched):
        kernel: sm90_gemm or sm80_gemm or sm80_few_gemm or sm90_few_quantised or sm90_many_quantised; default: the
            first of them that the machine runs
        tile: Tile of one CTA: tile_m, tile_n, tile_k
        stages: Tiles in flight; one fills while another is used
        consumer_warpgroups: Warpgroups that multiply
        schedule: cooperative or pingpong
        swap_ab: Compute C^T: columns of C on the instruction's m, and rows on its n, so tile_m goes in steps of 8;
            default: whichever is faster
        cluster: CTAs of a cluster
        order: row, column, grouped, serpentine, morton or hilbert
        group: Rows of tiles taken together by orders grouped and serpentine
        split_k: Split-K in a cluster: CTAs that sum parts of K through shared memory
        grid_split_k: Split-K through a workspace: pieces of K, each in as many parts, that clusters sum and add up
            through L2
        ctas_per_sm: Resident CTAs of an SM
        overlapped_epilogue: Store a tile between the next one's first MMAs; default: on where registers allow
        epilogue_tile_n: Columns of C that one TMA store takes
        pdl: Start during the end of the kernel before (programmatic dependent launch); default: on
        early_weights: Ask for B before waiting for the kernel in front: B was complete before that one began;
            default: off
        evict_first: Operands, of a, b and c, that L2 drops first, as in bc; default: none
        pack_a: Copy A into a workspace first, its lines 128 B aligned; default: on where TMA cannot take it as it
            is, or where that is predicted faster
        pack_b: The same of B
        epilogue_apart: Run the epilogue as a second kernel (fp32 workspace); default: whichever is faster
        dynamic_scheduler: Batches and groups: clusters take tiles from a counter, not in fixed turns; default: on
            where DRAM binds or counts are unlike, in many waves
        reverse: Tiles from the last one of the order to the first; default: off
        exhaustive: Search also what structural rules leave out
    Output:
        top: Plans to keep
    Other plans than the best:
        sample: The best plan and N - 1 drawn from all that pass the constraints, up to twice its predicted time
        orders: The best plan in its order of tiles and in these: row,column,grouped:8,serpentine:4,morton,hilbert
    Machine:
        numbers: A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file
        set: Replaces one number of the machine, as in "dram.bandwidth=4 TB/s"
    Output:
        buildable_only: Leave out plans that no kernel exists for yet
    Other plans than the best:
        seed: Seed of plans that are drawn; default 1

    Raises RequestError where a value is not what is accepted, Infeasible where no plan fits.
    """
    return plan_one("gemm", machine, {
        "m": m, "n": n, "k": k, "shape": shape, "type": type, "types": types, "scales": scales,
        "accumulation": accumulation, "a_major": a_major, "b_major": b_major, "lda": lda, "ldb": ldb, "ldc": ldc,
        "a_offset": a_offset, "b_offset": b_offset, "c_offset": c_offset, "alpha": alpha, "beta": beta,
        "epilogue": epilogue, "pairs": pairs, "tensors": tensors, "batch": batch, "stride_a": stride_a,
        "stride_b": stride_b, "stride_d": stride_d, "groups": groups, "quant_group": quant_group,
        "quant_scale": quant_scale, "quant_zero": quant_zero, "kernel": kernel, "tile": tile, "stages": stages,
        "consumer_warpgroups": consumer_warpgroups, "schedule": schedule, "swap_ab": swap_ab, "cluster": cluster,
        "order": order, "group": group, "split_k": split_k, "grid_split_k": grid_split_k,
        "ctas_per_sm": ctas_per_sm, "overlapped_epilogue": overlapped_epilogue, "epilogue_tile_n": epilogue_tile_n,
        "pdl": pdl, "early_weights": early_weights, "evict_first": evict_first, "pack_a": pack_a, "pack_b": pack_b,
        "epilogue_apart": epilogue_apart, "dynamic_scheduler": dynamic_scheduler, "reverse": reverse,
        "exhaustive": exhaustive, "top": top, "sample": sample, "orders": orders, "numbers": numbers, "set": set,
        "buildable_only": buildable_only, "seed": seed
    })


def fuse(
    expression: str | None = None,
    tensors: str | Sequence[str] | None = None,
    *,
    machine: str | os.PathLike[str] | None = None,
    alignment: int | None = None,
    vector_width: int | None = None,
    vectors_per_thread: int | None = None,
    threads: int | None = None,
    threads_per_row: int | None = None,
    rows_per_cta: int | None = None,
    cluster: int | None = None,
    row_splits: int | None = None,
    reduce_scope: str | None = None,
    stages: int | None = None,
    ctas_per_sm: int | None = None,
    reduction_threads: int | None = None,
    row_storage: str | None = None,
    early_weights: bool | None = None,
    persistent: bool | None = None,
    exhaustive: bool | None = None,
    top: int | None = None,
    numbers: str | None = None,
    set: str | Sequence[str] | None = None,
    buildable_only: bool | None = None,
    seed: int | None = None,
) -> Plan:
    r"""A chain of operators as one kernel: the best plan; its attribute `plans` has the others.

    Problem:
        expression: "y = gelu(x + bias)"; statements are parted by ";"
        tensors: A tensor of the expression, as --tensor "x:bf16[8192,8192]"; repeatable
    Machine:
        machine: A machine's id, or a machine file; default: the GPU here, else h100-sxm
    Fixed parameters (the rest is searched):
        alignment: What every tensor's address is a multiple of; default 256
        vector_width: Elements of a vector
        vectors_per_thread: Vectors of each full tensor that a thread has in flight
        threads: Threads of a CTA
        threads_per_row: Threads of a CTA that share a row
        rows_per_cta: Rows of a CTA; 1 where its threads share one
        cluster: CTAs that share a row
        row_splits: CTAs that share the rows of a tile of columns
        reduce_scope: Where a row or column is reduced: cta, cluster, or grid (in device memory)
        stages: Slots of the ring, or iterations of grid-resident rows that shared memory holds
        ctas_per_sm: CTAs that an SM has at once, no more than fit
        reduction_threads: Threads of a ring's CTA that only reduce (warp specialisation); 0: all do both
        row_storage: Where a row waits between passes: registers, shared (a warp's rows together), pipelined (a ring
            of chunks in shared memory) or reload (read again)
        early_weights: What all rows share is loaded before a reduction; by a ring once
        persistent: One wave of CTAs goes through everything
        exhaustive: Search also what structural rules leave out
    Output:
        top: Plans to keep
    Machine:
        numbers: A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file
        set: Replaces one number of the machine, as in "dram.bandwidth=4 TB/s"
    Output:
        buildable_only: Leave out plans that no kernel exists for yet
    Other plans than the best:
        seed: Seed of plans that are drawn; default 1

    Raises RequestError where a value is not what is accepted, Infeasible where no plan fits.
    """
    return plan_one("fuse", machine, {
        "expression": expression, "tensors": tensors, "alignment": alignment, "vector_width": vector_width,
        "vectors_per_thread": vectors_per_thread, "threads": threads, "threads_per_row": threads_per_row,
        "rows_per_cta": rows_per_cta, "cluster": cluster, "row_splits": row_splits, "reduce_scope": reduce_scope,
        "stages": stages, "ctas_per_sm": ctas_per_sm, "reduction_threads": reduction_threads,
        "row_storage": row_storage, "early_weights": early_weights, "persistent": persistent,
        "exhaustive": exhaustive, "top": top, "numbers": numbers, "set": set, "buildable_only": buildable_only,
        "seed": seed
    })


def attention(
    batch: int | None = None,
    heads: int | None = None,
    *,
    machine: str | os.PathLike[str] | None = None,
    kv_heads: int | None = None,
    q: int | None = None,
    kv: int | None = None,
    lengths: str | Sequence[int] | None = None,
    page: int | None = None,
    pages: int | None = None,
    dim: int | None = None,
    dim_v: int | None = None,
    latent: bool | None = None,
    scale: float | None = None,
    mask: str | None = None,
    type: str | None = None,
    layout: str | None = None,
    q_strides: str | Sequence[int] | None = None,
    k_strides: str | Sequence[int] | None = None,
    v_strides: str | Sequence[int] | None = None,
    o_strides: str | Sequence[int] | None = None,
    log_sum_exp: bool | None = None,
    score: str | None = None,
    tensors: str | Sequence[str] | None = None,
    tile_q: int | None = None,
    tile_kv: int | None = None,
    stages: int | None = None,
    schedule: str | None = None,
    splits: int | None = None,
    ctas_per_sm: int | None = None,
    section_heads: int | None = None,
    combine_apart: bool | None = None,
    batch_invariant: bool | None = None,
    consumer_warpgroups: int | None = None,
    exhaustive: bool | None = None,
    top: int | None = None,
    numbers: str | None = None,
    set: str | Sequence[str] | None = None,
    buildable_only: bool | None = None,
    seed: int | None = None,
) -> Plan:
    r"""Softmax of queries' scores times values, of every head, as one kernel: the best plan; its attribute `plans` has the others.

    Problem:
        batch: Batches; default 1
        heads: Heads of Q and O
    Machine:
        machine: A machine's id, or a machine file; default: the GPU here, else h100-sxm
    Problem:
        kv_heads: Heads of K and V, each shared by H / G heads of Q; default H
        q: Queries of a head
        kv: Keys of a head; default S
        lengths: Packed sequences, in place of batch, q and kv; with q: of a cache's keys, in place of batch. The
            lengths of a distribution to plan for, 128,512,...; of B between LO and HI; a flag may name a file of
            them
        page: Keys are in pages of P, which a table names: a multiple of 16
        pages: Pages that K and V have; default what the lengths' batches have room for
        dim: Elements of a row of Q and K: a multiple of 8 up to 256; with latent of 16 up to 576
        dim_v: Elements of a row of V and O; default D; with latent a multiple of 128 up to 512
        latent: Values are the first V elements of K's rows, which all heads share: there is no tensor V; of 1 to 32
            queries; default off
        scale: What scores are multiplied by; default 1 / sqrt(D)
        mask: none, causal (aligned at the lower right) or window:W (the last W keys of those); default none
        type: Type of all four tensors: bf16 or fp16; default bf16
        layout: bhsd (a head's rows follow each other) or bshd (a row's heads do); default bhsd
        q_strides: Elements from one batch, head and row of Q to the next; default as --layout has it, dense
        k_strides: The same of K
        v_strides: The same of V
        o_strides: The same of O, whose rows must not overlap
        log_sum_exp: The scores' log-sum-exp of every query, too; default off
        score: What is made of a score before its exponential, of s, the places i and j of its query and key among
            the keys, and tensors: "s = 30 * tanh(s / 30)", "s = s + slope * (j - i)"
        tensors: A tensor that the score reads: "slope:fp32[H]", one number a head, or [1]; repeatable
    Fixed parameters (the rest is searched):
        tile_q: Queries of a tile: 64, 128 or 192
        tile_kv: Keys of a block: a multiple of 16 up to 256
        stages: Blocks of K, and of V, in shared memory
        schedule: pingpong (consumer warpgroups issue their MMAs in turns) or cooperative (as they come)
        splits: CTAs that the blocks of all tiles are shared out to, evenly; 1: a tile is a turn of whoever is free
        ctas_per_sm: CTAs an SM at once, where blocks are shared out: one's tile begins or ends while the other's is
            computed
        section_heads: Heads of all batches whose tiles are taken before the next ones'
        combine_apart: A second kernel adds up the parts of latent rows' tiles, on all SMs at once, and not who
            comes last
        batch_invariant: A sequence of few queries has the same bits whatever else is in the batch; default off
        consumer_warpgroups: Warpgroups that compute, 64 queries each
        exhaustive: Search also what structural rules leave out
    Output:
        top: Plans to keep
    Machine:
        numbers: A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file
        set: Replaces one number of the machine, as in "dram.bandwidth=4 TB/s"
    Output:
        buildable_only: Leave out plans that no kernel exists for yet
    Other plans than the best:
        seed: Seed of plans that are drawn; default 1

    Raises RequestError where a value is not what is accepted, Infeasible where no plan fits.
    """
    return plan_one("attention", machine, {
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "q": q, "kv": kv, "lengths": lengths, "page": page,
        "pages": pages, "dim": dim, "dim_v": dim_v, "latent": latent, "scale": scale, "mask": mask, "type": type,
        "layout": layout, "q_strides": q_strides, "k_strides": k_strides, "v_strides": v_strides,
        "o_strides": o_strides, "log_sum_exp": log_sum_exp, "score": score, "tensors": tensors, "tile_q": tile_q,
        "tile_kv": tile_kv, "stages": stages, "schedule": schedule, "splits": splits, "ctas_per_sm": ctas_per_sm,
        "section_heads": section_heads, "combine_apart": combine_apart, "batch_invariant": batch_invariant,
        "consumer_warpgroups": consumer_warpgroups, "exhaustive": exhaustive, "top": top, "numbers": numbers,
        "set": set, "buildable_only": buildable_only, "seed": seed
    })


def chain(
    m: int | None = None,
    d: int | None = None,
    ff: int | None = None,
    act: str | None = None,
    *,
    machine: str | os.PathLike[str] | None = None,
    residual: bool | None = None,
    type: str | None = None,
    form: str | None = None,
    chunk_rows: int | None = None,
    room_chunks: int | None = None,
    tile_m: int | None = None,
    tile_ff: int | None = None,
    stages: int | None = None,
    x_stages: int | None = None,
    resident: bool | None = None,
    schedule: str | None = None,
    exhaustive: bool | None = None,
    top: int | None = None,
    flips: bool | None = None,
    numbers: str | None = None,
    set: str | Sequence[str] | None = None,
    buildable_only: bool | None = None,
    seed: int | None = None,
) -> Plan:
    r"""Two products in a row, a function of elements between them, as one plan: the best plan; its attribute `plans` has the others.

    Problem, Y = act(X W1^T) W2^T:
        m: Rows of X and Y
        d: Columns of X and Y: a multiple of 8
        ff: Columns of the intermediate: a multiple of 8
        act: gelu (default, by erf), silu, relu or swiglu (silu(gate) * up, W1 being 2 F x D, gates above ups)
    Machine:
        machine: A machine's id, or a machine file; default: the GPU here, else h100-sxm
    Problem, Y = act(X W1^T) W2^T:
        residual: Y = X + act(X W1^T) W2^T
        type: Type of all tensors and the intermediate: bf16 (default) or fp16; fp32 accumulation
    Fixed parameters (the rest is searched):
        form: two_kernels, carry_over, persistent or on_chip
        chunk_rows: Rows that the persistent form takes through both products together
        room_chunks: Times that many rows of the intermediate that the persistent form has room for: 2 or more
        tile_m: Rows of a tile of form on_chip: 64, 128 or 192
        tile_ff: Columns of the intermediate that form on_chip makes and uses at a time: 64 or 128
        stages: Blocks of W1, and of W2, in shared memory of form on_chip
        x_stages: Tiles of X in shared memory of form on_chip: 1 or 2
        resident: Form on_chip: W1 and W2 come once a CTA and stay; default: on where they fit
        schedule: Form on_chip: pingpong (products in turns) or cooperative (as they come)
        exhaustive: Search also what structural rules leave out
    Output:
        top: Forms to keep
        flips: Note from which m, d, ff, L2 size or DRAM bandwidth another form is ahead (some hundred plans more)
    Machine:
        numbers: A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file
        set: Replaces one number of the machine, as in "dram.bandwidth=4 TB/s"
    Output:
        buildable_only: Leave out plans that no kernel exists for yet
    Other plans than the best:
        seed: Seed of plans that are drawn; default 1

    Raises RequestError where a value is not what is accepted, Infeasible where no plan fits.
    """
    return plan_one("chain", machine, {
        "m": m, "d": d, "ff": ff, "act": act, "residual": residual, "type": type, "form": form,
        "chunk_rows": chunk_rows, "room_chunks": room_chunks, "tile_m": tile_m, "tile_ff": tile_ff,
        "stages": stages, "x_stages": x_stages, "resident": resident, "schedule": schedule,
        "exhaustive": exhaustive, "top": top, "flips": flips, "numbers": numbers, "set": set,
        "buildable_only": buildable_only, "seed": seed
    })


def conv(
    batch: int | None = None,
    channels: int | None = None,
    *,
    machine: str | os.PathLike[str] | None = None,
    depth: int | None = None,
    height: int | None = None,
    width: int | None = None,
    filters: int | None = None,
    kernel_size: str | None = None,
    stride: int | None = None,
    padding: int | None = None,
    dilation: int | None = None,
    groups: int | None = None,
    gradient: str | None = None,
    layout: str | None = None,
    type: str | None = None,
    epilogue: str | None = None,
    tensors: str | Sequence[str] | None = None,
    kernel: str | None = None,
    tile: str | Sequence[int] | None = None,
    stages: int | None = None,
    consumer_warpgroups: int | None = None,
    schedule: str | None = None,
    swap_ab: bool | None = None,
    cluster: str | Sequence[int] | None = None,
    order: str | None = None,
    group: int | None = None,
    split_k: int | None = None,
    grid_split_k: int | None = None,
    ctas_per_sm: int | None = None,
    overlapped_epilogue: bool | None = None,
    epilogue_tile_n: int | None = None,
    pdl: bool | None = None,
    early_weights: bool | None = None,
    evict_first: str | None = None,
    reverse: bool | None = None,
    exhaustive: bool | None = None,
    top: int | None = None,
    vector: int | None = None,
    strip: int | None = None,
    rows: int | None = None,
    places: str | None = None,
    warp_tile: str | None = None,
    warps: int | None = None,
    planes: str | None = None,
    numbers: str | None = None,
    set: str | Sequence[str] | None = None,
    buildable_only: bool | None = None,
    seed: int | None = None,
) -> Plan:
    r"""A convolution of images, channels innermost, as an implicit product: the best plan; its attribute `plans` has the others.

    Problem, y[n, p, f] = sum over taps t and channels c of x[n, p stride - padding + t dilation, c] w[f, t, c]:
        batch: Images; default 1
        channels: Channels of the image
    Machine:
        machine: A machine's id, or a machine file; default: the GPU here, else h100-sxm
    Problem, y[n, p, f] = sum over taps t and channels c of x[n, p stride - padding + t dilation, c] w[f, t, c]:
        depth: Pixels along the slowest axis; left out of images of two axes
        height: Rows of pixels; left out of one axis, as of tokens
        width: Pixels of a row
        filters: Filters: channels of the result
        kernel_size: Taps along each axis, the width last: 3x3, or one number for all
        stride: Pixels from one place of the result to the next; default 1
        padding: Zeros on either side of an axis; default 0
        dilation: Pixels from one tap to the next; default 1
        groups: Groups of channels and filters that do not meet, such as one a channel (depthwise); default 1
        gradient: none (default): the convolution; data: from dy, the gradient of its result, and w that of x, of a
            stride of 1; weights: from dy and x that of w, of channels in multiples of 64
        layout: Order of x in memory: nhwc (default), channels innermost, or nchw, which a kernel packs first, each
            time; filters are [F, taps, C] and the result [N, places, F]
        type: bf16 (default) or fp16, for all tensors; fp8_e4m3 or fp8_e5m2, for x and w, the result is bf16; fp32
            accumulation
        epilogue: What is stored, an expression of the sums acc: "y = relu(acc + bias)"
        tensors: A tensor that the epilogue reads: bias:bf16[N], of a number a filter; r:bf16[M,N], of one an
            element
    Fixed parameters (the rest is searched):
        kernel: sm90_gemm, whose pixels the copy engine finds, or sm80_gemm, which gathers them; default: whichever
            is faster
        tile: Tile of one CTA: tile_m, tile_n, tile_k
        stages: Tiles in flight; one fills while another is used
        consumer_warpgroups: Warpgroups that multiply
        schedule: cooperative or pingpong
        swap_ab: Compute C^T: columns of C on the instruction's m, and rows on its n, so tile_m goes in steps of 8;
            default: whichever is faster
        cluster: CTAs of a cluster
        order: row, column, grouped, serpentine, morton or hilbert
        group: Rows of tiles taken together by orders grouped and serpentine
        split_k: Split-K in a cluster: CTAs that sum parts of K through shared memory
        grid_split_k: Split-K through a workspace: pieces of K, each in as many parts, that clusters sum and add up
            through L2
        ctas_per_sm: Resident CTAs of an SM
        overlapped_epilogue: Store a tile between the next one's first MMAs; default: on where registers allow
        epilogue_tile_n: Columns of C that one TMA store takes
        pdl: Start during the end of the kernel before (programmatic dependent launch); default: on
        early_weights: Ask for B before waiting for the kernel in front: B was complete before that one began;
            default: off
        evict_first: Operands, of a, b and c, that L2 drops first, as in bc; default: none
        reverse: Tiles from the last one of the order to the first; default: off
        exhaustive: Search also what structural rules leave out
    Output:
        top: Plans to keep
    Fixed parameters of direct convolutions:
        vector: Neighbouring filters of a thread: 1, 2, 4 or 8
        strip: Places of a thread along a row: 1, 2, 4 or 8
        rows: Rows of a thread's places: 1, 2 or 4
    Fixed parameters of direct convolutions by matrix units:
        places: Places of a CTA at once, rows of multiples of 8
        warp_tile: Of a warp at once: T times 16 places (1, 2, 4) by F filters (32, 64)
        warps: Warps of a CTA: 4 or 8
    Fixed parameters of depthwise convolutions by matrix units:
        planes: Of a CTA at once: I images' G groups of R rows (1 to 8) of B blocks of 8 places, by C channels (8,
            16, ...) and W warps
    Machine:
        numbers: A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file
        set: Replaces one number of the machine, as in "dram.bandwidth=4 TB/s"
    Output:
        buildable_only: Leave out plans that no kernel exists for yet
    Other plans than the best:
        seed: Seed of plans that are drawn; default 1

    Raises RequestError where a value is not what is accepted, Infeasible where no plan fits.
    """
    return plan_one("conv", machine, {
        "batch": batch, "channels": channels, "depth": depth, "height": height, "width": width, "filters": filters,
        "kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
        "gradient": gradient, "layout": layout, "type": type, "epilogue": epilogue, "tensors": tensors,
        "kernel": kernel, "tile": tile, "stages": stages, "consumer_warpgroups": consumer_warpgroups,
        "schedule": schedule, "swap_ab": swap_ab, "cluster": cluster, "order": order, "group": group,
        "split_k": split_k, "grid_split_k": grid_split_k, "ctas_per_sm": ctas_per_sm,
        "overlapped_epilogue": overlapped_epilogue, "epilogue_tile_n": epilogue_tile_n, "pdl": pdl,
        "early_weights": early_weights, "evict_first": evict_first, "reverse": reverse, "exhaustive": exhaustive,
        "top": top, "vector": vector, "strip": strip, "rows": rows, "places": places, "warp_tile": warp_tile,
        "warps": warps, "planes": planes, "numbers": numbers, "set": set, "buildable_only": buildable_only,
        "seed": seed
    })
