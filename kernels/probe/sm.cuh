// What happens inside one SM: shared memory, barriers, arithmetic.
#pragma once

#include "kernels/probe/record.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

constexpr int shared_read_bytes = 64 * 1024;

/// `loops` x 8 conflict-free 16-byte loads a thread, from 64 KiB of `data`: 8 KiB apart, and `step` bytes, a
/// multiple of 16, further on from loop to loop. Only the launch knows `step`: loads of one address again and
/// again are made once by the compiler.
__global__ void __launch_bounds__(1024)
    shared_read(const uint4* data, int loops, unsigned step, ProbeRecord* records) {
    extern __shared__ uint4 dynamic_shared_words[];
    for (unsigned i = threadIdx.x; i < shared_read_bytes / 16; i += blockDim.x)
        dynamic_shared_words[i] = data[i];
    __syncthreads();
    const unsigned base = ptx::shared_address(dynamic_shared_words);
    unsigned offset = 16 * (threadIdx.x % 512);
    unsigned sum = 0;
    const ProbeTime begin = probe_time();
#pragma unroll 1
    for (int i = 0; i < loops; ++i) {
        offset = (offset + step) % 8192;
        uint4 v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w)
                         : "r"(base + offset + j * 8192));
#pragma unroll
        for (int j = 0; j < 8; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sum);
}

/// A chain of dependent loads by one thread; each gives the next one's address as it is, so nothing but the
/// loads is in the chain.
__global__ void shared_chase(int loads, ProbeRecord* records) {
    __shared__ unsigned next[1024];
    if (threadIdx.x != 0) return;
    const unsigned base = ptx::shared_address(next);
    for (unsigned i = 0; i < 1024; ++i) next[i] = base + 4 * ((i + 33) % 1024);
    unsigned at = base;
    const ProbeTime begin = probe_time();
    for (int i = 0; i < loads; ++i) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
    write_record(records, begin, probe_time(), at);
}

/// __syncthreads, `loops` times; the launch chooses the warps.
__global__ void cta_barrier(int loops, ProbeRecord* records) {
    __syncthreads();
    const ProbeTime begin = probe_time();
    for (int i = 0; i < loops; ++i) __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, 0);
}

/// Two warps hand one token back and forth over two barriers: `loops` times there and back.
__global__ void __launch_bounds__(64) mbarrier_pingpong(int loops, ProbeRecord* records) {
    __shared__ unsigned long long barriers[2];
    const unsigned there = ptx::shared_address(&barriers[0]), back = ptx::shared_address(&barriers[1]);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(there, 1);
        ptx::mbarrier_init(back, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const ProbeTime begin = probe_time();
        for (int i = 0; i < loops; ++i) {
            ptx::mbarrier_arrive(there);
            ptx::mbarrier_wait(back, i & 1);
        }
        write_record(records, begin, probe_time(), 0);
    } else if (threadIdx.x == 32) {
        for (int i = 0; i < loops; ++i) {
            ptx::mbarrier_wait(there, i & 1);
            ptx::mbarrier_arrive(back);
        }
    }
}

/// One thread arrives and waits on its own barrier.
__global__ void mbarrier_alone(int loops, ProbeRecord* records) {
    __shared__ unsigned long long word;
    const unsigned barrier = ptx::shared_address(&word);
    if (threadIdx.x != 0) return;
    ptx::mbarrier_init(barrier, 1);
    const ProbeTime begin = probe_time();
    for (int i = 0; i < loops; ++i) {
        ptx::mbarrier_arrive(barrier);
        ptx::mbarrier_wait(barrier, i & 1);
    }
    write_record(records, begin, probe_time(), 0);
}

/// `loops` x `unroll` rounds of `op` on each of a thread's alu_chains numbers.
template <int unroll, class Op>
__device__ void alu_rate(float x, int loops, ProbeRecord* records, Op op) {
    float v[alu_chains];
#pragma unroll
    for (int j = 0; j < alu_chains; ++j) v[j] = x + static_cast<float>(threadIdx.x + j) * 1e-3f;
    __syncthreads();
    const ProbeTime begin = probe_time();
#pragma unroll 1
    for (int i = 0; i < loops; ++i) {
#pragma unroll
        for (int u = 0; u < unroll; ++u)
#pragma unroll
            for (int j = 0; j < alu_chains; ++j) op(v[j]);
    }
    __syncthreads();
    const ProbeTime end = probe_time();
    float sum = 0;
#pragma unroll
    for (int j = 0; j < alu_chains; ++j) sum += v[j];
    if (threadIdx.x == 0) write_record(records, begin, end, __float_as_uint(sum));
}

/// `loops` x alu_chains x fma_unroll fp32 fused multiply-adds a thread.
__global__ void __launch_bounds__(1024) fma_rate(float x, int loops, ProbeRecord* records) {
    alu_rate<fma_unroll>(x, loops, records, [x](float& v) {
        asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(v) : "f"(x));
    });
}

/// `loops` x alu_chains x mufu_unroll ex2.approx a thread.
__global__ void __launch_bounds__(1024) mufu_rate(float x, int loops, ProbeRecord* records) {
    alu_rate<mufu_unroll>(x, loops, records, [](float& v) {
        asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));
    });
}

/// Holds an SM for `cycles` and does nothing.
__global__ void spin(unsigned long long cycles, ProbeRecord* records) {
    const ProbeTime begin = probe_time();
    while (probe_cycles() - begin.cycles < cycles) {}
    if (threadIdx.x == 0) write_record(records, begin, probe_time(), 0);
}

__global__ void empty_kernel() {}

}  // namespace rooftile
