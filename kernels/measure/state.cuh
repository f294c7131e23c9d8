// The GPU's state around a timed region: what L2 holds, and how fast the SMs run.
#pragma once

#include "kernels/measure/arguments.hpp"

namespace rooftile {

/// Reads and writes every byte, so that L2 holds these lines, modified, and no one else's. A memset alone
/// would not do: L2 may keep a line of zeros compressed, and lines set persisting stay.
__global__ void flush(uint4* data, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 v = data[i];
        v.x += 1;
        v.y ^= v.x;
        data[i] = v;
    }
}

/// The roof of DRAM traffic as code sees it: every byte read once and written once, 16 at a time.
__global__ void copy(uint4* to, const uint4* from, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = from[i];
    }
}

/// The roof of what only reads: every byte once, 16 at a time, four loads of a thread in flight before the first
/// is used. Words that sum to `never` alone would be told.
__global__ void read(const uint4* from, long long count, unsigned never, unsigned* told) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (; i + 3 * step < count; i += 4 * step) {
        const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
        sum += (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w)
               + (d.x ^ d.y ^ d.z ^ d.w);
    }
    for (; i < count; i += step) {
        const uint4 a = from[i];
        sum += a.x ^ a.y ^ a.z ^ a.w;
    }
    if (sum == never) *told = sum;
}

/// Each SM that runs a CTA of this writes its cycle counter and the GPU's nanosecond timer. Two stamps
/// give the mean SM clock between them, SM by SM; `stamps` has one entry an SM.
__global__ void stamp(ClockStamp* stamps, unsigned sms) {
    if (threadIdx.x != 0) return;
    unsigned sm;
    unsigned long long cycles, nanoseconds;
    // PTX ISA, "Special Registers". One asm block, so that nothing is moved between the two readings.
    asm volatile("mov.u32 %0, %%smid;\n\tmov.u64 %1, %%globaltimer;\n\tmov.u64 %2, %%clock64;"
                 : "=r"(sm), "=l"(nanoseconds), "=l"(cycles)::"memory");
    if (sm < sms) stamps[sm] = {cycles, nanoseconds};
}

}  // namespace rooftile
