// C[M, N] = A[M, K] * W[N, K]^T of few rows, W packed as 4 or 8 bits with scales and zero points of groups along K.
//
// Every byte of W is read once, so that DRAM sets the pace: one thread keeps a ring of stages full, a bulk copy for 64 rows of packed
// weights, a box of TMA for A. The work is units: a tile of C by tile_k of K. CTAs take even shares of all units of all tiles, one after the
// other, so that all of them read until the end. A tile that is cut is added up by whoever of its CTAs comes last, in the order of K: the same
// bits every time. A consumer warp has 16 rows of W on the instruction's m and all rows of A on its n; it unpacks its own fragments into
// whole numbers, which are exact in 16 bits, sums a group's products and multiplies the sum by the group's scale. A zero point that is no
// whole number is multiplied by the sum of the group's A, which the matrix units make by ones: what is unpacked stays exact.
//
// Launched so that it may begin during the kernel before it: weights of the first stages are asked for at once, and so must not be
// written by that kernel; all else waits for its end.
#pragma once

#include "kernels/gemm/sm90_few_quantised_config.hpp"
#include "kernels/matrix/epilogue_pair.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/few_bits.cuh"
#include "kernels/ptx/matrix_store.cuh"
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
    static constexpr unsigned sums_at = C.stages * C.stage_bytes();
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

    /// Four fragments' words of 16-bit whole numbers less their zero points: of 4 bits amid a number of which they are the last bits.
    __device__ static void unpack(unsigned (&a)[4], unsigned packed, const unsigned (&zero)[2]) {
        constexpr unsigned one =
            C.type == Type::bf16 ? 0x43004300 : 0x64006400;  // 128 or 1024, whose unit is the last bit
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a[i] = ptx::bits_amid<0x000f000f>(packed >> 4 * i, one);
            ptx::subtract2<C.type>(a[i], zero[i % 2]);
        }
    }
    __device__ static float number_at(unsigned shared) { return ptx::widened<C.layout.scale>(ptx::load_shared_half(shared)); }
    /// The same of two words of 8 bits, 128 added to each weight.
    __device__ static void unpack(unsigned (&a)[4], unsigned low, unsigned high) {
        constexpr unsigned top = C.type == Type::bf16 ? 0x43434343 : 0x64646464;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Two bytes, each below the first byte of 1024, or of 128.
            a[i] = __byte_perm(i < 2 ? low : high, top, i % 2 == 0 ? 0x4140 : 0x4342);
            if constexpr (C.type == Type::fp16) ptx::subtract2<C.type>(a[i], 0x64806480);
            else {
                // 7 bits have room: 128 and they, less 128, or 256 where the eighth bit says that the weight is negative.
                const unsigned less = ptx::other_bits_amid<0x00800080>(a[i], 0x43004300);
                a[i] = ptx::bits_amid<0x007f007f>(a[i], 0x43004300);
                ptx::subtract2<C.type>(a[i], less);
            }
        }
    }
    /// What unpack() takes away: the zero point, and the number amid which the 4 bits are.
    __device__ static unsigned zero_word(unsigned zero) {
        return (zero | (C.type == Type::bf16 ? 0x4300u : 0x6400u)) * 0x10001u;
    }

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

    using Sums = float[C.row_tiles()][4];
    using Header = unsigned[3];

    /// Adds a warp's products of one stage to `sums`. `spans`: of K that the stage holds; `whole`: all of them, so that groups follow each other
    /// without branches and one's loads run beside the other's products.
    template <bool whole>
    __device__ static void multiply(Sums& sums, unsigned stage, int warp, int spans) {
        constexpr int span_steps = C.span_k / C.mma_k, steps = C.own_spans() * span_steps;
        constexpr int group_steps = C.layout.scaled_k() / C.mma_k,
                      together = group_steps < steps ? group_steps : steps;
        const int lane = threadIdx.x % 32, row_group = warp % C.row_groups(),
                  first_span = warp / C.row_groups() * C.own_spans();
        const unsigned packed = stage + C.activation_bytes() + row_group / 4 * C.column_bytes();
        const unsigned weights = packed + row_group % 4 * (C.weight_loads() * 512) + lane * 16;
        const int row = row_group % 4 * C.mma_m + lane / 4;  // of the block, and the one 8 below it
        constexpr int scales_at = C.layout.scale_at(0, 0), zeros_at = C.layout.zero_at(0, 0);
        const unsigned scales = packed + scales_at + row * QuantisedLayout::scale_bytes,
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
            unsigned zero[2] = {zero_word(C.layout.bias()), zero_word(C.layout.bias())};
            if constexpr (C.layout.zeros == ZeroType::integer)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    zero[i] = zero_word(ptx::load_shared_byte(zeros + block + group * QuantisedLayout::block_rows + i * 8));
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
                if constexpr (C.layout.bits() == 4) unpack(a, w[s], zero);
                else unpack(a, w[s % 2 * 2], w[s % 2 * 2 + 1]);
#pragma unroll
                for (int t = 0; t < C.row_tiles(); ++t) {
                    ptx::mma<C.type>(part[t], a, b[t][s / 2][s % 2 * 2], b[t][s / 2][s % 2 * 2 + 1]);
                    if constexpr (C.sums_rows()) ptx::mma<C.type>(of_rows[t], ones, b[t][s / 2][s % 2 * 2], b[t][s / 2][s % 2 * 2 + 1]);
                }
            }
            const unsigned at =
                scales + block + group * QuantisedLayout::block_rows * QuantisedLayout::scale_bytes;
            const float by[2] = {number_at(at), number_at(at + 8 * QuantisedLayout::scale_bytes)};
