// Packed weights to numbers of 16 bits in memory, for a product that reads these: W[n, k] times its scale, less its zero point, in fp32,
// rounded once to the activations' type. Rows of K, each on a 128-byte line.
//
// A warp unpacks 16 rows by 64 of K of a block. Weights are in the order in which mma.sync takes its first operand: the four lanes of a quad
// have two neighbours each of every 8 of a row's K. So a lane's 16 bytes, still packed, are exchanged within the quad first: afterwards each
// lane has 8 neighbours, the 16 bytes of one store, and the quad's stores are 64 contiguous bytes of a row.
//
// Weights that were packed for another layout or size are unpacked as NaN. Rows of A of 8 bits are widened by the same launch.
#pragma once

#include "kernels/gemm/quantised_fragment.cuh"
#include "kernels/gemm/quantised_store.cuh"
#include "kernels/gemm/unpack_weights_arguments.hpp"
#include "kernels/gemm/widen_rows.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// Word t[j] of lane i of each quad to word t[i] of lane j.
__device__ inline void transpose_in_quad(unsigned (&t)[4]) {
    const auto exchange = [](unsigned& x, unsigned& y, int apart) {
        const bool later = (threadIdx.x & static_cast<unsigned>(apart)) != 0;
        const unsigned kept = later ? y : x, other = __shfl_xor_sync(0xffffffff, later ? x : y, apart);
        x = later ? other : kept, y = later ? kept : other;
    };
    exchange(t[0], t[1], 1), exchange(t[2], t[3], 1);
    exchange(t[0], t[2], 2), exchange(t[1], t[3], 2);
}

template <Type type, QuantisedLayout layout>
struct UnpackWeights {
    using Layout = QuantisedLayout;
    using Fragment = QuantisedFragment<type, layout>;
    static constexpr int loads = layout.bits() / 4;  ///< of 16 B, for a lane's share
    static constexpr int parts = 2, part_k = Layout::half_k / parts;
    static constexpr int rows_apart = 8;  ///< a lane has a row, and the one 8 below it
    static constexpr int groups = layout.scaled_k() < Layout::half_k ? parts : 1;  ///< in 64 of K
    static_assert(unpack_threads == 32 * (Layout::block_rows / 16) * (Layout::block_k / Layout::half_k));

    static __device__ float number_at(const unsigned char* from) {
        return ptx::widened<layout.scale>(*reinterpret_cast<const unsigned short*>(from));
    }
    static __device__ float scale_at(const unsigned char* from) {
        if constexpr (layout.power_scales()) return __uint_as_float(static_cast<unsigned>(*from) << 23) * Fragment::unit;
        else return number_at(from) * Fragment::unit;
    }

