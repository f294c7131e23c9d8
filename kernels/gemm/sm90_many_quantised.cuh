// C[M, N] = A[M, K] * W[N, K]^T of many rows, W packed as whole numbers, floats or places in a table of 4 or 8 bits with scales and
// zero points of groups along K.
//
// The products are wgmma's with the weights as its first operand, in registers: C^T = W * A^T. One thread keeps a ring of stages full, a box of
// TMA for A, a bulk copy for each 64 rows of packed weights. Each consumer warpgroup has 64 rows of W: it unpacks a burst of fragments into
// numbers of 16 bits while the burst before is multiplied; at a group's end it multiplies the group's sums by the
// group's scale and adds them to the tile's, while other warpgroups' products run. Zero points that are no whole numbers are multiplied by the
// sums of the group's A, which the warps beside the producer make by products with ones: what is unpacked stays exact.
//
// A CTA takes whole tiles, as many as every CTA can have, in bands of rows, so that CTAs side by side share rows of A and columns of W in L2.
// What tiles are left are shared out first: units of 128 of K, in even shares, added up by whoever comes last (quantised_store.cuh).
//
// Groups (group_slots): each has rows of A and C and columns of W of its own; where its rows begin is read on the device (kernels/matrix/row_groups.cuh).
//
// Launched so that it may begin during the kernel before it: weights of the first stages are asked for at once, and so must not be
// written by that kernel; all else waits for its end.
#pragma once

#include "kernels/gemm/quantised_fragment.cuh"
#include "kernels/gemm/quantised_store.cuh"
#include "kernels/gemm/sm90_many_quantised_config.hpp"
#include "kernels/matrix/fragment_products.cuh"
#include "kernels/matrix/row_groups.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/tile_order.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

template <Sm90ManyQuantisedConfig config>
struct Sm90ManyQuantised {
    static constexpr Sm90ManyQuantisedConfig C = config;
    static_assert(C.tile_m % C.row_step == 0 && C.tile_m <= 256, "rows of A are columns of an instruction");
    static_assert(C.tile_n % C.wgmma_m == 0, "a warpgroup has whole blocks of packed weights");
    static_assert(C.stages >= 2, "the next stage is waited for before this one is handed back");
    static_assert(C.bursts() % 2 == 0, "a stage's first burst takes the fragments that its last one leaves");
    static constexpr int sums_barrier = 1;  ///< and the next, one a warpgroup
    static constexpr int table_barrier = sums_barrier + C.warpgroups();
    static constexpr unsigned sums_at = C.stages * C.stage_bytes(), table_at = sums_at + C.sums_bytes(),
                              groups_at = table_at + C.layout.table_bytes(), barriers_at = sums_at + C.reserved_bytes();
    using At = RingPosition<C.stages>;
    using Rings = Ring<C.stages>;
    using Store = QuantisedStore<C.store_shape()>;
    using Sums = typename Store::Sums;
    using Fragment = QuantisedFragment<C.type, C.layout>;
    using Burst = unsigned[C.burst_steps()][4];

    /// Units of one tile, one after the other.
    struct Segment {
        unsigned tile, begin, end;
    };
    /// What this CTA has: of the cut tiles, which are the order's first, its share of units; then whole tiles.
    struct Work {
        RowGroups<config> groups;
        unsigned rows, columns;            ///< tiles
        unsigned units;                    ///< of a tile
        unsigned cut, all, parts;          ///< cut tiles, their units, and the CTAs that share them
        unsigned begin, end, cuts, whole;  ///< of this CTA: units of cut tiles, how many of these it has some of; whole tiles

