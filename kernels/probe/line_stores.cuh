// A matrix of 16-bit elements stored tile by tile as matrix products store it: by TMA from shared memory, each warp its own
// rows, or straight from registers, where a warp holds 8x8 matrices: two bytes at a time, or by whole 16-byte stores of rows.
#pragma once

#include "kernels/matrix/store_rows.cuh"
#include "kernels/probe/record.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

constexpr int line_store_warps = line_store_threads / 32;
constexpr int line_store_tile_m = line_store_warps * line_store_rows;  // a box's rows for each warp
constexpr int line_store_tile_n = 4 * line_store_columns;

/// Calls `store(m, n)` for the first element of each of the CTA's tiles.
template <class Store>
__device__ void for_each_tile(const LineStoreArguments& p, Store store) {
    const int across = p.columns / line_store_tile_n, tiles = p.rows / line_store_tile_m * across;
    for (int pass = 0; pass < p.passes; ++pass)
        for (int t = static_cast<int>(blockIdx.x); t < tiles; t += static_cast<int>(gridDim.x))
            store(t / across * line_store_tile_m, t % across * line_store_tile_n);
}

__global__ void __launch_bounds__(line_store_threads)
    line_stores_by_tma(const __grid_constant__ TensorMap map, LineStoreArguments p, ProbeRecord* records) {
    // What is stored is whatever lies there.
    __shared__ alignas(1024) unsigned char boxes[line_store_warps][line_store_rows * line_store_columns * 2];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const unsigned from = ptx::shared_address(boxes[warp]);
    const ProbeTime begin = probe_time();
    if (threadIdx.x % 32 == 0)
        for_each_tile(p, [&](int m, int n) {
            for (int box = 0; box < line_store_tile_n / line_store_columns; ++box) {
                ptx::tma_store_wait_read<1>();  // two in flight
                ptx::tma_store_2d(map, from, n + box * line_store_columns, m + warp * line_store_rows);
                ptx::tma_store_commit();
            }
        });
    if (threadIdx.x % 32 == 0) ptx::tma_store_wait_read<0>();
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

__global__ void __launch_bounds__(line_store_threads)
    line_stores_by_element(unsigned char* to, LineStoreArguments p, ProbeRecord* records) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    // Of an 8x8 matrix each lane holds two elements: side by side in a row, or turned, in a column.
    const int row = p.turned ? lane % 4 * 2 : lane / 4, column = p.turned ? lane / 4 : lane % 4 * 2;
    const long long next = p.turned ? p.pitch : 2;
    const ProbeTime begin = probe_time();
    for_each_tile(p, [&](int m, int n) {
        for (int half = 0; half < line_store_rows / 8; ++half) {
            unsigned char* line = to + (m + warp * line_store_rows + half * 8 + row) * p.pitch + (n + column) * 2;
#pragma unroll 8
            for (int j = 0; j < line_store_tile_n / 8; ++j, line += 16) {
                *reinterpret_cast<unsigned short*>(line) = static_cast<unsigned short>(n + j);
                *reinterpret_cast<unsigned short*>(line + next) = static_cast<unsigned short>(m - j);
            }
        }
    });
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

/// The sums of a matrix product that nobody made.
struct StoredSums {
    unsigned value;
    __device__ void pairs(unsigned (&to)[1], int i, int j) const { to[0] = value + i + j; }
};

/// Each warpgroup stores 64 rows of a tile as products do.
__global__ void __launch_bounds__(line_store_threads) line_stores_by_rows(unsigned char* to, LineStoreArguments p, ProbeRecord* records) {
    constexpr MatrixConfig C{.tile_m = 64, .tile_n = line_store_tile_n, .tile_k = 64, .stages = 2, .consumer_warpgroups = 1, .schedule = Schedule::cooperative,
                             .cluster_m = 1, .cluster_n = 1, .ctas_per_sm = 1, .producer_registers = 0, .consumer_registers = 0, .type = Type::bf16,
                             .a_major = Major::k, .b_major = Major::k, .tma_store = false};
    static_assert(line_store_tile_m == line_store_threads / C.warpgroup_threads * C.tile_m);
    const unsigned warpgroup_row = threadIdx.x / C.warpgroup_threads * C.tile_m;
    __shared__ alignas(16) unsigned char rows[line_store_warps * C.staged_bytes()];
    const unsigned staged = ptx::shared_address(rows) + threadIdx.x / 32 * C.staged_bytes();
    const ProbeTime begin = probe_time();
    for_each_tile(p, [&](int m, int n) {
        store_rows<C>(StoredSums{static_cast<unsigned>(m + n)}, reinterpret_cast<unsigned short*>(to), p.pitch / 2, m + warpgroup_row, p.rows, n, p.columns, staged);
    });
    ptx::tma_store_wait_read<0>();
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

}  // namespace rooftile
