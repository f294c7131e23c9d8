// Copies operands of 8 bits to where wgmma can take them: rows of K, whatever ran along them before, that begin on 128-byte lines
// of L2 and are filled up with zeros to whole 16 bytes.
//
// A CTA copies a block of 64 x 64 elements, and writes 16 bytes of K a thread. Rows of K a thread reads by the aligned words they lie in;
// what runs along the other index goes through shared memory.
#pragma once

#include "kernels/gemm/pack_arguments.hpp"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// Four bytes of a row of K from `k` on, which lies on an aligned word; what is outside the row is zero, and not read.
__device__ inline unsigned row_word(const unsigned char* row, long long k, long long end) {
    if (k >= 0 && k + 4 <= end) return *reinterpret_cast<const unsigned*>(row + k);
    unsigned word = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b)
        if (k + b >= 0 && k + b < end) word |= unsigned(row[k + b]) << 8 * b;
    return word;
}

/// Block number `block` of one matrix that is contiguous along K, row after row of blocks: rows begin anywhere.
__device__ inline void pack_byte_rows(const PackedBytes& of, long long block, unsigned matrix) {
    const unsigned blocks = of.blocks_of_k();
    const long long row_block = block / blocks;
    const long long mn = row_block * pack_byte_side + static_cast<int>(threadIdx.x) / 4,
                    k = (block - row_block * blocks) * pack_byte_side + static_cast<int>(threadIdx.x) % 4 * 16;
    if (mn >= of.mn || k >= of.k) return;
    const unsigned char* row = of.from + matrix * of.stride + mn * of.leading;
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(row + k) % 4);  // the word's beginning
    unsigned from[5];
#pragma unroll
    for (int w = 0; w < 5; ++w) from[w] = w < 4 || past > 0 ? row_word(row, k - past + 4 * w, of.k) : 0;
    ptx::Words<16> words;
#pragma unroll
    for (int w = 0; w < 4; ++w) words.word[w] = __funnelshift_r(from[w], from[w + 1], 8 * past);
    ptx::store_words(of.to + matrix * of.packed_stride + mn * of.pitch + k, words);
}

/// The same of one that is contiguous along the other index.
__device__ inline void pack_byte_block(const PackedBytes& of, long long block, unsigned matrix,
                                       unsigned char (&tile)[pack_byte_side][pack_byte_side + 1]) {
    const unsigned blocks = of.blocks_of_k();
    const long long row_block = block / blocks;
    const long long mn0 = row_block * pack_byte_side, k0 = (block - row_block * blocks) * pack_byte_side;
    const unsigned char* from = of.from + matrix * of.stride;
    const int across = static_cast<int>(threadIdx.x) % pack_byte_side, down = static_cast<int>(threadIdx.x) / pack_byte_side;
    constexpr int step = pack_threads / pack_byte_side;
    for (int i = down; i < pack_byte_side; i += step) {
        const long long mn = mn0 + across, k = k0 + i;
        tile[across][i] = mn < of.mn && k < of.k ? from[k * of.leading + mn] : 0;
    }
    __syncthreads();
    // Four vectors of 16 bytes a row; those that begin behind K's last element nobody reads.
    const int row = static_cast<int>(threadIdx.x) / 4, column = static_cast<int>(threadIdx.x) % 4 * 16;
    if (mn0 + row < of.mn && k0 + column < of.k) {
        ptx::Words<16> words;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const unsigned char* b = &tile[row][column + 4 * w];
            words.word[w] = b[0] | b[1] << 8 | b[2] << 16 | unsigned(b[3]) << 24;
        }
        ptx::store_words(of.to + matrix * of.packed_stride + (mn0 + row) * of.pitch + k0 + column, words);
    }
}

__global__ void __launch_bounds__(pack_threads) pack_bytes(const __grid_constant__ PackBytesArguments args) {
    // As pack_operands: the GEMM before may still read the copies before.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    __shared__ unsigned char tile[pack_byte_side][pack_byte_side + 1];
    const long long a_blocks = args.a.blocks(), block = blockIdx.x;
    const bool of_a = block < a_blocks;
    const PackedBytes& of = of_a ? args.a : args.b;
    for (unsigned matrix = blockIdx.y; matrix < of.matrices; matrix += gridDim.y) {
        if (of.k_major) {
            pack_byte_rows(of, of_a ? block : block - a_blocks, matrix);
            continue;
        }
        pack_byte_block(of, of_a ? block : block - a_blocks, matrix, tile);
        __syncthreads();
    }
}

}  // namespace rooftile
