// Which tiles a team of CTAs computes, one after the other, where the grid stays for all of them. A team is the
// `cluster` CTAs that work on one tile together; tiles are numbered, and a kernel's own order gives a number its
// place in the result.
#pragma once

namespace rooftile {

/// `rows` x `columns` tiles in fixed turns: of T teams team t takes tiles t, t + T, .. Every role advances its own copy.
template <int cluster>
struct StaticTileScheduler {
    int rows, columns;
    int index = static_cast<int>(blockIdx.x / cluster);
    int step = static_cast<int>(gridDim.x / cluster);

    __device__ bool more() const { return index < rows * columns; }
    __device__ bool more_after_this() const { return index + step < rows * columns; }
    __device__ void advance() { index += step; }
};

}  // namespace rooftile
