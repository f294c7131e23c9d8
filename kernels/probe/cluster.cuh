// CTAs of one cluster: their barrier, and reading each other's shared memory.
#pragma once

#include "kernels/probe/record.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// Arrive (release) and wait (acquire), `loops` times, by every thread of the cluster.
__global__ void cluster_barrier(int loops, ProbeRecord* records) {
    ptx::cluster_sync();
    const ProbeTime begin = probe_time();
    for (int i = 0; i < loops; ++i) ptx::cluster_sync();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

/// A chain of dependent loads by one thread of each CTA, from the next CTA of the cluster.
__global__ void dsmem_chase(int loads, int ctas, ProbeRecord* records) {
    __shared__ unsigned next[1024];
    const unsigned peer = ptx::map_to_rank(ptx::shared_address(next), (ptx::cluster_rank() + 1) % ctas);
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = 4 * ((i + 33) % 1024);
    ptx::cluster_sync();
    // Only the first CTA: the others would share the way.
    if (threadIdx.x == 0 && ptx::cluster_rank() == 0) {
        unsigned at = 0;
        const ProbeTime begin = probe_time();
        for (int i = 0; i < loads; ++i)
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(at) : "r"(peer + at) : "memory");
        write_record(records, begin, probe_time(), at);
    }
    ptx::cluster_sync();  // nobody leaves while another reads here
}

constexpr int dsmem_read_bytes = 32 * 1024;

/// Every thread loads 16 bytes at a time, `loops` x 4, from 32 KiB of the next CTA; all CTAs at once. `step`
/// as for shared_read.
__global__ void __launch_bounds__(512)
    dsmem_read(const uint4* data, int loops, unsigned step, int ctas, ProbeRecord* records) {
    extern __shared__ uint4 dynamic_shared_words[];
    for (unsigned i = threadIdx.x; i < dsmem_read_bytes / 16; i += blockDim.x)
        dynamic_shared_words[i] = data[i];
    const unsigned peer =
        ptx::map_to_rank(ptx::shared_address(dynamic_shared_words), (ptx::cluster_rank() + 1) % ctas);
    unsigned offset = 16 * threadIdx.x;
    ptx::cluster_sync();
    float sum[4] = {};
    const ProbeTime begin = probe_time();
#pragma unroll 1
    for (int i = 0; i < loops; ++i) {
        offset = (offset + step) % 8192;
        float v[4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) ptx::load_cluster<4>(v[j], peer + offset + j * 8192);
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += v[j][0] + v[j][1] + v[j][2] + v[j][3];
    }
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0)
        write_record(records, begin, end, __float_as_uint(sum[0] + sum[1] + sum[2] + sum[3]));
    ptx::cluster_sync();
}

}  // namespace rooftile
