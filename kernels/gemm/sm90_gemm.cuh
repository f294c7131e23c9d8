// C[M x N] = A[M x K] * B[K x N] on Hopper: bf16 or fp16 in and out, fp32 sums.
//
// One CTA has one producer warpgroup and 1-3 consumer warpgroups. The producer's one thread keeps a ring
// of `stages` tiles of A and B full by TMA; consumers multiply each tile with wgmma, one step running
// while the next is issued, and hand the stage back. The grid is persistent: CTAs (or clusters of them)
// walk the tiles of C in a given order, so the ring runs on into the next tile while this one is stored.
// C goes from registers through swizzled slabs of shared memory to TMA stores.
//
// Cooperative: every consumer warpgroup takes tile_m / consumer_warpgroups rows of each tile.
// Ping-pong: two consumer warpgroups own alternate tiles, so one stores while the other multiplies.
// Cluster: CTAs in one column of tiles (cluster_m) share B, in one row (cluster_n) share A: each loads a
// slice and multicasts it.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/sm90_gemm_config.hpp"
#include "kernels/gemm/tile_order.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace rooftile {

template <Sm90GemmConfig C>
constexpr bool obeys_the_hardware() {
    static_assert(C.tile_m % Sm90GemmConfig::wgmma_m == 0, "a wgmma has 64 rows");
    static_assert(C.warpgroup_m() % Sm90GemmConfig::wgmma_m == 0, "each warpgroup owns whole wgmmas");
    static_assert(C.tile_n % 16 == 0 && C.tile_n <= 256, "wgmma N, in steps that stmatrix.x4 stores");
    static_assert(C.tile_k * Sm90GemmConfig::element_bytes == Sm90GemmConfig::swizzle_bytes,
                  "a row of a k-major tile is one 128-byte swizzle span");
    static_assert(C.a_major == Major::k || C.tile_m % (64 * C.cluster_n) == 0, "an m-major box is 64 wide");
    static_assert(C.b_major == Major::k || C.tile_n % (64 * C.cluster_m) == 0, "an n-major box is 64 wide");
    static_assert(C.tile_n % (8 * C.cluster_m) == 0,
                  "slices of a swizzled tile begin at whole atoms of 8 rows");
    static_assert(C.schedule == Schedule::cooperative || C.consumer_warpgroups == 2, "ping-pong is for two");
    static_assert(C.cluster_m == 1 || C.cluster_n == 1, "a cluster shares one operand");
    static_assert(C.threads() <= 1024 && C.stages >= 2, "CTA size; a ring needs two stages");
    return true;
}

template <Sm90GemmConfig C>
struct Sm90Gemm {
    static_assert(obeys_the_hardware<C>());
    static constexpr int cluster_size = C.cluster_m * C.cluster_n;
    static constexpr int k_steps_per_stage = C.tile_k / Sm90GemmConfig::wgmma_k;
    static constexpr int mn_box_bytes =
        C.tile_k * Sm90GemmConfig::swizzle_bytes;  // [tile_k][64] of an mn-major tile
    static constexpr int warps_per_stage =
        4 * (C.schedule == Schedule::pingpong ? 1 : C.consumer_warpgroups);  // that release it in each CTA

    /// Of positive integers, without the sum that overflows near 2^31.
    static __device__ int ceil_div(int x, int y) { return (x - 1) / y + 1; }

    // Named barriers; 0 is __syncthreads.
    static constexpr int slab_barrier = 1;  // + warpgroup
    static constexpr int turn_barrier = 4;  // + warpgroup: ping-pong's "your turn to multiply"

    // Shared memory from the first 1024-byte boundary: stages of A then B, slabs, barriers.
    struct Shared {
        unsigned base;
        __device__ unsigned a(int stage) const { return base + stage * C.stage_bytes(); }
        __device__ unsigned b(int stage) const { return a(stage) + C.a_bytes(); }
        __device__ unsigned slab(int warpgroup, int i) const {
            return base + C.stages * C.stage_bytes()
                   + (warpgroup * Sm90GemmConfig::slabs_in_flight + i) * C.slab_bytes();
        }
        __device__ unsigned full(int stage) const {
            return base + C.stages * C.stage_bytes() + C.epilogue_bytes()
                   + stage * Sm90GemmConfig::barrier_bytes;
        }
        __device__ unsigned empty(int stage) const {
            return full(stage) + C.stages * Sm90GemmConfig::barrier_bytes;
        }
    };

    // A position in the ring: which stage, and the parity of the lap.
    struct Ring {
        int stage = 0;
        unsigned parity = 0;
        __device__ void advance() {
            if (++stage == C.stages) {
                stage = 0;
                parity ^= 1;
            }
        }
        __device__ void skip(int steps) {
            const int position = stage + steps;
            parity ^= (position / C.stages) & 1;
            stage = position % C.stages;
        }
    };

