// entry: product_of_fragments
#include <mma.h>
#include <chrono>
#include <iostream>

using namespace nvcuda;
constexpr int tile = 16;

__global__ void product_of_fragments(const half* a, const half* b, float* c, int m, int n, int k) {
    const int row = blockIdx.y * tile, column = blockIdx.x * tile;
    wmma::fragment<wmma::matrix_a, tile, tile, tile, half, wmma::row_major> of_a;
    wmma::fragment<wmma::matrix_b, tile, tile, tile, half, wmma::col_major> of_b;
    wmma::fragment<wmma::accumulator, tile, tile, tile, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int i = 0; i < k; i += tile) {
        wmma::load_matrix_sync(of_a, a + row * k + i, k);
        wmma::load_matrix_sync(of_b, b + column * k + i, k);
        wmma::mma_sync(sums, of_a, of_b, sums);
    }
    wmma::store_matrix_sync(c + row * n + column, sums, n, wmma::mem_row_major);
}

template <typename F>
double seconds_of(F&& f) {
    auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int main() {
    std::cout << seconds_of([] { product_of_fragments<<<dim3(4, 4), 32>>>(nullptr, nullptr, nullptr, 64, 64, 64); }) << "\n";
}
