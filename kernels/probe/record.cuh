// The two clocks of a probe kernel. PTX ISA 10 "Special Registers".
#pragma once

#include "kernels/probe/arguments.hpp"

namespace rooftile {

struct ProbeTime {
    unsigned long long cycles, nanoseconds;
};

/// One asm block, so that nothing is moved between the two readings.
__device__ inline ProbeTime probe_time() {
    ProbeTime t;
    asm volatile("mov.u64 %0, %%globaltimer;\n\tmov.u64 %1, %%clock64;"
                 : "=l"(t.nanoseconds), "=l"(t.cycles)::"memory");
    return t;
}

__device__ inline unsigned long long probe_cycles() {
    unsigned long long cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
}

/// The low word alone: differences below 2^32 need no more, and reading it is cheaper.
__device__ inline unsigned probe_cycles_low() {
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
    return cycles;
}

/// Keeps `value` where it is needed in order, as an unknown to the compiler.
__device__ inline void probe_keep(unsigned& value) { asm volatile("" : "+r"(value)::"memory"); }

/// All but `boxes`, which another thread may write.
__device__ inline void write_record(ProbeRecord* records, ProbeTime begin, ProbeTime end, unsigned sink) {
    ProbeRecord& r = records[blockIdx.x];
    r.begin_cycles = begin.cycles;
    r.end_cycles = end.cycles;
    r.begin_nanoseconds = begin.nanoseconds;
    r.end_nanoseconds = end.nanoseconds;
    asm("mov.u32 %0, %%smid;" : "=r"(r.sm));
    r.sink = sink;
}

}  // namespace rooftile
