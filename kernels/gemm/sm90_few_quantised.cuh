// C[M, N] = A[M, K] * W[N, K]^T of few rows, W packed as whole numbers, floats or places in a table of 4 or 8 bits with scales and
// zero points of groups along K.
//
// Every byte of W is read once, so that DRAM sets the pace: one thread keeps a ring of stages full, a bulk copy for 64 rows of packed
// weights, a box of TMA for A. The work is units: a tile of C by tile_k of K. CTAs take even shares of all units of all tiles, one after the
// other, so that all of them read until the end. A tile that is cut is added up by whoever of its CTAs comes last, in the order of K: the same
// bits every time. A consumer warp has 16 rows of W on the instruction's m and all rows of A on its n; it unpacks its own fragments into
// numbers of 16 bits, sums a group's products and multiplies the sum by the group's scale. A zero point that is no
// whole number is multiplied by the sum of the group's A, which the matrix units make by ones: what is unpacked stays exact.
//
// Launched so that it may begin during the kernel before it: weights of the first stages are asked for at once, and so must not be
// written by that kernel; all else waits for its end.
#pragma once

#include "kernels/gemm/quantised_fragment.cuh"
#include "kernels/gemm/quantised_store.cuh"
#include "kernels/gemm/sm90_few_quantised_config.hpp"
#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

template <Sm90QuantisedConfig config>
struct Sm90Quantised {
    static constexpr Sm90QuantisedConfig C = config;
    static_assert(C.tile_m % C.mma_n == 0 && C.tile_m <= C.most_rows,
                  "rows of A are columns of an instruction");
    static_assert(C.tile_n % QuantisedLayout::block_rows == 0 && C.tile_k % QuantisedLayout::block_k == 0,
                  "a stage holds whole blocks");
    static_assert(C.consumer_warps % C.row_groups() == 0 && C.spans() % C.k_parts() == 0,
                  "warps share a stage evenly");
    static constexpr int consumer_threads = 32 * C.consumer_warps, sums_barrier = 1;
    /// Groups of a whole stage follow each other without branches. Sums of A and an expression beside two loops spill.
    template <class Epilogue>
    static constexpr bool runs_ahead = C.runs_ahead() && (!C.sums_rows() || is_plain<Epilogue>());
    static constexpr unsigned sums_at = C.stages * C.stage_bytes(), table_at = sums_at + C.sums_bytes(), barriers_at = sums_at + C.reserved_bytes();
    using At = RingPosition<C.stages>;

    /// Units that this CTA has, and the tile of each.
    struct Share {
        unsigned all, parts, begin, end, units;  ///< units: of a tile

        __device__ explicit Share(const Sm90QuantisedArguments& p) {
            units = (p.k + C.tile_k - 1) / C.tile_k;
            all = (p.n + C.tile_n - 1) / C.tile_n * units;
            parts = min(all, gridDim.x);
            begin = edge(blockIdx.x), end = edge(blockIdx.x + 1);
        }
        __device__ unsigned edge(unsigned part) const {
            return static_cast<unsigned>(static_cast<unsigned long long>(all) * min(part, parts) / parts);
        }
        __device__ unsigned part_of(unsigned unit) const {
            return static_cast<unsigned>(((unit + 1ull) * parts - 1) / all);
        }
    };

    // The thread that fills the ring.
    __device__ static void produce(const TensorMap& map_a, const Sm90QuantisedArguments& p,
                                   const Share& share, const Ring<C.stages>& ring, unsigned base) {
        const int k_blocks = (p.k + QuantisedLayout::block_k - 1) / QuantisedLayout::block_k;
        const int row_blocks = (p.n + QuantisedLayout::block_rows - 1) / QuantisedLayout::block_rows;
        const auto weights = [&](unsigned unit, int stage) {
            const int column = unit / share.units * C.columns(), block = unit % share.units * C.blocks();
            const int columns = min(C.columns(), row_blocks - column),
                      bytes = min(C.blocks(), k_blocks - block) * C.block_bytes();
            const unsigned to = base + stage * C.stage_bytes() + C.activation_bytes();
            ring.expect(stage, C.activation_bytes() + columns * bytes);
            const unsigned char* from =
                p.weights + QuantisedLayout::header_bytes
                + (static_cast<long long>(column) * k_blocks + block) * C.block_bytes();
            for (int i = 0; i < columns; ++i, from += static_cast<long long>(k_blocks) * C.block_bytes())
                ptx::bulk_load<CachePolicy::evict_first>(to + i * C.column_bytes(), from, bytes,
                                                         ring.full(stage));
        };
        const auto activations = [&](unsigned unit, int stage) {
            const unsigned to = base + stage * C.stage_bytes();
            const int span = unit % share.units * C.spans();
            if constexpr (!C.ragged_k) ptx::tma_load_4d(to, map_a, 0, 0, span, 0, ring.full(stage));
            else
                for (int i = 0; i < C.spans(); ++i)
                    ptx::tma_load_2d(to + i * C.tile_m * C.span_bytes, map_a, (span + i) * C.span_k, 0,
                                     ring.full(stage));
        };
        constexpr unsigned early_stages = C.stages < C.early_stages ? C.stages : C.early_stages;
        const unsigned early = min(share.end, share.begin + early_stages);
        for (unsigned unit = share.begin; unit < early; ++unit) weights(unit, unit - share.begin);
        ptx::wait_for_dependencies();
        At at;
        for (unsigned unit = share.begin; unit < early; ++unit, at.advance()) activations(unit, at.stage);
        for (unsigned unit = early; unit < share.end; ++unit, at.advance()) {
            ring.acquire(at);
            weights(unit, at.stage);
            activations(unit, at.stage);
        }
    }

