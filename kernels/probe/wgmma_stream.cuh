// The main loop of a matrix product as a load that can be kept up: one warp brings stages of A and B by TMA, two
// warpgroups multiply each once, as fast as both can. Every product has numbers it has not had before, as in
// a product: the matrix units' power follows the bits that change.
#pragma once

#include "kernels/pipeline/ring.cuh"
#include "kernels/probe/box_sequence.cuh"
#include "kernels/probe/record.cuh"
#include "kernels/probe/wgmma_sums.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

constexpr int wgmma_stream_consumers = 256;
constexpr int wgmma_stream_threads = wgmma_stream_consumers + 32;
constexpr int stream_sum_steps = 64;  ///< k-steps of one sum, as of K = 4096; then it starts anew

/// A's box and then B's of each stage, one after the other along the sequence.
template <int n>
__device__ inline void fill_stages(const TensorMap& map, const WgmmaStreamArguments& p, unsigned stages,
                                   Ring<wgmma_stream_stages> ring) {
    constexpr unsigned box_bytes = wgmma_stream_rows * 128;
    constexpr unsigned boxes = 1 + n / wgmma_stream_rows;
    BoxCursor box(p.sequence);
    RingPosition<wgmma_stream_stages> at;
    for (int step = 0; step < p.steps; ++step, at.advance()) {
        ring.acquire(at);
        ring.expect(at.stage, boxes * box_bytes);
#pragma unroll
        for (unsigned i = 0; i < boxes; ++i) {
            ptx::tma_load_2d(stages + (at.stage * boxes + i) * box_bytes, map, box.x(), box.y(),
                             ring.full(at.stage));
            box.advance();
        }
    }
}

/// Boxes of `map` have wgmma_stream_rows rows.
template <int n>
__global__ void __launch_bounds__(wgmma_stream_threads, 1)
    wgmma_stream(const __grid_constant__ TensorMap map, WgmmaStreamArguments p, ProbeRecord* records) {
    static_assert(n % wgmma_stream_rows == 0);
    constexpr unsigned a_bytes = wgmma_stream_rows * 128, stage_bytes = a_bytes + n * 128;
    extern __shared__ unsigned char dynamic_shared[];
    __shared__ unsigned long long barriers[2 * wgmma_stream_stages];
    const unsigned stages = (ptx::shared_address(dynamic_shared) + 1023u) & ~1023u;
    const Ring<wgmma_stream_stages> ring{ptx::shared_address(barriers)};
    if (threadIdx.x == 0) {
        ring.init(1, wgmma_stream_consumers / 32);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x >= wgmma_stream_consumers) {
        if (threadIdx.x == wgmma_stream_consumers) fill_stages<n>(map, p, stages, ring);
        return;
    }
    const unsigned warpgroup = threadIdx.x / 128;
    float d[n / 2];
#pragma unroll
    for (int j = 0; j < n / 2; ++j) d[j] = 0;
    RingPosition<wgmma_stream_stages> at;
    int previous = 0;
    const ProbeTime begin = probe_time();
    for (int step = 0; step < p.steps; ++step, at.advance()) {
        ring.wait(at);
        const unsigned stage = stages + at.stage * stage_bytes;
        const auto a = ptx::matrix_descriptor(stage + warpgroup * (a_bytes / 2), 16, 1024);
        const auto b = ptx::matrix_descriptor(stage + a_bytes, 16, 1024);
        multiply_block<n>(d, a, b, step % stream_sum_steps == 0);
        if (step > 0) ring.release(previous);
        previous = at.stage;
    }
    drain<n>(d);
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) {
        write_record(records, begin, end, __float_as_uint(total<n>(d)));
        records[blockIdx.x].boxes = static_cast<unsigned long long>(p.steps) * (1 + n / wgmma_stream_rows);
    }
}

}  // namespace rooftile
