// A tile at the end of a group of rows: rows before the end by ordinary stores, since a TMA box would reach into the next group.
#pragma once

#include "kernels/matrix/matrix_arguments.hpp"
#include "kernels/matrix/matrix_config.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile {

/// `rows` rows of an epilogue tile from shared memory to C, 16 B a thread, by `threads` threads of which this is `thread`. `chunk`
/// says where in shared memory 16 B of a row lie; `x`: C's column of the first, at least one of which is C's.
template <MatrixConfig C, int row_bytes, class Chunk>
__device__ void store_rows(const MatrixArguments& args, int m, int x, int rows, int thread, int threads, Chunk chunk) {
    constexpr int chunks = row_bytes / 16, elements = 16 / C.result_bytes();
    for (int i = thread; i < rows * chunks; i += threads) {
        const int row = i / chunks, of_row = i % chunks, column = x + of_row * elements;
        if (column >= C.result_columns(args.n)) continue;  // C's rows are whole 16 B
        ptx::Words<16> words;
        ptx::load_shared(words, chunk(row, of_row));
        char* to = static_cast<char*>(args.c) + ((m + row) * args.ldc + column) * C.result_bytes();
        ptx::store_words(to, words);
    }
    __syncwarp();  // lanes took unlike turns, and what follows wants whole warps (stmatrix, wgmma)
}

}  // namespace rooftile