    // The tiles of C as this CTA's cluster meets them.
    struct Walk {
        const GemmArguments& args;
        int rank;           // of this CTA in its cluster
        int rows, columns;  // in cluster tiles
        int index, step;
        __device__ explicit Walk(const GemmArguments& arguments)
            : args(arguments),
              rank(cluster_size > 1 ? static_cast<int>(ptx::cluster_rank()) : 0),
              rows(ceil_div(args.m, C.cluster_m * C.tile_m)),
              columns(ceil_div(args.n, C.cluster_n * C.tile_n)),
              index(blockIdx.x / cluster_size),
              step(gridDim.x / cluster_size) {}
        __device__ bool more() const { return index < rows * columns; }
        __device__ bool more_after_this() const { return index + step < rows * columns; }
        __device__ void advance() { index += step; }
        /// First row and column of C that this CTA computes; may lie outside C where the tile count is odd.
        __device__ void origin(int& m, int& n) const {
            const TileCoordinate t =
                tile_at(index, rows, columns, static_cast<Order>(args.order), args.group);
            m = (t.row * C.cluster_m + rank / C.cluster_n) * C.tile_m;
            n = (t.column * C.cluster_n + rank % C.cluster_n) * C.tile_n;
        }
    };

    /// One operand's tile [extent][tile_k] of the stage at `shared`. With `peers` CTAs sharing it, this CTA
    /// loads slice `slice` of the MN extent and sends it to all of `ctas`.
    template <Major major, int extent, int peers>
    static __device__ void load_operand(const TensorMap& map, unsigned shared, unsigned barrier, int mn,
                                        int k, int slice, unsigned short ctas) {
        constexpr int slice_extent = extent / peers;
        if constexpr (peers == 1) slice = 0;
        mn += slice * slice_extent;
        const auto load = [&](unsigned to, int x, int y) {
            if constexpr (peers == 1) ptx::tma_load_2d(to, map, x, y, barrier);
            else ptx::tma_load_2d_multicast(to, map, x, y, barrier, ctas);
        };
        if constexpr (major == Major::k) {
            load(shared + slice * slice_extent * Sm90GemmConfig::swizzle_bytes, k, mn);  // [slice_extent][64]
        } else {
#pragma unroll
            for (int i = 0; i < slice_extent / 64; ++i)
                load(shared + (slice * slice_extent / 64 + i) * mn_box_bytes, mn + 64 * i,
                     k);  // [64 k][64 mn]
        }
    }

    static __device__ void produce(const TensorMap& map_a, const TensorMap& map_b, const GemmArguments& args,
                                   const Shared& shared) {
        const int k_blocks = ceil_div(args.k, C.tile_k);
        constexpr unsigned short everyone = (1 << cluster_size) - 1;
        Ring ring;
        for (Walk walk(args); walk.more(); walk.advance()) {
            int m, n;
            walk.origin(m, n);
            for (int block = 0; block < k_blocks; ++block, ring.advance()) {
                ptx::mbarrier_wait(shared.empty(ring.stage), ring.parity ^ 1);  // first lap passes at once
                const unsigned full = shared.full(ring.stage);
                ptx::mbarrier_arrive_expect(full, C.stage_bytes());
                load_operand<C.a_major, C.tile_m, C.cluster_n>(map_a, shared.a(ring.stage), full, m,
                                                               block * C.tile_k, walk.rank, everyone);
                load_operand<C.b_major, C.tile_n, C.cluster_m>(map_b, shared.b(ring.stage), full, n,
                                                               block * C.tile_k, walk.rank, everyone);
            }
        }
    }

    /// Hands a stage back to the producers that fill it: each warp says so to every CTA of the cluster.
    static __device__ void release(const Shared& shared, int stage) {
        const unsigned lane = threadIdx.x % 32;
        if constexpr (cluster_size == 1) {
            if (lane == 0) ptx::mbarrier_arrive(shared.empty(stage));
        } else if (lane < cluster_size) {
            ptx::mbarrier_arrive_remote(shared.empty(stage), lane);
        }
    }

    template <Major major>
    static __device__ unsigned long long descriptor(unsigned tile, int mn) {
        constexpr int eight_rows = 8 * Sm90GemmConfig::swizzle_bytes;
        if constexpr (major == Major::k)
            return ptx::matrix_descriptor(tile + mn * Sm90GemmConfig::swizzle_bytes, 16, eight_rows);
        else return ptx::matrix_descriptor(tile + mn / 64 * mn_box_bytes, mn_box_bytes, eight_rows);
    }

