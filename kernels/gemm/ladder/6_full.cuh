// Rung 6, full: CTAs that stay, work in pairs, and take the tiles of C so that L2 serves them.
//
// Adds      a persistent grid: the next tile loads while this one is stored. Clusters of two CTAs, one below
//           the other, share B: each multicasts half, so L2 gives a third less. Bands of 8 rows of cluster
//           tiles.
// Limit     the matrix units, and the power they draw: what is left to gain is bytes and energy.
// Predicted 1024 cycles a step as rung 5, without its gaps: 1.02 times rung 5 at 4096^3.
// Rules     K and N multiples of 8. kernels/gemm/sm90_gemm.cuh is this kernel with every choice the
//           planner's.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/gemm/ladder/wgmma_tile.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile::ladder {

struct Full {
    static constexpr LadderConfig C = ladder_config(Rung::full);
    static constexpr int b_slice = C.tile_n / C.cluster_m;  // rows of B that one CTA loads for all
    static constexpr unsigned short everyone = (1 << C.cluster_m) - 1;  // CTAs of the cluster, as bits
    static constexpr int epilogue_barrier = 1;                          // named barrier, + consumer
    static_assert(C.tile_k * C.staged_bytes == C.swizzle_bytes, "a row of a tile is one swizzle span");
    static_assert(C.block_m * C.consumer_threads / 128 == C.tile_m, "a wgmma of 64 rows a consumer");
    static_assert(b_slice % 8 == 0, "slices of a swizzled tile begin at whole atoms of 8 rows");
    static_assert(C.tile_n / C.epilogue_columns % C.epilogue_tiles_in_flight == 0,
                  "every tile begins with the same epilogue tile");

    // Shared memory: stages of A then B, epilogue tiles of C, a full and an empty barrier for each stage.
    unsigned base;
    const LadderArguments& args;
    __device__ unsigned a(int stage) const { return base + stage * C.stage_bytes(); }
    __device__ unsigned b(int stage) const { return a(stage) + C.a_bytes(); }
    __device__ unsigned epilogue_tile(int consumer, int i) const {
        return a(C.stages)
               + (consumer * C.epilogue_tiles_in_flight + i % C.epilogue_tiles_in_flight)
                     * C.epilogue_tile_bytes();
    }
    Ring<C.stages> ring{base + C.stages * C.stage_bytes()
                        + C.epilogue_area()};  // rung 5's, written once for all

    __device__ void set_up() const {
        if (threadIdx.x == 0) {
            ring.init(1, C.cluster_m * C.consumer_threads / 32);
            ptx::fence_mbarrier_init();
        }
        ptx::cluster_sync();  // nobody may multicast to barriers that are not there yet
    }

    /// Calls `work(m0, n0)` for every tile of this CTA: cluster tiles in bands of `group` rows, each band
    /// column by column. The tile may lie outside C where the number of rows of tiles is odd: zeros in,
    /// nothing out.
    template <class Work>
    __device__ void for_each_tile(Work work) const {
        const int rows = (args.m - 1) / (C.tile_m * C.cluster_m) + 1, columns = (args.n - 1) / C.tile_n + 1;
        const int rank = ptx::cluster_rank();
        for (StaticTileScheduler<C.cluster_m> tiles{rows, columns}; tiles.more(); tiles.advance()) {
            const int band = tiles.index / columns / C.group * C.group;  // its first row
            const int within = tiles.index - band * columns, height = min(C.group, rows - band);
            work(((band + within % height) * C.cluster_m + rank) * C.tile_m, within / height * C.tile_n);
        }
    }