        __device__ Work(const Sm90ManyQuantisedArguments& p, unsigned base) : groups{base + groups_at} {
            if constexpr (C.grouped()) rows = groups.tiles();
            else rows = (p.m + C.tile_m - 1) / C.tile_m;
            columns = (p.n + C.tile_n - 1) / C.tile_n;
            units = (p.k + C.tile_k - 1) / C.tile_k;
            whole = rows * columns / gridDim.x, cut = rows * columns - whole * gridDim.x;
            all = cut * units, parts = max(1u, min(all, gridDim.x));
            begin = edge(blockIdx.x), end = edge(blockIdx.x + 1);
            cuts = begin == end ? 0 : (end - 1) / units - begin / units + 1;
        }
        __device__ unsigned edge(unsigned part) const {
            return static_cast<unsigned>(static_cast<unsigned long long>(all) * min(part, parts) / parts);
        }
        __device__ unsigned part_of(unsigned unit) const { return static_cast<unsigned>(((unit + 1ull) * parts - 1) / all); }
        __device__ unsigned segments() const { return cuts + whole; }
        __device__ unsigned steps() const { return end - begin + whole * units; }
        __device__ Segment segment(unsigned i) const {
            if (i >= cuts) return {cut + (i - cuts) * gridDim.x + blockIdx.x, 0, units};
            const unsigned tile = begin / units + i, first = tile * units;
            return {tile, i == 0 ? begin - first : 0, min(units, end - first)};
        }
        /// Where a tile begins in A and C, and in W, in blocks of 64 columns, of which it ends before `last_block`.
        struct Origin {
            int row, end_row, column, block, last_block;
        };
        __device__ Origin at(unsigned tile, const Sm90ManyQuantisedArguments& p) const {
            const int blocks = (p.n + QuantisedLayout::block_rows - 1) / QuantisedLayout::block_rows;
            if constexpr (!C.grouped()) {
                const TileCoordinate t = tile_at(tile, rows, columns, Order::grouped, p.band);
                return {t.row * C.tile_m, p.m, t.column * C.tile_n, t.column * C.warpgroups(), blocks};
            }
            const int index = groups.visited(static_cast<int>(tile), static_cast<int>(columns)), place = groups.place_of(index / columns);
            const int before = place == 0 ? 0 : groups.tiles_up_to(place - 1), group = groups.group(place);
            const TileCoordinate t = tile_at(index - before * columns, groups.tiles_up_to(place) - before, columns, Order::grouped, p.band);
            return {groups.first_row(group) + t.row * C.tile_m, groups.first_row(group + 1), t.column * C.tile_n,
                    group * blocks + t.column * C.warpgroups(), (group + 1) * blocks};
        }
    };

    // The thread that fills the ring.
    __device__ static void produce(const TensorMap& map_a, const Sm90ManyQuantisedArguments& p, const Work& work, const Rings& ring,
                                   unsigned base) {
        const int k_blocks = (p.k + QuantisedLayout::block_k - 1) / QuantisedLayout::block_k;
        const auto weights = [&](const typename Work::Origin& tile, unsigned unit, int stage) {
            const int first = tile.block, blocks = min(C.warpgroups(), tile.last_block - first);
            const unsigned to = base + stage * C.stage_bytes() + C.activation_bytes();
            ring.expect(stage, C.activation_bytes() + blocks * C.layout.block_bytes());
            const unsigned char* from =
                p.weights + QuantisedLayout::header_bytes + (static_cast<long long>(first) * k_blocks + unit) * C.layout.block_bytes();
            for (int i = 0; i < blocks; ++i, from += static_cast<long long>(k_blocks) * C.layout.block_bytes()) {
                // Read once where there is one row of tiles.
                const unsigned place = to + i * C.layout.block_bytes();
                if (work.rows == 1) ptx::bulk_load<CachePolicy::evict_first>(place, from, C.layout.block_bytes(), ring.full(stage));
                else ptx::bulk_load<CachePolicy::normal>(place, from, C.layout.block_bytes(), ring.full(stage));
            }
        };
        const auto activations = [&](int row, unsigned unit, int stage) {
            const unsigned to = base + stage * C.stage_bytes();
            const int span = unit * C.spans;
            if constexpr (!C.ragged_k) ptx::tma_load_4d(to, map_a, 0, row, span, 0, ring.full(stage));
            else
                for (int i = 0; i < C.spans; ++i)
                    ptx::tma_load_2d(to + i * C.tile_m * C.span_bytes, map_a, (span + i) * C.span_k, row, ring.full(stage));
        };
        constexpr unsigned early_stages = C.stages < C.early_stages ? C.stages : C.early_stages;
        const Segment first = work.segment(0);
        const typename Work::Origin first_at = work.at(first.tile, p);
        const unsigned early = min(first.end, first.begin + early_stages);
        for (unsigned unit = first.begin; unit < early; ++unit) weights(first_at, unit, unit - first.begin);
        ptx::wait_for_dependencies();
        At at;
        for (unsigned i = 0; i < work.segments(); ++i) {
            const Segment s = work.segment(i);
            const typename Work::Origin tile = work.at(s.tile, p);
            for (unsigned unit = s.begin; unit < s.end; ++unit, at.advance()) {
                if (i > 0 || unit >= early) {
                    ring.acquire(at);
                    weights(tile, unit, at.stage);
                }
                activations(tile.row, unit, at.stage);
            }
        }
    }

