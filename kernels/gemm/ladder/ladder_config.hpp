// The six rungs of the GEMM ladder in numbers: one struct that kernel, launcher and model share.
//
// Every rung computes C[M x N] = A[M x K] * B[N x K]^T, dense and row-major, 16-bit in and out, fp32 sums.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// In the order of climbing; each adds one thing to the one before.
enum class Rung : unsigned char { naive, shared, tensor_sync, wgmma_tma, pipelined, full };
inline constexpr int rung_count = 6;

struct LadderConfig {
    int tile_m, tile_n, tile_k;  ///< of a CTA; tile_k: what it loads of K at a time
    /// Block of C whose rows of A and columns of B are read once a k-step, from L1 (rung 1) or shared memory:
    /// what a warp (rung 1), a thread (2), a warp (3) or one wgmma (4-6) covers.
    int block_m, block_n;
    int consumer_threads, producer_threads;  ///< that multiply; that only load
    int stages;                              ///< tiles of A and B in shared memory
    int cluster_m;                           ///< CTAs, one below the other in C, that share B
    int group;                               ///< rows of cluster tiles taken together; 0: not persistent
    int ctas_per_sm;                         ///< that registers leave room for
    int staged_bytes;                        ///< of an element of A or B in shared memory

    static constexpr int element_bytes = 2;      ///< in global memory
    static constexpr int swizzle_bytes = 128;    ///< a row of a staged tile, rungs 3-6
    static constexpr int chunk_elements = 8;     ///< of a 16-byte load
    static constexpr int barrier_bytes = 8;      ///< one mbarrier
    static constexpr int tile_alignment = 1024;  ///< 8 rows of 128 B, the unit that the swizzle repeats in
    static constexpr int epilogue_columns = 64;  ///< columns of C that one TMA store takes: 128 B
    static constexpr int epilogue_tiles_in_flight = 2;  ///< a consumer warpgroup, rung 6

    constexpr int threads() const { return consumer_threads + producer_threads; }
    constexpr int a_bytes() const { return tile_m * tile_k * staged_bytes; }
    constexpr int b_bytes() const { return tile_n * tile_k * staged_bytes; }
    constexpr int stage_bytes() const { return a_bytes() + b_bytes(); }
    constexpr int epilogue_tile_bytes() const {
        return 64 * epilogue_columns * element_bytes;
    }  ///< 64 rows: one wgmma
    constexpr int epilogue_area() const {
        return group > 0 ? consumer_threads / 128 * epilogue_tiles_in_flight * epilogue_tile_bytes() : 0;
    }
    /// What a launch asks for: rungs with a swizzle align their first tile themselves.
    constexpr int shared_bytes() const {
        return tile_alignment + stages * stage_bytes() + epilogue_area() + 2 * stages * barrier_bytes;
    }
};

/// setmaxnreg of rungs 5 and 6: 128 * 40 + 256 * 232 of 65536 registers, 384 threads having begun with 168
/// each.
inline constexpr int ladder_producer_registers = 40, ladder_consumer_registers = 232;

constexpr LadderConfig ladder_config(Rung rung) {
    switch (rung) {
        case Rung::naive:  // 16 x 16 threads, of which a warp is two rows
            return {16, 16, 1, 2, 16, 256, 0, 0, 1, 0, 8, 0};
        case Rung::shared:  // 16 x 16 threads with 8 x 8 elements each; operands widened to fp32
            return {128, 128, 16, 8, 8, 256, 0, 1, 1, 0, 2, 4};
        case Rung::tensor_sync:  // 2 x 4 warps
            return {128, 128, 64, 64, 32, 256, 0, 2, 1, 0, 2, 2};
        case Rung::wgmma_tma:  // one warpgroup, two wgmmas one below the other
            return {128, 128, 64, 64, 128, 128, 0, 1, 1, 0, 3, 2};
        case Rung::pipelined:  // two warpgroups that multiply, one that loads
            return {128, 256, 64, 64, 256, 256, 128, 4, 1, 0, 1, 2};
        case Rung::full:
            return {128, 256, 64, 64, 256, 256, 128, 4, 2, 8, 1, 2};
    }
    return {};
}

/// Operands of one launch. Sizes in elements.
struct LadderArguments {
    const unsigned short *a, *b;  ///< bits of 16-bit numbers
    unsigned short* c;
    int m, n, k;
};

}  // namespace rooftile
