// Run-time arguments of sm90_two_gemms, laid out alike on host and device.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"

namespace rooftile {

struct TwoGemmsArguments {
    GemmArguments first, second;
    int chunks, first_chunk_rows, second_chunk_rows;  ///< as ChunkedOrder has them
    /// Chunks of H that there is memory for, and their rows: fewer chunks than there are lie where others lay, or there is room for all. With
    /// fewer, tiles at the end stay where they are instead of ending with the result: their rows are their chunk's.
    int room_chunks, room_rows;
    unsigned chunk_readers;  ///< tiles of the second product that read a chunk, the last one apart
    // In the workspace, 0 before the launch and after it:
    unsigned* next;      ///< the tile that comes next
    unsigned* finished;  ///< CTAs that have brought all their tiles
    unsigned* ready;     ///< of each row of tiles of the first product, warps that have stored theirs
    unsigned* taken;     ///< of each chunk whose place another one takes, tiles of the second product that have read theirs
};

}  // namespace rooftile