    // The warps that sum rows of A, group by group.
    __device__ static void sum_rows(const Work& work, const Rings& ring, const Rings& summed, unsigned base, int warp) {
        constexpr int rows = 16;  // of mma.sync's first operand
        constexpr unsigned one = C.type == Type::bf16 ? 0x3f803f80 : 0x3c003c00;
        const int lane = threadIdx.x % 32;
        At at;
        for (unsigned left = work.steps(); left > 0; --left, at.advance()) {
            ring.wait(at);
            const unsigned stage = base + at.stage * C.stage_bytes();
            for (int first = warp * rows; first < C.tile_m; first += C.summing_warps * rows) {
                const int row = first + lane % rows;
#pragma unroll
                for (int group = 0; group < C.groups(); ++group) {
                    float sums[4] = {};
#pragma unroll
                    for (int i = 0; i < C.group_steps(); ++i) {
                        const int step = group * C.group_steps() + i, span = step / (C.steps / C.spans),
                                  chunk = step % (C.steps / C.spans) * 2;
                        unsigned a[4];
                        ptx::load_matrix_x4(a, stage + (span * C.tile_m + row) * C.span_bytes + ((chunk + lane / rows) ^ row % 8) * 16);
                        ptx::mma<C.type>(sums, a, one, one);
                    }
                    const unsigned to = stage + C.row_sums_at() + (group * C.tile_m + first + lane / 4) * 4;
                    if (lane % 4 == 0) ptx::store_shared_1(to, sums[0]), ptx::store_shared_1(to + 8 * 4, sums[2]);
                }
            }
            __syncwarp();
            if (lane == 0) summed.commit(at.stage);
        }
    }

    /// Of a consumer's thread: where in a stage its warp's weights, scales and zero points are.
    struct Place {
        unsigned weights, scales, zeros;
        __device__ explicit Place(int warp) {
            const int lane = threadIdx.x % 32, row_group = warp % C.warpgroup_warps, row = row_group * 16 + lane / 4;
            const unsigned packed = C.activation_bytes() + warp / C.warpgroup_warps * C.layout.block_bytes();
            weights = packed + row_group * (C.weight_loads() * 512) + lane * 16;
            scales = packed + C.layout.scale_at(0, 0) + row * C.layout.scale_bytes();  // and of the row 8 below it
            zeros = packed + C.layout.zero_at(0, 0) + row * C.layout.zero_bytes();
        }
    };
    /// What passes from one burst's unpacking to the next one's.
    struct Words {
        unsigned packed[4], zero[2];
        unsigned table;  ///< where it is
    };

