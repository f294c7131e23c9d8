// The main loop: what consumer warpgroups do with a stage of the ring, from waiting for it to handing it back. A and B are in shared
// memory.
#pragma once

#include "kernels/matrix/accumulators.cuh"
#include "kernels/matrix/layout.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace rooftile {

/// Hands a stage back to the producers that fill it: each warp says so to every peer of its part.
template <MatrixConfig C>
__device__ void release(const MatrixShared<C>& shared, int stage, int part) {
    if constexpr (C.peers() == 1) shared.ring.release(stage);
    else shared.ring.template release_to_cluster<C.peers()>(stage, part * C.peers());
}

template <MatrixConfig C, Major major>
__device__ unsigned long long descriptor(unsigned tile, int mn) {
    constexpr int eight_rows = 8 * C.swizzle_bytes;
    if constexpr (major == Major::k)
        return ptx::matrix_descriptor(tile + mn * C.swizzle_bytes, 16, eight_rows);
    else return ptx::matrix_descriptor(tile + mn / 64 * C.mn_box_bytes(), C.mn_box_bytes(), eight_rows);
}

/// Issues the products of one stage: [64 x rows, tile_k] * [tile_k x mma_n]. With swap_ab the instruction's first operand
/// is B, and its sums are those of C^T.
template <MatrixConfig C, int rows>
__device__ void multiply(float (&sums)[rows][C.row_accumulators()], const MatrixShared<C>& shared, int stage, int first_row,
                         bool fresh) {
    constexpr Major a_major = C.swap_ab ? C.b_major : C.a_major, b_major = C.swap_ab ? C.a_major : C.b_major;
    // Bytes >> 4 from one k-step of 32 B to the next: within a swizzle span, or (of 16 bits) 16 rows of 128 B further.
    constexpr int a_step = (a_major == Major::k ? 32 : 16 * C.swizzle_bytes) >> 4;
    constexpr int b_step = (b_major == Major::k ? 32 : 16 * C.swizzle_bytes) >> 4;
    const unsigned long long b = descriptor<C, b_major>(C.swap_ab ? shared.a(stage) : shared.b(stage), 0);
#pragma unroll
    for (int step = 0; step < C.k_steps(); ++step) {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            const unsigned long long a = descriptor<C, a_major>(
                C.swap_ab ? shared.b(stage) : shared.a(stage), first_row + 64 * i);
            ptx::wgmma<C.mma_n(), C.swap_ab ? C.b_type : C.type, C.swap_ab ? C.type : C.b_type, a_major, b_major>(
                sums[i], a + step * a_step, b + step * b_step, step > 0 || !fresh);
        }
    }
}

template <MatrixConfig C, int rows>
__device__ void pin(float (&sums)[rows][C.row_accumulators()]) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < C.row_accumulators(); ++j) ptx::wgmma_pin(sums[i][j]);
}

/// Not for the sums' sake: a wgmma can start them anew. Registers that are written here are free from
/// publish() to the next tile, and the exchange wants them; else ptxas holds them through it, and spills.
template <MatrixConfig C>
__device__ void clear(Accumulators<C>& sums) {
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
        for (int j = 0; j < C.row_accumulators(); ++j) sums[i][j] = 0;
}

/// A stage's sums of one wgmma to those of the stages before, each row by its scale and that of the columns.
template <MatrixConfig C>
__device__ void promote(float (&sums)[C.row_accumulators()], const float (&partial)[C.row_accumulators()],
                        const float (&scale)[C.b_scales()][2]) {
#pragma unroll
    for (int j = 0; j < C.row_accumulators(); ++j) {
        // Four accumulators are two columns in two rows, of eight columns.
        if constexpr (C.block_scales)
            sums[j] = fmaf(scale[C.b_scales() == 1 ? 0 : j / (C.scale_block / 2)][j / 2 % 2], partial[j], sums[j]);
        else sums[j] += partial[j];
    }
}

/// A step with promoted sums: wgmma after wgmma, each begun anew and added up while another warpgroup's run.
/// `block`: of K; `scales_begin`: of A's scales, the one of the tile's first row.
template <MatrixConfig C>
__device__ void promoted_step(Accumulators<C>& sums, const MatrixShared<C>& shared, RingPosition<C.stages>& at, int first_row,
                              int part, [[maybe_unused]] int block, [[maybe_unused]] int scales_begin) {
    shared.ring.wait(at);  // scales come with it
    constexpr bool multiplies = C.ablated != Ablation::products;
    const int thread = threadIdx.x % C.warpgroup_threads;
    float of_b[C.b_scales()] = {};
    if constexpr (C.block_scales) {
#pragma unroll
        for (int i = 0; i < C.b_scales(); ++i)
            of_b[i] = ptx::load_shared_float(shared.b_scales(at.stage) + i * C.tma_bytes + block % C.scales_a_box * 4);
    }
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
        float partial[1][C.row_accumulators()], scale[C.b_scales()][2];
        if constexpr (multiplies) {
            pin<C>(partial);
            ptx::wgmma_fence();
            multiply<C>(partial, shared, at.stage, first_row + 64 * i, true);
            ptx::wgmma_commit();
        }
        if constexpr (C.block_scales) {  // beside the products
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = first_row + 64 * i + thread / 32 * 16 + thread % 32 / 4 + 8 * half;
                const float of_a = ptx::load_shared_float(shared.a_scales(at.stage) + (scales_begin + row) * 4);
#pragma unroll
                for (int b = 0; b < C.b_scales(); ++b) scale[b][half] = of_a * of_b[b];
            }
        }
        if constexpr (multiplies) {
            ptx::wgmma_wait<0>();
            pin<C>(partial);
        }
        if (i + 1 == C.wgmma_rows()) release<C>(shared, at.stage, part);
        if constexpr (multiplies) promote<C>(sums[i], partial[0], scale);
    }
    at.advance();
}

/// One step of the K loop: this stage's products are issued, then the stage before, whose products are done
/// by then, goes back to the producers.
template <MatrixConfig C>
__device__ void step(Accumulators<C>& sums, const MatrixShared<C>& shared, RingPosition<C.stages>& at,
                     int& previous, int first_row, int part, bool first) {
    shared.ring.wait(at);
    // Without products nothing of them may stay: ptxas turns a commit of nothing into a small wgmma.
    constexpr bool multiplies = C.ablated != Ablation::products;
    if constexpr (multiplies) {
        pin<C>(sums);
        ptx::wgmma_fence();
        multiply(sums, shared, at.stage, first_row, !C.adds_up() && first);
        ptx::wgmma_commit();
        pin<C>(sums);
    }
    if (!first) {
        if constexpr (multiplies) ptx::wgmma_wait<1>();
        release<C>(shared, previous, part);
    }
    previous = at.stage;
    at.advance();
}

/// The last products of a tile: until they are done, and their stage is handed back.
template <MatrixConfig C>
__device__ void drain(Accumulators<C>& sums, const MatrixShared<C>& shared, int previous, int part) {
    if constexpr (C.ablated != Ablation::products) ptx::wgmma_wait<0>();
    pin<C>(sums);
    release<C>(shared, previous, part);
}

}  // namespace rooftile