    /// One thread. `step` counts k-steps over all tiles: stage step % 4, parity of the lap step / 4.
    __device__ void produce(const TensorMap& map_a, const TensorMap& map_b, int k_blocks) const {
        unsigned step = 0;
        const int slice = ptx::cluster_rank() * b_slice;
        for_each_tile([&](int m0, int n0) {
            for (int block = 0; block < k_blocks; ++block, ++step) {
                const auto at = RingPosition<C.stages>::of(step);
                const unsigned stage = at.stage, full = ring.full(stage);
                ring.acquire(at);  // free in both CTAs
                ring.expect(stage, C.stage_bytes());
                ptx::tma_load_2d(a(stage), map_a, block * C.tile_k, m0, full);  // [128][64]
                ptx::tma_load_2d_multicast(b(stage) + slice * C.swizzle_bytes, map_b, block * C.tile_k,
                                           n0 + slice, full, everyone);  // [256][64] by halves
            }
        });
    }

    /// This warp is done with the stage: so it tells the producer of every CTA that fills it.
    __device__ void release(unsigned stage) const { ring.template release_to_cluster<C.cluster_m>(stage); }

    /// One tile: all of K. A stage is given back one step late, while the next products are issued.
    template <Type type>
    __device__ void accumulate(Sums<C.tile_n>& sums, unsigned& step, int k_blocks, int consumer) const {
        for (int block = 0; block < k_blocks; ++block, ++step) {
            const auto at = RingPosition<C.stages>::of(step);
            const unsigned stage = at.stage;
            ring.wait(at);
            multiply_async<type, C.tile_n>(sums, a(stage) + consumer * C.block_m * C.swizzle_bytes, b(stage),
                                           block == 0);
            if (block == 0) continue;
            ptx::wgmma_wait<1>();
            release((step - 1) % C.stages);
        }
        ptx::wgmma_wait<0>();
        pin(sums);
        release((step - 1) % C.stages);
    }

    /// C by epilogue tiles, two in flight, while the producer already loads the next tile.
    template <Type type>
    __device__ void store(const Sums<C.tile_n>& sums, const TensorMap& map_c, int m0, int n0,
                          int consumer) const {
        const bool storer = threadIdx.x % 128 == 0;
#pragma unroll
        for (int i = 0; i < C.tile_n / C.epilogue_columns; ++i) {
            if (storer)
                ptx::tma_store_wait_read<C.epilogue_tiles_in_flight
                                         - 1>();  // this epilogue tile's last store
            ptx::named_barrier_sync(epilogue_barrier + consumer, 128);
            write_epilogue_tile<type>(sums, i * C.epilogue_columns, epilogue_tile(consumer, i));
            ptx::fence_async_proxy();
            ptx::named_barrier_sync(epilogue_barrier + consumer, 128);
            if (!storer) continue;
            ptx::tma_store_2d(map_c, epilogue_tile(consumer, i), n0 + i * C.epilogue_columns, m0);
            ptx::tma_store_commit();
        }
    }

    template <Type type>
    __device__ void consume(const TensorMap& map_c, int k_blocks, int consumer) const {
        unsigned step = 0;
        for_each_tile([&](int m0, int n0) {
            Sums<C.tile_n> sums;
            accumulate<type>(sums, step, k_blocks, consumer);
            store<type>(sums, map_c, m0 + consumer * C.block_m, n0, consumer);
        });
        if (threadIdx.x % 128 == 0) ptx::tma_store_wait_read<0>();  // shared memory must outlive the reading
    }
};

template <Type type>
__global__ void __launch_bounds__(Full::C.threads(), Full::C.ctas_per_sm)
    full(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
         const __grid_constant__ TensorMap map_c, const __grid_constant__ LadderArguments args) {
    constexpr LadderConfig C = Full::C;
    extern __shared__ unsigned char memory[];
    const Full f{(ptx::shared_address(memory) + C.tile_alignment - 1) & ~(C.tile_alignment - 1), args};
    f.set_up();
    const int k_blocks = (args.k - 1) / C.tile_k + 1;
    const int role = warpgroup();
    if (role == 0) {
        if (begin_producer<ladder_producer_registers>()) f.produce(map_a, map_b, k_blocks);
        __syncwarp();
    } else {
        begin_consumer<ladder_consumer_registers>();
        f.consume<type>(map_c, k_blocks, role - 1);
    }
    ptx::cluster_sync();  // a peer may still multicast into this CTA or arrive on its barriers
}

}  // namespace rooftile::ladder
