// C[M x N] = A[M x K] * B[K x N] on Hopper: bf16 or fp16 in and out, fp32 sums.
//
// One CTA has one producer warpgroup and 1-3 consumer warpgroups. The producer's one thread keeps a ring
// of `stages` tiles of A and B full by TMA; consumers multiply each tile with wgmma, one step running
// while the next is issued, and hand the stage back. The grid is persistent: CTAs (or clusters of them)
// walk the tiles of C in a given order, so the ring runs on into the next tile while this one is stored.
// C goes from registers through swizzled slabs of shared memory to TMA stores. Where registers allow it the
// finished tile waits in C's own type, and its stores stand between the products of the next tile's first steps
// (deferred_store): the matrix units do not wait for them.
//
// Cooperative: every consumer warpgroup takes tile_m / consumer_warpgroups rows of each tile.
// Ping-pong: two consumer warpgroups own alternate tiles, so one stores while the other multiplies.
// Cluster: CTAs in one column of tiles (cluster_m) share B, in one row (cluster_n) share A: each loads a
// slice and multicasts it.
// Split-K: a cluster's CTAs also stand in split_k parts, each of which sums its part of the K loop for the
// same tiles. At the end of a tile every CTA leaves its fp32 sums in its ring; then each part reads its share
// of the tile's columns from all parts, adds them in the order of the parts, and stores them. Neither timing
// nor the place of a CTA can change a bit of C.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/sm90_gemm_config.hpp"
#include "kernels/gemm/tile_order.cuh"
#include "kernels/ptx/cluster_memory.cuh"
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
    static_assert(C.cluster_ctas() <= 8, "the largest portable cluster");
    static_assert(C.split_k == 1 || C.schedule == Schedule::cooperative,
                  "the parts' sums take the whole ring");
    static_assert(C.split_k == 1 || C.tile_n % (8 * C.split_k) == 0, "each part stores whole 8x8 matrices");
    static_assert(C.exchange_bytes() <= C.stages * C.stage_bytes(), "the ring holds a tile's fp32 sums");
    static_assert(!C.deferred_store || (C.schedule == Schedule::cooperative && C.split_k == 1 && C.tma_store),
                  "a deferred store needs its warpgroup on every tile, whole sums, and TMA");
    static_assert(C.threads() <= 1024 && C.stages >= 2, "CTA size; a ring needs two stages");
    return true;
}

template <Sm90GemmConfig C>
struct Sm90Gemm {
    static_assert(obeys_the_hardware<C>());
    static constexpr int peers = C.cluster_m * C.cluster_n;  // CTAs that share operands, one part of K
    static constexpr int cluster_size = C.cluster_ctas();
    static constexpr int k_steps_per_stage = C.tile_k / Sm90GemmConfig::wgmma_k;
    static constexpr int mn_box_bytes =
        C.tile_k * Sm90GemmConfig::swizzle_bytes;  // [tile_k][64] of an mn-major tile
    static constexpr int warps_per_stage =
        4 * (C.schedule == Schedule::pingpong ? 1 : C.consumer_warpgroups);  // that release it in each CTA

    /// Of positive integers, without the sum that overflows near 2^31.
    static __device__ int ceil_div(int x, int y) { return (x - 1) / y + 1; }

    // Named barriers; 0 is __syncthreads.
    static constexpr int turn_barrier = 4;  // + warpgroup: ping-pong's "your turn to multiply"
    static constexpr int ring_barrier = 6;  // split-K: "no wgmma reads the ring any more"

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
        /// Split-K, a phase a tile each: all sums of the cluster are written; all are read.
        __device__ unsigned exchange() const { return empty(0) + C.stages * Sm90GemmConfig::barrier_bytes; }
        __device__ unsigned exchanged() const { return exchange() + Sm90GemmConfig::barrier_bytes; }
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
        int rank;           // of this CTA among the peers of its part
        int part;           // of K
        int rows, columns;  // in cluster tiles
        int index, step;
        __device__ explicit Walk(const GemmArguments& arguments)
            : args(arguments),
              rank(cluster_size > 1 ? static_cast<int>(ptx::cluster_rank()) : 0),
              part(0),
              rows(ceil_div(args.m, C.cluster_m * C.tile_m)),
              columns(ceil_div(args.n, C.cluster_n * C.tile_n)),
              index(blockIdx.x / cluster_size),
              step(gridDim.x / cluster_size) {
            if constexpr (C.split_k > 1) {
                part = rank / peers;
                rank %= peers;
            }
        }
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

