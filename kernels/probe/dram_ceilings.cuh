// What device memory gives by the share that is written, the order of addresses, and how long it goes one way before it turns round.
#pragma once

#include "kernels/probe/record.cuh"

namespace rooftile {

constexpr int ceiling_threads = 256;

/// A step of a CTA reads `reads` pieces of 4 KiB from `from` and writes `writes` to `to`, all loads before the first store; `steps` of them,
/// one after the other over the CTAs.
template <int reads, int writes>
__global__ void __launch_bounds__(ceiling_threads) dram_mix(uint4* to, const uint4* from, long long steps, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    unsigned sum = blockIdx.x;
    for (long long step = blockIdx.x; step < steps; step += gridDim.x) {
        uint4 v[reads > 0 ? reads : 1];
#pragma unroll
        for (int j = 0; j < reads; ++j) v[j] = __ldcg(from + (step * reads + j) * ceiling_threads + threadIdx.x);
#pragma unroll
        for (int j = 0; j < reads; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
        probe_keep(sum);
        // Not one value all over: L2 may keep lines of equal words compressed.
        const unsigned word = static_cast<unsigned>(step) * 0x9E3779B9u ^ threadIdx.x;
#pragma unroll
        for (int j = 0; j < writes; ++j)
            to[(step * writes + j) * ceiling_threads + threadIdx.x] = uint4{word ^ j, word * 3u, sum, word + 0x85ebca6bu};
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sum);
}

/// CTAs that only read beside CTAs that only write, one of each in turn: each way `steps` pieces of 4 x 4 KiB.
__global__ void __launch_bounds__(ceiling_threads) dram_split(uint4* to, const uint4* from, long long steps, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    unsigned sum = 0;
    const bool writes = blockIdx.x % 2 != 0;
    for (long long step = blockIdx.x / 2; step < steps; step += gridDim.x / 2) {
        const long long first = step * 4 * ceiling_threads + threadIdx.x;
        if (writes) {
            const unsigned word = static_cast<unsigned>(first) * 0x9E3779B9u;
#pragma unroll
            for (int j = 0; j < 4; ++j)
                to[first + j * ceiling_threads] = uint4{word ^ j, word * 3u, word ^ 0x5bd1e995u, word + 0x85ebca6bu};
        } else {
            uint4 v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) v[j] = __ldcg(from + first + j * ceiling_threads);
#pragma unroll
            for (int j = 0; j < 4; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
            probe_keep(sum);
        }
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sum);
}

/// Blocks of 2^block x 16 B, each once: those that follow each other in time are a stride of 2^stride x 16 B from one to the next in a column of
/// 2^rows. `count` x 16 B in all, 4 of a thread in flight.
__global__ void __launch_bounds__(ceiling_threads)
    dram_blocks(const uint4* from, long long count, int block, int stride, int rows, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    unsigned sum = 0;
    const long long step = static_cast<long long>(gridDim.x) * ceiling_threads * 4;
    for (long long i = static_cast<long long>(blockIdx.x) * ceiling_threads * 4 + threadIdx.x; i < count; i += step) {
        uint4 v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const long long word = i + j * ceiling_threads, number = word >> block, row = number & ((1ll << rows) - 1);
            v[j] = __ldcg(from + (row << stride) + (number >> rows << block) + (word & ((1ll << block) - 1)));
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
        probe_keep(sum);
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sum);
}

}  // namespace rooftile