    __device__ static void unpack(Burst& a, Words& words, const Place& place, unsigned stage, int burst) {
        constexpr int span_steps = C.steps / C.spans, steps_a_load = span_steps / C.weight_loads();
        if constexpr (C.layout.is_whole() && C.layout.bits() == 4) {
            if (burst * C.burst_steps() % C.group_steps() == 0)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    words.zero[i] = Fragment::no_zero;
                    if constexpr (C.layout.zeros == ZeroType::integer)
                        words.zero[i] = Fragment::zero_word(ptx::load_shared_byte(
                            stage + place.zeros + burst * C.burst_steps() / C.group_steps() * QuantisedLayout::block_rows + i * 8));
                }
        }
#pragma unroll
        for (int i = 0; i < C.burst_steps(); ++i) {
            const int step = burst * C.burst_steps() + i, s = step % span_steps;
            if (s % steps_a_load == 0)
                ptx::load_shared_words(words.packed,
                                       stage + place.weights + step / span_steps * (C.layout.weight_bytes() / 2) + s / steps_a_load * 512);
            Fragment::unpack(a[i], words.packed, s % steps_a_load, words.zero, words.table);
        }
    }

    /// Issues a burst's products. `anew`: sums begin with it.
    __device__ static void multiply(float* sums, const Burst& a, unsigned stage, int burst, bool anew) {
        constexpr int bursts_a_span = C.bursts() / C.spans, burst_bytes = C.burst_steps() * C.span_bytes / (C.steps / C.spans);
        const unsigned rows = stage + burst / bursts_a_span * C.tile_m * C.span_bytes + burst % bursts_a_span * burst_bytes;
        multiply_fragments<C.tile_m, C.type>(sums, a, rows, anew);
    }

    /// A group's sums to the tile's: each row of W by its scale, less its zero point times the sums of A's rows.
    __device__ static void add_group(Sums& sums, const float (&part)[C.tile_m / 2], const float (&by)[2], unsigned stage,
                                     const Place& place, int group) {
#pragma unroll
        for (int t = 0; t < C.tile_m / 8; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(part[t * 4 + e], by[e / 2], sums[t][e]);
        if constexpr (C.sums_rows()) {
            const unsigned of_group = stage + place.zeros + group * QuantisedLayout::block_rows * QuantisedLayout::number_bytes;
            const float less[2] = {Fragment::number_at(of_group), Fragment::number_at(of_group + 8 * QuantisedLayout::number_bytes)};
            const unsigned of_rows = stage + C.row_sums_at() + (group * C.tile_m + threadIdx.x % 4 * 2) * 4;
#pragma unroll
            for (int t = 0; t < C.tile_m / 8; ++t) {
                const float rows[2] = {ptx::load_shared_float(of_rows + t * 32), ptx::load_shared_float(of_rows + t * 32 + 4)};
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(-rows[e % 2], less[e / 2], sums[t][e]);
            }
        }
    }

    /// Adds a stage's products to the tile's sums. Its first burst is in `a[0]`; that of the next stage, if there is `more`, is there afterwards.
    __device__ static void add_stage(Sums& sums, Burst (&a)[2], Words& words, float (&by)[2], const Place& place, const Rings& ring,
                                     const Rings& summed, unsigned base, const At& at, bool more) {
        const unsigned stage = base + ptx::warp_uniform(at.stage) * C.stage_bytes();  // so that descriptors are made in uniform registers
        float part[C.tile_m / 2];  // of a group; nothing where scales come last
        float* const added = C.scales_last() ? &sums[0][0] : part;
        constexpr int bursts_a_group = C.group_steps() / C.burst_steps();
#pragma unroll
        for (int burst = 0; burst < C.bursts(); ++burst) {
            const bool begins = burst % bursts_a_group == 0, ends = (burst + 1) % bursts_a_group == 0;
            const int group = burst / bursts_a_group;
            multiply(added, a[burst % 2], stage, burst, begins && !C.scales_last());
            if (!begins) ptx::wgmma_wait<1>();  // the burst before has read its fragments
            if (ends) {
                const unsigned scales = stage + place.scales + group * QuantisedLayout::block_rows * C.layout.scale_bytes();
                by[0] = Fragment::scale_at(scales), by[1] = Fragment::scale_at(scales + 8 * C.layout.scale_bytes());
            }
            if (burst + 1 < C.bursts()) unpack(a[(burst + 1) % 2], words, place, stage, burst + 1);
            else if (more) {
                At next = at;
                next.advance();
                ring.wait(next);
                unpack(a[0], words, place, base + next.stage * C.stage_bytes(), 0);
            }
            if (!ends) continue;
            ptx::wgmma_wait<0>();
            if constexpr (!C.scales_last()) {
                ptx::wgmma_pin_all(part);
                if constexpr (C.sums_rows())
                    if (burst == bursts_a_group - 1) summed.wait(at);
                add_group(sums, part, by, stage, place, group);
            }
        }
        if constexpr (C.scales_last())
#pragma unroll
            for (int t = 0; t < C.tile_m / 8; ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e) ptx::wgmma_pin(sums[t][e]);
    }

    template <class Epilogue>
    __device__ static void consume(const Sm90ManyQuantisedArguments& p, const Epilogue& epilogue, const Work& work, const Rings& ring,
                                   const Rings& summed, unsigned base, int warp) {
        QuantisedHeader header(p.weights);  // on its way until the first tile is stored
        Words words;
        words.table = base + table_at;
        if constexpr (C.layout.is_table()) {
            constexpr int consumers = C.warpgroup_threads * C.warpgroups();
            Fragment::fill_table(words.table, threadIdx.x, consumers);
            ptx::named_barrier_sync(table_barrier, consumers);
        }
        ptx::wait_for_dependencies();
        const int warpgroup = warp / C.warpgroup_warps;
        const Place place(warp);
        Sums sums = {};
        Burst a[2];
        At at;
        unsigned left = work.steps();
        ring.wait(at);
        unpack(a[0], words, place, base, 0);
        for (unsigned i = 0; i < work.segments(); ++i) {
            const Segment s = work.segment(i);
            float by[2];
            for (unsigned unit = s.begin; unit < s.end; ++unit, at.advance()) {
                add_stage(sums, a, words, by, place, ring, summed, base, at, --left > 0);
                __syncwarp();
                ring.release(at.stage);
            }
            if constexpr (C.scales_last())
#pragma unroll
                for (int t = 0; t < C.tile_m / 8; ++t)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums[t][e] *= by[e / 2];
            const bool cut = i < work.cuts;
            const typename Work::Origin tile = work.at(s.tile, p);
            const typename Store::Tile to{tile.row,
                                          tile.column + warpgroup * C.wgmma_m,
                                          cut ? work.part_of(s.tile * work.units) : 0,
                                          cut ? work.part_of((s.tile + 1) * work.units - 1) : 0,
                                          p.arrived + s.tile * C.warpgroups() + warpgroup,
                                          reinterpret_cast<float2*>(p.partials) + warpgroup * (C.tile_m * C.wgmma_m / 2),
                                          C.part_floats() / 2,
                                          tile.end_row,
                                          C.grouped() ? p.groups * p.n : p.n};
            Store::finish(sums, p, epilogue, to, warp % C.warpgroup_warps, threadIdx.x % C.warpgroup_threads, sums_barrier + warpgroup,
                          base + sums_at + warpgroup * C.store_shape().bytes(), header);
        }
    }
};