    using Store = QuantisedStore<C.store_shape()>;
    using Sums = typename Store::Sums;
    using Fragment = QuantisedFragment<C.type, C.layout>;

    /// Adds a warp's products of one stage to `sums`. `spans`: of K that the stage holds; `whole`: all of them, so that groups follow each other
    /// without branches and one's loads run beside the other's products.
    template <bool whole>
    __device__ static void multiply(Sums& sums, unsigned stage, unsigned table, int warp, int spans) {
        constexpr int span_steps = C.span_k / C.mma_k, steps = C.own_spans() * span_steps;
        constexpr int group_steps = C.layout.scaled_k() / C.mma_k,
                      together = group_steps < steps ? group_steps : steps;
        const int lane = threadIdx.x % 32, row_group = warp % C.row_groups(),
                  first_span = warp / C.row_groups() * C.own_spans();
        const unsigned packed = stage + C.activation_bytes() + row_group / 4 * C.column_bytes();
        const unsigned weights = packed + row_group % 4 * (C.weight_loads() * 512) + lane * 16;
        const int row = row_group % 4 * C.mma_m + lane / 4;  // of the block, and the one 8 below it
        constexpr int scales_at = C.layout.scale_at(0, 0), zeros_at = C.layout.zero_at(0, 0);
        const unsigned scales = packed + scales_at + row * C.layout.scale_bytes(),
                       zeros = packed + zeros_at + row * C.layout.zero_bytes();
        constexpr unsigned one = C.type == Type::bf16 ? 0x3f803f80 : 0x3c003c00;
        constexpr unsigned ones[4] = {one, one, one, one};
        unsigned w[4], b[C.row_tiles()][2][4];
#pragma unroll
        for (int first = 0; first < steps; first += together) {
            const int span = first_span + first / span_steps;
            if (!whole && span >= spans) continue;
            const int group = (span % 2 * C.span_k + first % span_steps * C.mma_k) / C.layout.scaled_k();
            const unsigned block = span / 2 * C.block_bytes();
            unsigned zero[2] = {Fragment::no_zero, Fragment::no_zero};
            if constexpr (C.layout.zeros == ZeroType::integer)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    zero[i] = Fragment::zero_word(ptx::load_shared_byte(zeros + block + group * QuantisedLayout::block_rows + i * 8));
            Sums part = {}, of_rows = {};
#pragma unroll
            for (int step = first; step < first + together; ++step) {
                const int s = step % span_steps;
                const int own = first_span + step / span_steps;
                constexpr int steps_a_load = span_steps / C.weight_loads();
                if (s % steps_a_load == 0)
                    ptx::load_shared_words(
                        w, weights + own / 2 * C.block_bytes() + own % 2 * (C.layout.weight_bytes() / 2) + s / steps_a_load * 512);
                if (s == 0) {
#pragma unroll
                    for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
                        for (int i = 0; i < 2; ++i)
                            ptx::load_matrix_x4(b[t][i],
                                                stage + (own * C.tile_m + t * 8 + lane % 8) * C.span_bytes
                                                    + ((i * 4 + lane / 8) ^ lane % 8) * 16);
                }
                unsigned a[4];
                Fragment::unpack(a, w, s % steps_a_load, zero, table);
#pragma unroll
                for (int t = 0; t < C.row_tiles(); ++t) {
                    ptx::mma<C.type>(part[t], a, b[t][s / 2][s % 2 * 2], b[t][s / 2][s % 2 * 2 + 1]);
                    if constexpr (C.sums_rows()) ptx::mma<C.type>(of_rows[t], ones, b[t][s / 2][s % 2 * 2], b[t][s / 2][s % 2 * 2 + 1]);
                }
            }
            const unsigned at =
                scales + block + group * QuantisedLayout::block_rows * C.layout.scale_bytes();
            const float by[2] = {Fragment::scale_at(at), Fragment::scale_at(at + 8 * C.layout.scale_bytes())};
#pragma unroll
            for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(part[t][e], by[e / 2], sums[t][e]);
            if constexpr (C.sums_rows()) {
                const unsigned of_group = zeros + block + group * QuantisedLayout::block_rows * QuantisedLayout::number_bytes;
                const float less[2] = {Fragment::number_at(of_group), Fragment::number_at(of_group + 8 * QuantisedLayout::number_bytes)};
#pragma unroll
                for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(-of_rows[t][e], less[e / 2], sums[t][e]);
            }
        }
    }

