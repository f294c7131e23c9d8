// Copies operands of 8 bits to where wgmma can take them: rows of K, whatever ran along them before, that begin on 128-byte lines
// of L2 and are filled up with zeros to whole 16 bytes.
//
// Rows of K are copied as lines. What runs along the other index goes through shared memory, a block of 64 x 64 elements a CTA, of which a
// thread writes 16 bytes of K.
#pragma once

#include "kernels/gemm/pack.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// Block number `block` of one matrix that is contiguous along the other index.
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
    const long long a_ctas = args.a.ctas();
    const bool of_a = blockIdx.x < a_ctas;
    const PackedBytes& of = of_a ? args.a : args.b;
    const long long block = of_a ? blockIdx.x : blockIdx.x - a_ctas;
    if (of.k_major) return pack_matrices(of.lines(), block);
    for (unsigned matrix = blockIdx.y; matrix < of.matrices; matrix += gridDim.y) {
        pack_byte_block(of, block, matrix, tile);
        __syncthreads();
    }
}

}  // namespace rooftile
