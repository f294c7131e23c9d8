// C's tiles of kernels by packed weights on their way out: stored, or, where CTAs share a tile, left to whoever of them comes last, who adds
// their parts up in the order of K: the same bits every time.
#pragma once

#include "kernels/gemm/quantised_store_shape.hpp"
#include "kernels/matrix/epilogue_pair.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// The first words of packed weights, loaded long before they are compared.
struct QuantisedHeader {
    unsigned word[3];
    __device__ explicit QuantisedHeader(const unsigned char* weights) {
        const uint4 words = *reinterpret_cast<const uint4*>(weights);
        word[0] = words.x, word[1] = words.y, word[2] = words.z;
    }
    /// Whether the weights were packed for this layout and size.
    template <QuantisedLayout layout>
    __device__ bool is_of(int n, int k) {
        for (unsigned& each : word) ptx::keep(each);  // compared here, where it has come: not before the first product
        return word[0] == layout.fingerprint() && word[1] == static_cast<unsigned>(n) && word[2] == static_cast<unsigned>(k);
    }
};

template <QuantisedStoreShape shape>
struct QuantisedStore {
    static constexpr QuantisedStoreShape S = shape;
    using Sums = float[S.row_tiles()][4];
    static constexpr int at_once_tiles = S.rows_at_once / 8;
    static_assert(S.k_parts == 1 || !S.parts_by_thread, "of what warps share along K no thread has sums");
    static_assert(S.rows % S.rows_at_once == 0 && S.rows_at_once % 8 == 0, "a tile leaves in equal pieces");

    /// A tile, and which CTAs have parts of it: `first` to `last`, in the order of K.
    struct Tile {
        int row, column;  ///< of C
        unsigned first, last;
        unsigned* arrived;  ///< how many parts have come
        float2* parts;      ///< of a CTA two such, part_pairs apart: of the tile shared with CTAs before it, and with those after it
        int part_pairs;
        int end_row;   ///< of C: of its rows, or of those of a group
        int packed_n;  ///< columns of C that the weights are packed for
    };

