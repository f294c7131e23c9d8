// Matrices one after the other, transposed, by the definition: what verification reads where a kernel under test transposes. It shares nothing
// with such kernels.
#pragma once

namespace rooftile {

/// to[matrix][column][row] = from[matrix][row][column], of 16-bit elements. Any number of threads.
__global__ void transpose(unsigned short* to, const unsigned short* from, long long matrices, long long rows, long long columns) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x, all = matrices * rows * columns;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        const long long row = i % rows, column = i / rows % columns, matrix = i / rows / columns;
        to[i] = from[(matrix * rows + row) * columns + column];
    }
}

}  // namespace rooftile