    /// Blocks of the K loop, tile_k long, that a CTA multiplies.
    struct Blocks {
        int first = 0, count;
        __device__ Blocks(const GemmArguments& args, int part) : count(ceil_div(args.k, C.tile_k)) {
            if constexpr (C.split_k > 1) {
                const int all = count, most = ceil_div(all, C.split_k);
                first = part * most;
                // A part that K is too short for takes one block beyond the end: TMA fills it with zeros.
                count = max(1, min(most, all - first));
            }
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
        Ring ring;
        Walk walk(args);
        const Blocks k(args, walk.part);
        const unsigned short everyone = ((1 << peers) - 1) << walk.part * peers;
        [[maybe_unused]] unsigned turn = 1;  // nothing to wait for before the first tile
        for (; walk.more(); walk.advance()) {
            int m, n;
            walk.origin(m, n);
            // The last tile's sums lie in the ring until the whole cluster has read them.
            if constexpr (C.split_k > 1) ptx::mbarrier_wait(shared.exchanged(), turn);
            turn ^= 1;
            for (int block = k.first; block < k.first + k.count; ++block, ring.advance()) {
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

    /// Hands a stage back to the producers that fill it: each warp says so to every peer of its part.
    static __device__ void release(const Shared& shared, int stage, int part) {
        const unsigned lane = threadIdx.x % 32;
        if constexpr (peers == 1) {
            if (lane == 0) ptx::mbarrier_arrive(shared.empty(stage));
        } else if (lane < peers) {
            ptx::mbarrier_arrive_remote(shared.empty(stage), part * peers + lane);
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

    /// Not for the sums' sake: a wgmma can start them anew. Registers that are written here are free from
    /// publish() to the next tile, and the exchange wants them; else ptxas holds them through it, and spills.
    static __device__ void clear(Accumulators& sums) {
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
            for (int j = 0; j < n_accumulators; ++j) sums[i][j] = 0;
    }

    /// One step of the K loop: this stage's products are issued, then the stage before, whose products are done
    /// by then, goes back to the producers.
    static __device__ void step(Accumulators& sums, const Shared& shared, Ring& ring, int& previous,
                                int first_row, int part, bool first) {
        ptx::mbarrier_wait(shared.full(ring.stage), ring.parity);
        pin(sums);
        ptx::wgmma_fence();
        multiply(sums, shared, ring.stage, first_row, C.split_k == 1 && first);
        ptx::wgmma_commit();
        pin(sums);
        if (!first) {
            ptx::wgmma_wait<1>();
            release(shared, previous, part);
        }
        previous = ring.stage;
        ring.advance();
    }

    /// The last products of a tile: until they are done, and their stage is handed back.
    static __device__ void drain(Accumulators& sums, const Shared& shared, int previous, int part) {
        ptx::wgmma_wait<0>();
        pin(sums);
        release(shared, previous, part);
    }

    /// What a CTA stores of a tile, share_n columns wide: pairs() gives a thread's values of the i-th wgmma in
    /// C's type, two columns a register, from accumulator j of the share on.
    struct OwnSums {
        const Accumulators& sums;
        template <int count>
        __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
            for (int e = 0; e < count; ++e)
                to[e] = ptx::pack2<C.type>(sums[i][j + 2 * e], sums[i][j + 2 * e + 1]);
        }
    };

    /// The same of a tile that is finished and not yet stored.
    struct KeptSums {
        unsigned kept[C.wgmma_rows()][n_accumulators / 2];
        __device__ void keep(const Accumulators& sums) {
#pragma unroll
            for (int i = 0; i < C.wgmma_rows(); ++i) OwnSums{sums}.pairs(kept[i], i, 0);
        }
        template <int count>
        __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
            for (int e = 0; e < count; ++e) to[e] = kept[i][j / 2 + e];
        }
    };

    /// Split-K: the same from the parts of K. Every thread has left its accumulators in its own CTA's ring,
    /// four at a time in slots [slot][thread]; what it stores is the sum over that thread of every part, in
    /// the order of the parts.
    struct SumsOfParts {
        static constexpr int slot_bytes = 16 * C.consumer_warpgroups * Sm90GemmConfig::warpgroup_threads;
        unsigned from[C.split_k];  // this thread's first slot of the share, in every part

        static __device__ unsigned first_slot(const Shared& shared) {
            return shared.base + 16 * (threadIdx.x - Sm90GemmConfig::warpgroup_threads);
        }
        __device__ SumsOfParts(const Shared& shared, const Walk& walk) {
            constexpr int share_bytes = C.share_n() / 8 * slot_bytes;
#pragma unroll
            for (int p = 0; p < C.split_k; ++p)
                from[p] =
                    ptx::map_to_rank(first_slot(shared) + walk.part * share_bytes, p * peers + walk.rank);
        }
        template <int count>
        __device__ void pairs(unsigned (&to)[count], int i, int j) const {
            float d[2 * count];
            take(d, i, j);
#pragma unroll
            for (int e = 0; e < count; ++e) to[e] = ptx::pack2<C.type>(d[2 * e], d[2 * e + 1]);
        }
        template <int count>
        __device__ void take(float (&d)[count], int i, int j) const {
            constexpr int width = count < 4 ? count : 4;
#pragma unroll
            for (int e = 0; e < count; e += width) {
                const int accumulator = i * n_accumulators + j + e;
                const int offset = accumulator / 4 * slot_bytes + accumulator % 4 * 4;
                ptx::load_cluster<width>(d + e, from[0] + offset);
#pragma unroll
                for (int p = 1; p < C.split_k; ++p) {
                    float x[width];
                    ptx::load_cluster<width>(x, from[p] + offset);
#pragma unroll
                    for (int k = 0; k < width; ++k) d[e + k] += x[k];
                }
            }
        }
    };

    /// Leaves this thread's sums in the ring and waits until every CTA of the cluster has.
    static __device__ void publish(const Accumulators& sums, const Shared& shared, unsigned turn) {
        const unsigned lane = threadIdx.x % 32;
        const unsigned slots = SumsOfParts::first_slot(shared);
        // Until here another warp's wgmma may read the ring.
        ptx::named_barrier_sync(ring_barrier, C.consumer_warpgroups * Sm90GemmConfig::warpgroup_threads);
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
            for (int j = 0; j < n_accumulators; j += 4)
                ptx::store_shared_4(slots + (i * n_accumulators + j) / 4 * SumsOfParts::slot_bytes,
                                    &sums[i][j]);
        __syncwarp();
        if (lane < cluster_size) ptx::mbarrier_arrive_remote_release(shared.exchange(), lane);
        ptx::mbarrier_wait_cluster(shared.exchange(), turn);
    }

    /// Tells the cluster's producers that this warp has read what it needs: TMA may refill the rings.
    static __device__ void end_exchange(const Shared& shared) {
        const unsigned lane = threadIdx.x % 32;
        ptx::fence_async_proxy();
        __syncwarp();
        if (lane < cluster_size) ptx::mbarrier_arrive_remote(shared.exchanged(), lane);
    }

    /// Where a warpgroup's stores of C go.
    struct Target {
        const TensorMap& map_c;
        const Shared& shared;
        int warpgroup;
        /// The slab to use next; goes on from tile to tile: with an odd number of slabs a tile ends on the one
        /// that a fresh count would overwrite first.
        int slab = 0;
        int m = 0, n = 0;  ///< of the tile's first element
    };
    static constexpr int slabs_of_a_row = C.share_n() / C.slab_n();
    static constexpr int slabs = C.wgmma_rows() * slabs_of_a_row;

    /// Slab `s` of a tile, [64][slab_n]: registers -> swizzled shared memory -> TMA. Each warp stores its own 16
    /// rows and waits for no other warp.
    template <class Sums>
    static __device__ void store_slab(const Sums& sums, Target& target, int s) {
        constexpr int slab_n = C.slab_n();
        constexpr int row_bytes = slab_n * Sm90GemmConfig::element_bytes;
        constexpr unsigned swizzle_mask =
            row_bytes / 16 - 1;  // 16-byte chunks of a row, xored with address bits 7-9
        const int i = s / slabs_of_a_row, column = s % slabs_of_a_row * slab_n;
        const int warp = ptx::warp_uniform(threadIdx.x % Sm90GemmConfig::warpgroup_threads / 32);
        const int lane = threadIdx.x % 32;
        const int first_row = warp * Sm90GemmConfig::warp_rows;
        const unsigned row = first_row + lane % 16;  // this lane's row address for stmatrix
        const unsigned to = target.shared.slab(target.warpgroup, target.slab);
        unsigned pairs[slab_n / 4];
        sums.pairs(pairs, i, column / 2);
        // The store that last read this slab must be done with it before anyone overwrites it.
        if (ptx::elect_one()) ptx::tma_store_wait_read<Sm90GemmConfig::slabs_in_flight - 1>();
        __syncwarp();
        if constexpr (slab_n == 8) {
            ptx::store_matrix_x2(to + row * row_bytes, pairs[0], pairs[1]);
        } else {
#pragma unroll
            for (int j = 0; j < slab_n; j += 16) {
                const unsigned* d = &pairs[j / 4];
                const unsigned offset = row * row_bytes + (j * 2 + lane / 16 * 16);
                ptx::store_matrix_x4(to + (offset ^ ((offset >> 7 & swizzle_mask) << 4)), d[0], d[1], d[2],
                                     d[3]);
            }
        }
        ptx::fence_async_proxy();
        __syncwarp();
        if (ptx::elect_one()) {  // the same lane every time: a lane waits for its own stores only
            ptx::tma_store_2d(target.map_c, to + first_row * row_bytes, target.n + column,
                              target.m + 64 * i + first_row);
            ptx::tma_store_commit();
        }
        target.slab = (target.slab + 1) % Sm90GemmConfig::slabs_in_flight;
    }

    template <class Sums>
    static __device__ void store_by_tma(const Sums& sums, Target& target) {
#pragma unroll
        for (int s = 0; s < slabs; ++s) store_slab(sums, target, s);
    }

    /// C straight from registers, for an ldc that no tensor map can describe: two bytes at a time.
    template <class Sums>
    static __device__ void store_by_element(const Sums& sums, const GemmArguments& args, int m, int n) {
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
                for (int j = 0; j < C.share_n() / 8; ++j) {
                    unsigned pair[1];
                    sums.pairs(pair, i, 4 * j + 2 * half);
                    const unsigned x = column + 8 * j;
                    if (x < columns) line[x] = static_cast<unsigned short>(pair[0]);
                    if (x + 1 < columns) line[x + 1] = static_cast<unsigned short>(pair[0] >> 16);
                }
            }
        }
    }

    template <class Sums>
    static __device__ void store(const Sums& sums, Target& target, const GemmArguments& args, int m, int n) {
        target.m = m;
        target.n = n;
        if constexpr (C.tma_store) store_by_tma(sums, target);
        else store_by_element(sums, args, m, n);
    }

    /// All tiles of one consumer warpgroup, each stored when its products are done.
    static __device__ void consume(const TensorMap& map_c, const GemmArguments& args, const Shared& shared,
                                   int warpgroup) {
        constexpr bool pingpong = C.schedule == Schedule::pingpong;
        const int first_row = pingpong ? 0 : warpgroup * C.warpgroup_m();
        Ring ring;
        Walk walk(args);
        const int k_blocks = Blocks(args, walk.part).count;
        Target target{map_c, shared, warpgroup};
        [[maybe_unused]] unsigned turn = 0;
        if (pingpong && warpgroup == 1) {  // the second tile is this warpgroup's first
            ring.skip(k_blocks);
            walk.advance();
        }
        for (bool first = true; walk.more(); first = false) {
            if (pingpong && !(first && warpgroup == 0))
                ptx::named_barrier_sync(turn_barrier + warpgroup, 2 * Sm90GemmConfig::warpgroup_threads);
            Accumulators sums;
            if constexpr (C.split_k > 1) clear(sums);
            int previous = 0, m, n;
            step(sums, shared, ring, previous, first_row, walk.part, true);
            walk.origin(m, n);  // beside the first products
            for (int block = 1; block < k_blocks; ++block)
                step(sums, shared, ring, previous, first_row, walk.part, false);
            // The other's products line up behind the last of these, which are still running.
            if (pingpong && walk.more_after_this())
                ptx::named_barrier_arrive(turn_barrier + 1 - warpgroup,
                                          2 * Sm90GemmConfig::warpgroup_threads);
            drain(sums, shared, previous, walk.part);
            if constexpr (C.split_k > 1) {
                publish(sums, shared, turn);
                turn ^= 1;
                store(SumsOfParts(shared, walk), target, args, m + first_row, n + walk.part * C.share_n());
                end_exchange(shared);
            } else {
                store(OwnSums{sums}, target, args, m + first_row, n);
            }
            walk.advance();
            if (pingpong) {  // over the other warpgroup's tile
                ring.skip(k_blocks);
                walk.advance();
            }
        }
        if (C.tma_store && ptx::elect_one()) ptx::tma_store_wait_read<0>();
    }

    /// The same with deferred_store: the slabs of the tile before go out between this tile's first steps.
    static __device__ void consume_deferring(const TensorMap& map_c, const GemmArguments& args,
                                             const Shared& shared, int warpgroup) {
        const int first_row = warpgroup * C.warpgroup_m();
        Ring ring;
        Walk walk(args);
        const int k_blocks = Blocks(args, walk.part).count;
        Target target{map_c, shared, warpgroup};
        KeptSums kept;
        for (bool first = true; walk.more(); walk.advance(), first = false) {
            Accumulators sums;
            int previous = 0, block = 0, m, n;
#pragma unroll
            for (int s = 0; s < slabs; ++s) {
                if (block < k_blocks) step(sums, shared, ring, previous, first_row, walk.part, s == 0);
                ++block;
                if (s == 0) walk.origin(m, n);
                if (!first) store_slab(kept, target, s);
            }
            for (; block < k_blocks; ++block) step(sums, shared, ring, previous, first_row, walk.part, false);
            drain(sums, shared, previous, walk.part);
            kept.keep(sums);
            target.m = m + first_row;
            target.n = n;
        }
        store_by_tma(kept, target);  // a CTA of the grid has one tile at least
        if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    }

    /// One thread readies the barriers for everybody in the cluster.
    static __device__ void set_up(const Shared& shared) {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < C.stages; ++stage) {
                ptx::mbarrier_init(shared.full(stage), 1);
                ptx::mbarrier_init(shared.empty(stage), warps_per_stage * peers);
            }
            if constexpr (C.split_k > 1) {
                ptx::mbarrier_init(shared.exchange(), warps_per_stage * cluster_size);
                ptx::mbarrier_init(shared.exchanged(), warps_per_stage * cluster_size);
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
    // Launched as a programmatic dependent, all up to here ran beside the end of the kernel before; nothing that
    // it writes or reads is touched before the wait. The next kernel may do the same as soon as an SM is free.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();

    const int warpgroup = ptx::warp_uniform(threadIdx.x / Sm90GemmConfig::warpgroup_threads);
    if (warpgroup == 0) {
        if constexpr (C.producer_registers > 0) ptx::release_registers<C.producer_registers>();
        if (ptx::warp_uniform(threadIdx.x / 32) == 0 && ptx::elect_one())
            Gemm::produce(map_a, map_b, args, shared);
    } else {
        if constexpr (C.consumer_registers > 0) ptx::take_registers<C.consumer_registers>();
        if constexpr (C.deferred_store) Gemm::consume_deferring(map_c, args, shared, warpgroup - 1);
        else Gemm::consume(map_c, args, shared, warpgroup - 1);
    }
    // No CTA may leave while a peer can still arrive on its barriers or multicast into its stages.
    if constexpr (Gemm::cluster_size > 1) {
        __syncwarp();
        ptx::cluster_sync();
    }
}

}  // namespace rooftile