    /// The consumers' sums of a tile, or of this CTA's part of it.
    template <class Epilogue>
    __device__ static void finish(Sums& sums, const Sm90QuantisedArguments& p, const Epilogue& epilogue, const Share& share, unsigned tile,
                                  int warp, unsigned base, QuantisedHeader& header) {
        const typename Store::Tile at{0,
                                      static_cast<int>(tile) * C.tile_n,
                                      share.part_of(tile * share.units),
                                      share.part_of((tile + 1) * share.units - 1),
                                      p.arrived + tile,
                                      reinterpret_cast<float2*>(p.partials),
                                      C.part_floats() / 2,
                                      p.m,
                                      p.n};
        Store::finish(sums, p, epilogue, at, warp, threadIdx.x, sums_barrier, base + sums_at, header);
    }

    template <class Epilogue>
    __device__ static void consume(const Sm90QuantisedArguments& p, const Epilogue& epilogue, const Share& share,
                                   const Ring<C.stages>& ring, unsigned base, int warp) {
        // On its way until the first tile is stored.
        QuantisedHeader header(p.weights);
        if constexpr (C.layout.is_table()) {
            Fragment::fill_table(base + table_at, threadIdx.x, consumer_threads);
            ptx::named_barrier_sync(sums_barrier, consumer_threads);
        }
        ptx::wait_for_dependencies();
        const int all_spans = (p.k + QuantisedLayout::block_k - 1) / QuantisedLayout::block_k * 2;
        unsigned tile = share.begin / share.units, of_tile = share.begin % share.units;
        Sums sums = {};
        At at;
        for (unsigned unit = share.begin; unit < share.end; ++unit, at.advance()) {
            ring.wait(at);
            const unsigned stage = base + at.stage * C.stage_bytes();
            const int spans = all_spans - static_cast<int>(of_tile) * C.spans();
            if (runs_ahead<Epilogue> && spans >= C.spans()) multiply<true>(sums, stage, base + table_at, warp, spans);
            else multiply<false>(sums, stage, base + table_at, warp, spans);
            __syncwarp();
            ring.release(at.stage);
            const bool ends = ++of_tile == share.units;
            if (ends || unit + 1 == share.end) finish(sums, p, epilogue, share, tile, warp, base, header);
            if (ends) ++tile, of_tile = 0;
        }
    }
};

template <Sm90QuantisedConfig config, class Epilogue>
__device__ __forceinline__ void run_cta(const TensorMap& map_a, const Sm90QuantisedArguments& arguments, const Epilogue& epilogue) {
    using Kernel = Sm90Quantised<config>;
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = ptx::shared_address(memory);
    const Ring<config.stages> ring{base + Kernel::barriers_at};
    if (threadIdx.x == 0) {
        ring.init(1, config.consumer_warps);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    const typename Kernel::Share share(arguments);
    if (share.begin == share.end) return;
    const int warp = ptx::warp_uniform(threadIdx.x / 32);
    if (warp < config.consumer_warps) return Kernel::consume(arguments, epilogue, share, ring, base, warp);
    if (ptx::elect_one()) Kernel::produce(map_a, arguments, share, ring, base);
}

template <Sm90QuantisedConfig config>
__global__ void __launch_bounds__(config.threads(), config.ctas_per_sm)
    sm90_few_quantised(const __grid_constant__ TensorMap map_a, const __grid_constant__ Sm90QuantisedArguments arguments) {
    run_cta<config>(map_a, arguments, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums.
template <Sm90QuantisedConfig config, class Epilogue>
__global__ void __launch_bounds__(config.threads(), config.ctas_per_sm)
    sm90_few_quantised_epilogue(const __grid_constant__ TensorMap map_a, const __grid_constant__ Sm90QuantisedArguments arguments,
                                const __grid_constant__ Epilogue epilogue) {
    run_cta<config>(map_a, arguments, epilogue);
}

}  // namespace rooftile