    /// What a lane has of one load, dealt out to the lanes of its quad: its `i`th word is then lane i's, with neighbours 2 i and 2 i + 1 of 8.
    static __device__ void exchange(unsigned (&words)[4]) {
        if constexpr (layout.bits() == 4) {
            // A word has 16 of K, of which the lane that gets them wants 8, and 8 others 32 further on.
            constexpr unsigned first = layout.is_table() ? 0x5410 : 0x6240, second = layout.is_table() ? 0x7632 : 0x7351;
            const unsigned from[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll
            for (int to = 0; to < 4; ++to) words[to] = __byte_perm(from[to / 2], from[2 + to / 2], to % 2 == 0 ? first : second);
        }
        transpose_in_quad(words);
    }

    /// Block number `block`; `right`: the weights are packed as this kernel reads them.
    static __device__ void unpack_block(const UnpackArguments& p, unsigned block, bool right, unsigned table) {
        const unsigned k_blocks = static_cast<unsigned>(Layout::k_blocks(p.k));
        const unsigned row_block = block / k_blocks, k_block = block - row_block * k_blocks;
        const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
        const int row_group = warp % 4, half = warp / 4, row = row_group * 16 + lane / 4, quad = lane % 4;
        const unsigned char* const from = p.weights + Layout::header_bytes + static_cast<long long>(block) * layout.block_bytes();
        ptx::Words<16> packed[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            ptx::load_once(packed[i], from + half * (layout.weight_bytes() / 2) + row_group * (loads * 512) + i * 512 + lane * 16);
        float scale[groups][2], less[groups][2];  // of the lane's two rows
        unsigned zero[groups][2];
#pragma unroll
        for (int g = 0; g < groups; ++g)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int k = half * Layout::half_k + g * part_k, of_row = row + e * rows_apart;
                scale[g][e] = scale_at(from + layout.scale_at(of_row, k));
                less[g][e] = 0, zero[g][e] = Fragment::no_zero;
                if constexpr (layout.zeros == ZeroType::integer) zero[g][e] = Fragment::zero_word(from[layout.zero_at(of_row, k)]);
                if constexpr (layout.zeros == ZeroType::real) less[g][e] = number_at(from + layout.zero_at(of_row, k));
            }
#pragma unroll
        for (int i = 0; i < loads; ++i) exchange(packed[i].word);
        const long long first_row = static_cast<long long>(row_block) * Layout::block_rows + row;
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            const int g = part % groups, in_block = half * Layout::half_k + part * part_k + quad * 8;
            const int column = static_cast<int>(k_block) * Layout::block_k + in_block;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                ptx::Words<16> out;
#pragma unroll
                for (int pair = 0; pair < 4; ++pair) {
                    unsigned a[4];  // two rows of a word, then those of the other half of 64 of K, or of the next word
                    if constexpr (layout.bits() == 4) Fragment::unpack(a, packed[0].word, pair, zero[g], table);
                    else Fragment::unpack(a, packed[part % loads].word, pair / 2, zero[g], table);
                    const unsigned two = layout.bits() == 4 ? a[part * 2 + e] : a[pair % 2 * 2 + e];
                    const float low = ptx::widened<type>(static_cast<unsigned short>(two & 0xffff)),
                                high = ptx::widened<type>(static_cast<unsigned short>(two >> 16));
                    if constexpr (layout.zeros == ZeroType::real)
                        out.word[pair] = ptx::pack2<type>(fmaf(low, scale[g][e], -less[g][e]), fmaf(high, scale[g][e], -less[g][e]));
                    else out.word[pair] = ptx::pack2<type>(low * scale[g][e], high * scale[g][e]);
                    if (!right) out.word[pair] = 0x7fff7fff;
                }
                // What follows K in a row's last 16 bytes nobody reads.
                const long long to = first_row + e * rows_apart;
                if (to < p.n && column < p.k) ptx::store_words(p.to + to * p.pitch + column, out);
            }
        }
    }
};

template <Type type, QuantisedLayout layout, Type narrow>
__global__ void __launch_bounds__(unpack_threads) unpack_weights(const __grid_constant__ UnpackArguments args) {
    // As pack_operands: the product before may still read the weights that it had unpacked.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if constexpr (is_fp8(narrow)) {
        static_assert(unpack_threads == widen_threads);
        if (blockIdx.x >= args.weight_ctas) return widen_lines<narrow, type>(args.rows, blockIdx.x - args.weight_ctas);
    }
    unsigned table = 0;
    if constexpr (layout.is_table()) {
        extern __shared__ __align__(1024) unsigned char memory[];
        table = ptx::shared_address(memory);
        QuantisedFragment<type, layout>::fill_table(table, static_cast<int>(threadIdx.x), unpack_threads);
        __syncthreads();
    }
    QuantisedHeader header(args.weights);
    const bool right = header.is_of<layout>(args.n, args.k);
    constexpr unsigned blocks = unpack_blocks_per_cta(layout);
    const unsigned all = static_cast<unsigned>(QuantisedLayout::row_blocks(args.n) * QuantisedLayout::k_blocks(args.k));
    for (unsigned block = blockIdx.x * blocks, end = min(all, block + blocks); block < end; ++block)
        UnpackWeights<type, layout>::unpack_block(args, block, right, table);
}

}  // namespace rooftile
