// Rung 5, pipelined: one warpgroup loads, two multiply, a ring of four stages lies between them.
//
// Adds      roles. The producer runs ahead, told by one mbarrier a stage that it is free, telling by another
//           that it is full. Registers move to the consumers (setmaxnreg), so that a CTA holds 128 x 256 of C
//           and takes a quarter fewer bytes for each FLOP than rung 4. C leaves by TMA.
// Limit     each tile shows its first load and its store, since one CTA fills an SM; and the last wave.
// Predicted 1024 cycles a step, all in use by the matrix units, which power then clocks down: 1.1 times rung
//           4.
// Here the ring's arithmetic is written out, once; other kernels take kernels/pipeline/ring.cuh.
// Rules     K and N multiples of 8: TMA reads rows of A and B, and writes rows of C, in 16-byte pieces.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/gemm/ladder/wgmma_tile.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile::ladder {

struct Pipelined {
    static constexpr LadderConfig C = ladder_config(Rung::pipelined);
    static constexpr int consumers = C.consumer_threads / 128;
    static constexpr int everyone_done = 1,
                         epilogue_tiles_written = 2;  // named barriers; the latter + consumer
    static_assert(C.tile_k * C.staged_bytes == C.swizzle_bytes, "a row of a tile is one swizzle span");
    static_assert(C.block_m * consumers == C.tile_m && C.block_m == 64, "a wgmma of 64 rows a consumer");
    static_assert(C.tile_n / C.epilogue_columns * C.epilogue_tile_bytes() * consumers
                      <= C.stages * C.stage_bytes(),
                  "C is staged where A and B were");

    // Shared memory: stages of A then B, a full and an empty barrier for each.
    unsigned base;
    __device__ unsigned a(int stage) const { return base + stage * C.stage_bytes(); }
    __device__ unsigned b(int stage) const { return a(stage) + C.a_bytes(); }
    __device__ unsigned full(int stage) const {
        return base + C.stages * C.stage_bytes() + stage * C.barrier_bytes;
    }
    __device__ unsigned empty(int stage) const { return full(stage) + C.stages * C.barrier_bytes; }

    __device__ void set_up() const {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < C.stages; ++stage) {
                ptx::mbarrier_init(full(stage), 1);
                ptx::mbarrier_init(empty(stage), C.consumer_threads / 32);  // a warp arrives once
            }
            ptx::fence_mbarrier_init();
        }
        __syncthreads();
    }

    /// One thread: block k goes to stage k % 4, in lap k / 4 of the ring; a barrier's phase is the lap's
    /// parity.
    __device__ void produce(const TensorMap& map_a, const TensorMap& map_b, int k_blocks, int m0,
                            int n0) const {
        for (int block = 0; block < k_blocks; ++block) {
            const int stage = block % C.stages, lap = block / C.stages;
            ptx::mbarrier_wait(empty(stage), (lap & 1) ^ 1);  // the first lap finds every stage free
            ptx::mbarrier_arrive_expect(full(stage), C.stage_bytes());
            ptx::tma_load_2d(a(stage), map_a, block * C.tile_k, m0, full(stage));  // [128][64]
            ptx::tma_load_2d(b(stage), map_b, block * C.tile_k, n0, full(stage));  // [256][64]
        }
    }

    /// All of K. A stage is given back one step late: its products still run while the next are issued.
    template <Type type>
    __device__ void accumulate(Sums<C.tile_n>& sums, int k_blocks, int consumer) const {
        for (int block = 0; block < k_blocks; ++block) {
            const int stage = block % C.stages;
            ptx::mbarrier_wait(full(stage), block / C.stages & 1);
            multiply_async<type, C.tile_n>(sums, a(stage) + consumer * C.block_m * C.swizzle_bytes, b(stage),
                                           block == 0);
            if (block == 0) continue;
            ptx::wgmma_wait<1>();
            if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty((block - 1) % C.stages));
        }
        ptx::wgmma_wait<0>();
        pin(sums);
    }

    /// Registers to epilogue tiles in the ring's memory, once nobody reads it any more, to TMA.
    template <Type type>
    __device__ void store(const Sums<C.tile_n>& sums, const TensorMap& map_c, int m0, int n0,
                          int consumer) const {
        constexpr int epilogue_tiles = C.tile_n / C.epilogue_columns;  // of [64][64]
        const unsigned mine = base + consumer * epilogue_tiles * C.epilogue_tile_bytes();
        ptx::named_barrier_sync(everyone_done, C.consumer_threads);
#pragma unroll
        for (int i = 0; i < epilogue_tiles; ++i)
            write_epilogue_tile<type>(sums, i * C.epilogue_columns, mine + i * C.epilogue_tile_bytes());
        ptx::fence_async_proxy();
        ptx::named_barrier_sync(epilogue_tiles_written + consumer, 128);
        if (threadIdx.x % 128 != 0) return;
        for (int i = 0; i < epilogue_tiles; ++i)
            ptx::tma_store_2d(map_c, mine + i * C.epilogue_tile_bytes(), n0 + i * C.epilogue_columns, m0);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();  // shared memory must outlive the reading
    }
};

template <Type type>
__global__ void __launch_bounds__(Pipelined::C.threads(), Pipelined::C.ctas_per_sm)
    pipelined(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c, const __grid_constant__ LadderArguments args) {
    constexpr LadderConfig C = Pipelined::C;
    extern __shared__ unsigned char memory[];
    const Pipelined p{(ptx::shared_address(memory) + C.tile_alignment - 1) & ~(C.tile_alignment - 1)};
    p.set_up();
    const unsigned columns = (args.n - 1) / C.tile_n + 1;
    const int m0 = blockIdx.x / columns * C.tile_m, n0 = blockIdx.x % columns * C.tile_n;
    const int k_blocks = (args.k - 1) / C.tile_k + 1;
    const int warpgroup = ptx::warp_uniform(threadIdx.x / 128);
    if (warpgroup == 0) {
        ptx::release_registers<ladder_producer_registers>();
        if (threadIdx.x == 0) p.produce(map_a, map_b, k_blocks, m0, n0);
    } else {
        ptx::take_registers<ladder_consumer_registers>();
        Sums<C.tile_n> sums;
        p.accumulate<type>(sums, k_blocks, warpgroup - 1);
        p.store<type>(sums, map_c, m0 + (warpgroup - 1) * C.block_m, n0, warpgroup - 1);
    }
}

}  // namespace rooftile::ladder
