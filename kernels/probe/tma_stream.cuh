// One thread a CTA keeps a ring of TMA boxes in flight and looks at none of the bytes: what the copy engine
// and the memory behind it give one SM.
#pragma once

#include "kernels/pipeline/ring.cuh"
#include "kernels/probe/box_sequence.cuh"
#include "kernels/probe/record.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

constexpr int tma_stream_max_stages = 64;

/// `tensor`: boxes of a two-dimensional map, as a matrix product loads them; else the same bytes in one piece each.
template <bool tensor>
__global__ void __launch_bounds__(32)
    tma_stream(const __grid_constant__ TensorMap map, const unsigned char* data, TmaStreamArguments p,
               ProbeRecord* records) {
    extern __shared__ unsigned char dynamic_shared[];
    __shared__ unsigned long long full[tma_stream_max_stages];
    if (threadIdx.x != 0) return;
    const unsigned stages = (ptx::shared_address(dynamic_shared) + 1023u) & ~1023u;
    const Ring<tma_stream_max_stages> ring{ptx::shared_address(full)};
    const unsigned box_bytes = static_cast<unsigned>(p.sequence.box_rows) * 128u;
    ring.init_full(1, p.stages);
    ptx::fence_mbarrier_init();
    if (tensor) ptx::tma_prefetch_map(map);

    BoxCursor box(p.sequence);
    RingPosition<tma_stream_max_stages> at;
    const ProbeTime begin = probe_time();
    for (int i = 0; i < p.boxes; ++i, at.advance(p.stages)) {
        ring.wait_previous(at);
        ring.expect(at.stage, box_bytes);
        const unsigned barrier = ring.full(at.stage);
        const unsigned to = stages + static_cast<unsigned>(at.stage) * box_bytes;
        if (tensor) ptx::tma_load_2d(to, map, box.x(), box.y(), barrier);
        else ptx::bulk_load(to, data + box.index() * box_bytes, box_bytes, barrier);
        box.advance();
    }
    for (int s = 0; s < p.stages; ++s, at.advance(p.stages)) ring.wait_previous(at);
    const ProbeTime end = probe_time();
    unsigned sink;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(sink) : "r"(stages) : "memory");
    write_record(records, begin, end, sink);
    records[blockIdx.x].boxes = static_cast<unsigned long long>(p.boxes);
}

}  // namespace rooftile
