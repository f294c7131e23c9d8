// Device memory and L2 through ordinary loads and stores, 16 bytes a thread and access.
#pragma once

#include "kernels/probe/record.cuh"

namespace rooftile {

/// Every byte of `data` once, `passes` times; `unroll` loads of a thread are in flight. Past L1.
template <int unroll>
__global__ void __launch_bounds__(256)
    stream_read(const uint4* data, long long count, int passes, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    const long long step = static_cast<long long>(gridDim.x) * 256 * unroll;
    unsigned sum = 0;
    for (int pass = 0; pass < passes; ++pass) {
        for (long long i = static_cast<long long>(blockIdx.x) * 256 * unroll + threadIdx.x; i < count;
             i += step) {
            uint4 v[unroll];
#pragma unroll
            for (int j = 0; j < unroll; ++j) v[j] = __ldcg(data + i + j * 256);
#pragma unroll
            for (int j = 0; j < unroll; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
        }
        probe_keep(sum);
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sum);
}

/// `count` is a multiple of 256 x `unroll`, as for the read.
template <int unroll>
__global__ void __launch_bounds__(256) stream_write(uint4* data, long long count, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    const long long step = static_cast<long long>(gridDim.x) * 256 * unroll;
    for (long long i = static_cast<long long>(blockIdx.x) * 256 * unroll + threadIdx.x; i < count;
         i += step) {
        // Not one value all over: L2 may keep lines of equal words compressed.
        const unsigned word = static_cast<unsigned>(i) * 0x9E3779B9u;
#pragma unroll
        for (int j = 0; j < unroll; ++j)
            data[i + j * 256] = uint4{word ^ j, word * 3u, word ^ 0x5bd1e995u, word + 0x85ebca6bu};
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

template <int unroll>
__global__ void __launch_bounds__(256)
    stream_copy(uint4* to, const uint4* from, long long count, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    const long long step = static_cast<long long>(gridDim.x) * 256 * unroll;
    for (long long i = static_cast<long long>(blockIdx.x) * 256 * unroll + threadIdx.x; i < count;
         i += step) {
        uint4 v[unroll];
#pragma unroll
        for (int j = 0; j < unroll; ++j) v[j] = __ldcg(from + i + j * 256);
#pragma unroll
        for (int j = 0; j < unroll; ++j) to[i + j * 256] = v[j];
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

/// Cycles of each of `count` loads, one after the other, by one thread: data[order[i]], words. The value goes
/// to shared memory before the clock is read again, so the reading waits for it. Where `warm`, each line was
/// loaded twice before. `out[count]` is the same without a load.
__global__ void line_latency(const unsigned* data, const unsigned* order, int count, int warm,
                             unsigned* out) {
    __shared__ unsigned long long kept;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&kept));
    unsigned empty = ~0u;
    for (int i = 0; i < 64; ++i) {
        const unsigned begin = probe_cycles_low();
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(begin) : "memory");
        const unsigned cycles = probe_cycles_low() - begin;
        empty = cycles < empty ? cycles : empty;
    }
    out[count] = empty;
    for (int pass = warm ? 0 : 2; pass < 3; ++pass) {
        for (int i = 0; i < count; ++i) {
            const unsigned* at = data + order[i];
            unsigned value;
            // The address is there before the clock is read: this store waits for it.
            asm volatile("st.shared.u64 [%0], %1;" ::"r"(to), "l"(at) : "memory");
            const unsigned begin = probe_cycles_low();
            asm volatile(
                "ld.global.cg.u32 %0, [%1];\n\t"
                "st.shared.u32 [%2], %0;"
                : "=&r"(value)
                : "l"(at), "r"(to)
                : "memory");
            const unsigned end = probe_cycles_low();
            out[i] = end - begin;
        }
    }
}

/// Cycles a load in a chain of `loads` that each give the next one's index, by one thread, through L1.
__global__ void l1_chase(const unsigned* next, int loads, ProbeRecord* records) {
    unsigned at = 0;
    ProbeTime begin{};
    for (int pass = 0; pass < 2; ++pass) {  // the first warms L1
        begin = probe_time();
        for (int i = 0; i < loads; ++i)
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(next + at) : "memory");
    }
    write_record(records, begin, probe_time(), at);
}

}  // namespace rooftile