#pragma unroll
            for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(part[t][e], by[e / 2], sums[t][e]);
            if constexpr (C.sums_rows()) {
                const unsigned of_group = zeros + block + group * QuantisedLayout::block_rows * QuantisedLayout::scale_bytes;
                const float less[2] = {number_at(of_group), number_at(of_group + 8 * QuantisedLayout::scale_bytes)};
#pragma unroll
                for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums[t][e] = fmaf(-of_rows[t][e], less[e / 2], sums[t][e]);
            }
        }
    }

    /// Parts `first` to `last` in their order, of which several are on their way at once.
    template <class Place>
    __device__ static float2 added(const Place& place, int pair, unsigned first, unsigned last) {
        constexpr int in_flight = 4;
        float2 all = make_float2(0, 0);
        for (unsigned part = first; part <= last; part += in_flight) {
            float2 x[in_flight];
#pragma unroll
            for (int i = 0; i < in_flight; ++i) x[i] = part + i <= last ? __ldcg(place(part + i) + pair) : make_float2(0, 0);
#pragma unroll
            for (int i = 0; i < in_flight; ++i) all.x += x[i].x, all.y += x[i].y;
        }
        return all;
    }

    /// What is stored of two neighbours' sums.
    template <class Epilogue>
    __device__ static float2 expressed(const Epilogue& epilogue, float2 sums, const EpiloguePair& at) {
        if constexpr (is_plain<Epilogue>()) return sums;
        else {
            typename Epilogue::Operands with;
            epilogue.template load<false>(with, at);
            float to[2];
            epilogue.template apply<false>(to, sums.x, sums.y, with, epilogue.once(), at);
            return make_float2(to[0], to[1]);
        }
    }

    /// The consumers' sums of a tile, or of this CTA's part of it: stored, or left to whoever comes last. Where the
    /// packed weights' header is of another layout or size, C is NaN.
    template <class Epilogue>
    __device__ static void finish(Sums& sums, const Sm90QuantisedArguments& p, const Epilogue& epilogue, const Share& share, unsigned tile,
                                  int warp, unsigned base, Header& header) {
        const int lane = threadIdx.x % 32, row_group = warp % C.row_groups(), k_part = warp / C.row_groups();
#pragma unroll
        for (int t = 0; t < C.row_tiles(); ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = t * 8 + lane % 4 * 2 + e % 2,
                          column = row_group * C.mma_m + lane / 4 + e / 2 * 8;
                ptx::store_shared_1(
                    base + sums_at + ((k_part * C.tile_m + row) * C.sums_pitch() + column) * 4, sums[t][e]);
                sums[t][e] = 0;
            }
        ptx::named_barrier_sync(sums_barrier, consumer_threads);
        for (unsigned& word : header) ptx::keep(word);  // compared here, where it has come: not before the first product
        const bool packed_for_this = header[0] == C.layout.fingerprint() && header[1] == static_cast<unsigned>(p.n)
                                     && header[2] == static_cast<unsigned>(p.k);
        constexpr int row_pairs = C.tile_n / 2;
        const int pairs = p.m * row_pairs;
        const auto sum = [&](int pair) {
            float2 all = make_float2(0, 0);
#pragma unroll
            for (int part = 0; part < C.k_parts(); ++part) {
                const unsigned at =
                    base + sums_at
                    + ((part * C.tile_m + pair / row_pairs) * C.sums_pitch() + pair % row_pairs * 2) * 4;
                all.x += ptx::load_shared_float(at), all.y += ptx::load_shared_float(at + 4);
            }
            return all;
        };
        const bool words =
            (p.n | static_cast<int>(p.ldc)) % 2 == 0 && reinterpret_cast<unsigned long long>(p.c) % 4 == 0;
        const auto store = [&](int pair, float2 x) {
            const int column = tile * C.tile_n + pair % row_pairs * 2;
            if (column >= p.n) return;
            x = expressed(epilogue, x, {pair / row_pairs, column, 0, 0, p.m, p.n, 0, true, column + 1 < p.n});
            if (!packed_for_this) x.x = x.y = __uint_as_float(0x7fffffff);
            unsigned short* to = static_cast<unsigned short*>(p.c) + pair / row_pairs * p.ldc + column;
            const unsigned word = ptx::pack2<C.type>(x.x, x.y);
            if (words) *reinterpret_cast<unsigned*>(to) = word;
            else {
                to[0] = static_cast<unsigned short>(word);
                if (column + 1 < p.n) to[1] = static_cast<unsigned short>(word >> 16);
            }
        };
        const unsigned first = share.part_of(tile * share.units),
                       last = share.part_of((tile + 1) * share.units - 1);
        if (first == last) {
            for (int pair = threadIdx.x; pair < pairs; pair += consumer_threads) store(pair, sum(pair));
        } else {
            // A CTA's last tile is the one that it shares with those after it, its first part.
            const auto place = [&](unsigned part) {
                return reinterpret_cast<float2*>(p.partials)
                       + (2ll * part + (part == first)) * (C.part_floats() / 2);
            };
            float2* own = place(blockIdx.x);
            for (int pair = threadIdx.x; pair < pairs; pair += consumer_threads) own[pair] = sum(pair);
            if (came_last(sums_barrier, consumer_threads, p.arrived + tile, last - first + 1))
                for (int pair = threadIdx.x; pair < pairs; pair += consumer_threads) store(pair, added(place, pair, first, last));
        }
        ptx::named_barrier_sync(sums_barrier,
                                consumer_threads);  // the next tile's sums take the place of these
    }

    template <class Epilogue>
    __device__ static void consume(const Sm90QuantisedArguments& p, const Epilogue& epilogue, const Share& share,
                                   const Ring<C.stages>& ring, unsigned base, int warp) {
        // On its way until the first tile is stored.
        const uint4 words = *reinterpret_cast<const uint4*>(p.weights);
        Header header = {words.x, words.y, words.z};
        ptx::wait_for_dependencies();
        const int all_spans = (p.k + QuantisedLayout::block_k - 1) / QuantisedLayout::block_k * 2;
        unsigned tile = share.begin / share.units, of_tile = share.begin % share.units;
        Sums sums = {};
        At at;
        for (unsigned unit = share.begin; unit < share.end; ++unit, at.advance()) {
            ring.wait(at);
            const unsigned stage = base + at.stage * C.stage_bytes();
            const int spans = all_spans - static_cast<int>(of_tile) * C.spans();
            if (runs_ahead<Epilogue> && spans >= C.spans()) multiply<true>(sums, stage, warp, spans);
            else multiply<false>(sums, stage, warp, spans);
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
    const Ring<config.stages> ring{base + Kernel::sums_at + config.sums_bytes()};
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