    /// What `store` does with pairs `thread`, `thread` + threads, ... below `pairs`: each is the sum of parts `first` to `last` in their order. Loads
    /// of several pairs and parts are on their way at once: one at a time would wait for L2 once a pair.
    template <class Place, class Store>
    __device__ static void add_pairs(const Place& place, int thread, int pairs, unsigned first, unsigned last, const Store& store) {
        constexpr int most = (S.rows * (S.columns / 2) + S.threads - 1) / S.threads, together = most < 4 ? most : 4, in_flight = together > 2 ? 2 : 4;
        for (int begin = thread; begin < pairs; begin += together * S.threads) {
            float2 all[together] = {};
            for (unsigned part = first; part <= last; part += in_flight) {
                float2 x[in_flight][together];
#pragma unroll
                for (int i = 0; i < in_flight; ++i)
#pragma unroll
                    for (int n = 0; n < together; ++n) {
                        const int pair = begin + n * S.threads;
                        x[i][n] = part + i <= last && pair < pairs ? __ldcg(place(part + i) + pair) : make_float2(0, 0);
                    }
#pragma unroll
                for (int i = 0; i < in_flight; ++i)
#pragma unroll
                    for (int n = 0; n < together; ++n) all[n].x += x[i][n].x, all[n].y += x[i][n].y;
            }
#pragma unroll
            for (int n = 0; n < together; ++n)
                if (begin + n * S.threads < pairs) store(begin + n * S.threads, all[n]);
        }
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

    /// Where a thread has its sums of a part: a warp writes and reads whole lines.
    __device__ static float4* lines(float2* part, int thread) { return reinterpret_cast<float4*>(part) + thread; }
    __device__ static void leave(const Sums& sums, float4* to) {
#pragma unroll
        for (int t = 0; t < S.row_tiles(); ++t) to[t * S.threads] = {sums[t][0], sums[t][1], sums[t][2], sums[t][3]};
    }
    /// Parts `first` to `last` in their order, to sums that are 0: of few rows several are on their way at once.
    template <class Place>
    __device__ static void add_parts(Sums& sums, const Place& place, int thread, unsigned first, unsigned last) {
        constexpr int lines_in_flight = 8, tiles = S.row_tiles() % 8 == 0 ? 8 : S.row_tiles(), together = lines_in_flight / tiles < 1 ? 1 : lines_in_flight / tiles;
        for (unsigned part = first; part <= last; part += together)
#pragma unroll
            for (int tile = 0; tile < S.row_tiles(); tile += tiles) {
                float4 x[together][tiles];
#pragma unroll
                for (int p = 0; p < together; ++p)
                    if (part + p <= last) {
                        const float4* from = lines(place(part + p), thread) + tile * S.threads;
#pragma unroll
                        for (int i = 0; i < tiles; ++i) x[p][i] = __ldcg(from + i * S.threads);
                    }
#pragma unroll
                for (int p = 0; p < together; ++p)
                    if (part + p <= last)
#pragma unroll
                        for (int i = 0; i < tiles; ++i) {
                            float(&to)[4] = sums[tile + i];
                            to[0] += x[p][i].x, to[1] += x[p][i].y, to[2] += x[p][i].z, to[3] += x[p][i].w;
                        }
            }
    }
    __device__ static void clear(Sums& sums) {
#pragma unroll
        for (int t = 0; t < S.row_tiles(); ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[t][e] = 0;
    }

    /// The threads' sums of a tile, or of this CTA's part of it; they are 0 then. `warp` and `thread` are counted among the `threads` that meet
    /// at named barrier `barrier`; `shared` has bytes() for them. Where the weights' header is of another layout or size, C is NaN.
    template <class Arguments, class Epilogue>
    __device__ static void finish(Sums& sums, const Arguments& p, const Epilogue& epilogue, const Tile& tile, int warp, int thread,
                                  int barrier, unsigned shared, QuantisedHeader& header) {
        const int lane = thread % 32, row_group = warp % S.row_groups(), k_part = warp / S.row_groups();
        constexpr int row_pairs = S.columns / 2;
        const int rows = min(S.rows, tile.end_row - tile.row);
        const auto place = [&](unsigned part) { return tile.parts + (2ll * part + (part == tile.first)) * tile.part_pairs; };
        const auto is_last = [&] { return came_last(barrier, S.threads, tile.arrived, tile.last - tile.first + 1); };
        bool cut = tile.first != tile.last;
        if constexpr (S.parts_by_thread) {
            if (cut) {
                leave(sums, lines(place(blockIdx.x), thread));
                clear(sums);
                if (!is_last()) return;
                add_parts(sums, place, thread, tile.first, tile.last);
                cut = false;
            }
        }
        bool packed_for_this = true;
        const bool words = (p.n | static_cast<int>(p.ldc)) % 2 == 0 && reinterpret_cast<unsigned long long>(p.c) % 4 == 0;
        const auto store = [&](int pair, float2 x) {
            const int row = tile.row + pair / row_pairs, column = tile.column + pair % row_pairs * 2;
            if (column >= p.n) return;
            x = expressed(epilogue, x, {row, column, 0, 0, p.m, p.n, 0, true, column + 1 < p.n});
            if (!packed_for_this) x.x = x.y = __uint_as_float(0x7fffffff);
            unsigned short* to = static_cast<unsigned short*>(p.c) + row * p.ldc + column;
            const unsigned word = ptx::pack2<S.type>(x.x, x.y);
            if (words) *reinterpret_cast<unsigned*>(to) = word;
            else {
                to[0] = static_cast<unsigned short>(word);
                if (column + 1 < p.n) to[1] = static_cast<unsigned short>(word >> 16);
            }
        };
#pragma unroll
        for (int piece = 0; piece < S.rows / S.rows_at_once; ++piece) {
            if (piece > 0) ptx::named_barrier_sync(barrier, S.threads);  // the piece before has left
#pragma unroll
            for (int t = 0; t < at_once_tiles; ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int row = t * 8 + lane % 4 * 2 + e % 2, column = row_group * 16 + lane / 4 + e / 2 * 8;
                    ptx::store_shared_1(shared + ((k_part * S.rows_at_once + row) * S.pitch() + column) * 4, sums[piece * at_once_tiles + t][e]);
                }
            ptx::named_barrier_sync(barrier, S.threads);
            if (piece == 0) packed_for_this = header.is_of<S.layout>(tile.packed_n, p.k);
            const auto sum = [&](int pair) {
                float2 all = make_float2(0, 0);
#pragma unroll
                for (int part = 0; part < S.k_parts; ++part) {
                    const unsigned at = shared + ((part * S.rows_at_once + pair / row_pairs) * S.pitch() + pair % row_pairs * 2) * 4;
                    all.x += ptx::load_shared_float(at), all.y += ptx::load_shared_float(at + 4);
                }
                return all;
            };
            constexpr int piece_pairs = S.rows_at_once * row_pairs;
            const int before = piece * piece_pairs, pairs = min(piece_pairs, rows * row_pairs - before);
            if (S.parts_by_thread || !cut)
                for (int pair = thread; pair < pairs; pair += S.threads) store(before + pair, sum(pair));
            else {
                float2* own = place(blockIdx.x) + before;
#pragma unroll 4
                for (int pair = thread; pair < pairs; pair += S.threads) own[pair] = sum(pair);
            }
        }
        if constexpr (!S.parts_by_thread)
            if (cut && is_last()) add_pairs(place, thread, rows * row_pairs, tile.first, tile.last, store);
        clear(sums);
        ptx::named_barrier_sync(barrier, S.threads);  // the next tile's sums take the place of these
    }
};

}  // namespace rooftile