    static constexpr int n_accumulators = C.tile_n / 2;  // a thread, of one 64-row wgmma
    using Accumulators = float[C.wgmma_rows()][n_accumulators];

    /// Issues the products of one stage: [warpgroup_m x tile_k] * [tile_k x tile_n].
    static __device__ void multiply(Accumulators& sums, const Shared& shared, int stage, int first_row,
                                    bool fresh) {
        // Bytes >> 4 from one 16-wide k-step to the next: within a swizzle span, or 16 rows of 128 B further.
        constexpr int a_step = (C.a_major == Major::k ? 32 : 16 * Sm90GemmConfig::swizzle_bytes) >> 4;
        constexpr int b_step = (C.b_major == Major::k ? 32 : 16 * Sm90GemmConfig::swizzle_bytes) >> 4;
        const unsigned long long b = descriptor<C.b_major>(shared.b(stage), 0);
#pragma unroll
        for (int step = 0; step < k_steps_per_stage; ++step) {
#pragma unroll
            for (int i = 0; i < C.wgmma_rows(); ++i) {
                const unsigned long long a = descriptor<C.a_major>(shared.a(stage), first_row + 64 * i);
                ptx::wgmma<C.tile_n, C.type, C.a_major, C.b_major>(sums[i], a + step * a_step,
                                                                   b + step * b_step, step > 0 || !fresh);
            }
        }
    }

    static __device__ void pin(Accumulators& sums) {
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
            for (int j = 0; j < n_accumulators; ++j) ptx::wgmma_pin(sums[i][j]);
    }

    /// The whole K loop of one tile. A stage is released one step late: its wgmmas still run while the next
    /// stage's are issued.
    static __device__ void accumulate(Accumulators& sums, const Shared& shared, Ring& ring, int k_blocks,
                                      int first_row) {
        int previous = 0;
        for (int block = 0; block < k_blocks; ++block, ring.advance()) {
            ptx::mbarrier_wait(shared.full(ring.stage), ring.parity);
            pin(sums);
            ptx::wgmma_fence();
            multiply(sums, shared, ring.stage, first_row, block == 0);
            ptx::wgmma_commit();
            pin(sums);
            if (block > 0) {
                ptx::wgmma_wait<1>();
                release(shared, previous);
            }
            previous = ring.stage;
        }
        ptx::wgmma_wait<0>();
        pin(sums);
        release(shared, previous);
    }

