// The matrix units at full rate from shared memory, alone or while TMA writes beside them: two warpgroups
// multiply the same 64-deep stages over and over, a ninth warp loads boxes at a chosen pace.
#pragma once

#include "kernels/pipeline/ring.cuh"
#include "kernels/probe/box_sequence.cuh"
#include "kernels/probe/record.cuh"
#include "kernels/probe/wgmma_sums.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

constexpr int wgmma_load_consumers = 256;
constexpr int wgmma_load_threads = wgmma_load_consumers + 32;
constexpr int sum_steps = 64;  ///< stages that one sum is made of, as of K = 4096; then it starts anew

/// Boxes from one 8 MiB region or another into a ring that nobody reads, until the consumers are done.
__device__ inline unsigned long long load_beside(const TensorMap& map, const WgmmaLoadArguments& p,
                                                 unsigned stages, Ring<wgmma_ring_stages> ring,
                                                 const volatile int& done) {
    constexpr unsigned box_bytes = wgmma_ring_rows * 128;
    BoxCursor box(p.sequence);
    unsigned long long boxes = 0;
    RingPosition<wgmma_ring_stages> at;
    const unsigned long long start = probe_cycles();
    while (done == 0) {
        ring.wait_previous(at);
        while ((probe_cycles() - start) * 16 < boxes * static_cast<unsigned>(p.cycles_per_box)) {}
        ring.expect(at.stage, box_bytes);
        ptx::tma_load_2d(stages + static_cast<unsigned>(at.stage) * box_bytes, map, box.x(), box.y(),
                         ring.full(at.stage));
        ++boxes;
        box.advance();
        at.advance();
    }
    // A CTA must not end before its copies.
#pragma unroll 1
    for (int s = 0; s < wgmma_ring_stages; ++s, at.advance()) ring.wait_previous(at);
    return boxes;
}

/// `operands`: what fills the two stages of A and B, 16-byte pieces, bf16 numbers or zeros.
template <int n>
__global__ void __launch_bounds__(wgmma_load_threads, 1)
    wgmma_load(const __grid_constant__ TensorMap map, const uint4* operands, WgmmaLoadArguments p,
               ProbeRecord* records) {
    constexpr unsigned a_bytes = 64 * 128;  // of one warpgroup and stage: 64 rows x 64 of k
    constexpr unsigned b_bytes = n * 128;
    constexpr unsigned stage_bytes = 2 * a_bytes + b_bytes;
    extern __shared__ unsigned char dynamic_shared[];
    __shared__ unsigned long long full[wgmma_ring_stages];
    __shared__ volatile int done;
    const unsigned base = (ptx::shared_address(dynamic_shared) + 1023u) & ~1023u;
    const Ring<wgmma_ring_stages> ring{ptx::shared_address(full)};

    for (unsigned i = threadIdx.x; i < 2 * stage_bytes / 16; i += wgmma_load_threads) {
        const uint4 v = operands[i];
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(base + 16 * i), "r"(v.x), "r"(v.y),
                     "r"(v.z), "r"(v.w)
                     : "memory");
    }
    ptx::fence_async_proxy();  // wgmma reads through the async proxy
    if (threadIdx.x == 0) {
        ring.init_full(1);
        ptx::fence_mbarrier_init();
        done = 0;
    }
    __syncthreads();

    if (threadIdx.x >= wgmma_load_consumers) {
        if (threadIdx.x != wgmma_load_consumers || p.cycles_per_box == 0) return;
        records[blockIdx.x].boxes = load_beside(map, p, base + 2 * stage_bytes, ring, done);
        return;
    }
    const unsigned warpgroup = threadIdx.x / 128;
    float d[n / 2];
#pragma unroll
    for (int j = 0; j < n / 2; ++j) d[j] = 0;
    const ProbeTime begin = probe_time();
    for (int step = 0; step < p.steps; ++step) {
        const unsigned stage = base + static_cast<unsigned>(step & 1) * stage_bytes;
        const auto a = ptx::matrix_descriptor(stage + warpgroup * a_bytes, 16, 1024);
        const auto b = ptx::matrix_descriptor(stage + 2 * a_bytes, 16, 1024);
        multiply_block<n>(d, a, b, step % sum_steps == 0);
    }
    drain<n>(d);
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) {
        done = 1;
        write_record(records, begin, end, __float_as_uint(total<n>(d)));
    }
}

}  // namespace rooftile
