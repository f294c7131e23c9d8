// A CTA makes 64 x 64 of C from tiles of A and B in shared memory, 16 of the inner extent at a time; a thread
// keeps 4 x 4 sums in registers.
#include <cuda_bf16.h>

constexpr int tile = 64, deep = 16, own = 4;

template <bool with_bias, bool with_gelu>
__global__ void matmul(__nv_bfloat16* c, const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* bias, int rows,
                       int columns, int inner) {
    __shared__ float tile_a[deep][tile + 1], tile_b[deep][tile + 1];
    const int row = blockIdx.y * tile, column = blockIdx.x * tile;
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    float sums[own][own] = {};
    for (int k = 0; k < inner; k += deep) {
        for (int i = threadIdx.x; i < tile * deep; i += blockDim.x) {
            const int line = i / deep, place = i % deep;
            const bool inside_a = k + place < inner && row + line < rows, inside_b = k + place < inner && column + line < columns;
            tile_a[place][line] = inside_a ? __bfloat162float(a[(row + line) * (long long)inner + k + place]) : 0.0f;
            tile_b[place][line] = inside_b ? __bfloat162float(b[(column + line) * (long long)inner + k + place]) : 0.0f;
        }
        __syncthreads();
        for (int place = 0; place < deep; ++place)
            for (int i = 0; i < own; ++i)
                for (int j = 0; j < own; ++j) sums[i][j] += tile_a[place][ty + 16 * i] * tile_b[place][tx + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j) {
            const int r = row + ty + 16 * i, n = column + tx + 16 * j;
            if (r >= rows || n >= columns) continue;
            float v = sums[i][j];
            if (with_bias) v += __bfloat162float(bias[n]);
            if (with_gelu) v = 0.5f * v * (1.0f + erff(v * 0.70710678f));
            c[r * (long long)columns + n] = __float2bfloat16(v);
        }
}