    /// C by slabs [64][slab_n]: registers -> swizzled shared memory -> TMA, two slabs in flight. `slab` is the
    /// next to use and goes on from tile to tile: with an odd number of slabs a tile ends on the one that a
    /// fresh count would overwrite first.
    static __device__ void store_by_tma(const Accumulators& sums, const TensorMap& map_c,
                                        const Shared& shared, int warpgroup, int& slab, int m, int n) {
        constexpr int slab_n = C.slab_n();
        constexpr int row_bytes = slab_n * Sm90GemmConfig::element_bytes;
        constexpr unsigned swizzle_mask =
            row_bytes / 16 - 1;  // 16-byte chunks of a row, xored with address bits 7-9
        const int thread = threadIdx.x % Sm90GemmConfig::warpgroup_threads;
        const int warp = thread / 32, lane = thread % 32;
        const unsigned row = warp * 16 + lane % 16;  // this lane's row address for stmatrix
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
            for (int column = 0; column < C.tile_n; column += slab_n) {
                const unsigned to = shared.slab(warpgroup, slab);
                // The store that last read this slab must be done with it before anyone overwrites it.
                if (thread == 0) ptx::tma_store_wait_read<Sm90GemmConfig::slabs_in_flight - 1>();
                ptx::named_barrier_sync(slab_barrier + warpgroup, Sm90GemmConfig::warpgroup_threads);
#pragma unroll
                for (int j = 0; j < slab_n; j += 16) {
                    const float* d = &sums[i][(column + j) / 2];
                    const unsigned offset = row * row_bytes + (j * 2 + lane / 16 * 16);
                    ptx::store_matrix_x4(to + (offset ^ ((offset >> 7 & swizzle_mask) << 4)),
                                         ptx::pack2<C.type>(d[0], d[1]), ptx::pack2<C.type>(d[2], d[3]),
                                         ptx::pack2<C.type>(d[4], d[5]), ptx::pack2<C.type>(d[6], d[7]));
                }
                ptx::fence_async_proxy();
                ptx::named_barrier_sync(slab_barrier + warpgroup, Sm90GemmConfig::warpgroup_threads);
                if (thread == 0) {
                    ptx::tma_store_2d(map_c, to, n + column, m + 64 * i);
                    ptx::tma_store_commit();
                }
                slab = (slab + 1) % Sm90GemmConfig::slabs_in_flight;
            }
        }
    }

    /// C straight from registers, for an ldc that no tensor map can describe: two bytes at a time.
    static __device__ void store_by_element(const Accumulators& sums, const GemmArguments& args, int m,
                                            int n) {
        const int thread = threadIdx.x % Sm90GemmConfig::warpgroup_threads;
        unsigned short* c = static_cast<unsigned short*>(args.c);
        // Unsigned: a tile beyond the last one may begin past 2^31, and still lies outside C.
        const unsigned row = m + thread / 32 * 16 + thread % 32 / 4;
        const unsigned column = n + thread % 4 * 2;
        const unsigned rows = args.m, columns = args.n;
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned r = row + 64 * i + 8 * half;
                if (r >= rows) continue;
                unsigned short* line = c + r * args.ldc;
#pragma unroll
                for (int j = 0; j < C.tile_n / 8; ++j) {
                    const unsigned pair =
                        ptx::pack2<C.type>(sums[i][4 * j + 2 * half], sums[i][4 * j + 2 * half + 1]);
                    const unsigned x = column + 8 * j;
                    if (x < columns) line[x] = static_cast<unsigned short>(pair);
                    if (x + 1 < columns) line[x + 1] = static_cast<unsigned short>(pair >> 16);
                }
            }
        }
    }

    static __device__ void consume(const TensorMap& map_c, const GemmArguments& args, const Shared& shared,
                                   int warpgroup) {
        constexpr bool pingpong = C.schedule == Schedule::pingpong;
        const int k_blocks = ceil_div(args.k, C.tile_k);
        const int first_row = pingpong ? 0 : warpgroup * C.warpgroup_m();
        Ring ring;
        Walk walk(args);
        [[maybe_unused]] int slab = 0;
        if (pingpong && warpgroup == 1) {  // the second tile is this warpgroup's first
            ring.skip(k_blocks);
            walk.advance();
        }
        for (bool first = true; walk.more(); first = false) {
            int m, n;
            walk.origin(m, n);
            if (pingpong && !(first && warpgroup == 0))
                ptx::named_barrier_sync(turn_barrier + warpgroup, 2 * Sm90GemmConfig::warpgroup_threads);
            Accumulators sums;
            accumulate(sums, shared, ring, k_blocks, first_row);
            if (pingpong && walk.more_after_this())
                ptx::named_barrier_arrive(turn_barrier + 1 - warpgroup,
                                          2 * Sm90GemmConfig::warpgroup_threads);
            if constexpr (C.tma_store) store_by_tma(sums, map_c, shared, warpgroup, slab, m + first_row, n);
            else store_by_element(sums, args, m + first_row, n);
            walk.advance();
            if (pingpong) {  // over the other warpgroup's tile
                ring.skip(k_blocks);
                walk.advance();
            }
        }
        if (C.tma_store && threadIdx.x % Sm90GemmConfig::warpgroup_threads == 0)
            ptx::tma_store_wait_read<0>();
    }

    /// One thread readies the barriers for everybody in the cluster.
    static __device__ void set_up(const Shared& shared) {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < C.stages; ++stage) {
                ptx::mbarrier_init(shared.full(stage), 1);
                ptx::mbarrier_init(shared.empty(stage), warps_per_stage * cluster_size);
            }
            ptx::fence_mbarrier_init();
        }
        if constexpr (cluster_size > 1) ptx::cluster_sync();
        else __syncthreads();
    }
};

template <Sm90GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args) {
    using Gemm = Sm90Gemm<C>;
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned mask = Sm90GemmConfig::tile_alignment - 1;
    const typename Gemm::Shared shared{(ptx::shared_address(memory) + mask) & ~mask};
    Gemm::set_up(shared);

    const int warpgroup = ptx::warp_uniform(threadIdx.x / Sm90GemmConfig::warpgroup_threads);
    if (warpgroup == 0) {
        if constexpr (C.producer_registers > 0) ptx::release_registers<C.producer_registers>();
        if (ptx::warp_uniform(threadIdx.x / 32) == 0 && ptx::elect_one())
            Gemm::produce(map_a, map_b, args, shared);
    } else {
        if constexpr (C.consumer_registers > 0) ptx::take_registers<C.consumer_registers>();
        Gemm::consume(map_c, args, shared, warpgroup - 1);
    }
    // No CTA may leave while a peer can still arrive on its barriers or multicast into its stages.
    if constexpr (Gemm::cluster_size > 1) {
        __syncwarp();
        ptx::cluster_sync();
    }
}

}  // namespace rooftile