template <Sm90ManyQuantisedConfig config, class Epilogue>
__device__ __forceinline__ void run_many(const TensorMap& map_a, const Sm90ManyQuantisedArguments& arguments, const Epilogue& epilogue) {
    using Kernel = Sm90ManyQuantised<config>;
    constexpr int consumer_warps = config.warpgroup_warps * config.warpgroups();
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = ptx::shared_address(memory);
    const Ring<config.stages> ring{base + Kernel::barriers_at}, summed{ring.barriers + Ring<config.stages>::bytes()};
    if (threadIdx.x == 0) {
        ring.init(1, consumer_warps);
        if constexpr (config.sums_rows()) summed.init_full(config.summing_warps);
        ptx::fence_mbarrier_init();
    }
    if constexpr (config.grouped()) {
        ptx::wait_for_dependencies();  // who may have written the offsets
        if (threadIdx.x < 32) RowGroups<config>{base + Kernel::groups_at}.count(arguments);
    }
    __syncthreads();
    ptx::launch_dependents();
    const typename Kernel::Work work(arguments, base);
    const int warp = ptx::warp_uniform(threadIdx.x / 32);
    if (warp < consumer_warps) {
        if constexpr (config.consumer_registers > 0) ptx::take_registers<config.consumer_registers>();
        if (work.steps() > 0) Kernel::consume(arguments, epilogue, work, ring, summed, base, warp);
        return;
    }
    if constexpr (config.producer_registers > 0) ptx::release_registers<config.producer_registers>();
    if (work.steps() == 0) return;
    if (warp == consumer_warps) {
        if (ptx::elect_one()) Kernel::produce(map_a, arguments, work, ring, base);
    } else if constexpr (config.sums_rows()) Kernel::sum_rows(work, ring, summed, base, warp - consumer_warps - 1);
}

template <Sm90ManyQuantisedConfig config>
__global__ void __launch_bounds__(config.threads(), 1)
    sm90_many_quantised(const __grid_constant__ TensorMap map_a, const __grid_constant__ Sm90ManyQuantisedArguments arguments) {
    run_many<config>(map_a, arguments, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums.
template <Sm90ManyQuantisedConfig config, class Epilogue>
__global__ void __launch_bounds__(config.threads(), 1)
    sm90_many_quantised_epilogue(const __grid_constant__ TensorMap map_a, const __grid_constant__ Sm90ManyQuantisedArguments arguments,
                                 const __grid_constant__ Epilogue epilogue) {
    run_many<config>(map_a, arguments, epilogue);
}

}  // namespace rooftile
