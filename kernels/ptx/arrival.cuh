// CTAs of one grid that count themselves in device memory. PTX ISA 9.7.13.5 "atom", 9.7.13.6 "red", 9.7.9.8 "ld",
// 9.7.13.1 "barrier.red", 8.7 "Memory Consistency Model".
#pragma once

namespace rooftile::ptx {

/// Counts this thread at `counter`, which goes 0 to `last` and then to 0 again; how many came before. What it, or whoever it
/// met at a barrier, wrote before is seen by those who count themselves later, and by whom they meet then.
__device__ inline unsigned count_arrival(unsigned* counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

/// One more at `counter`. What this thread wrote, or knows to be written, is seen by whoever finds it there by load_acquire().
__device__ inline void count_release(unsigned* counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ inline unsigned load_acquire(const unsigned* counter) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}

/// Named barrier `id` over `threads` threads, whole warps; whether `mine` was true in any of them.
__device__ inline bool named_barrier_any(int id, int threads, bool mine) {
    unsigned any;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %3, 0;\n"
        "bar.red.or.pred p, %1, %2, p;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(any)
        : "r"(id), "r"(threads), "r"(static_cast<unsigned>(mine))
        : "memory");
    return any != 0;
}

}  // namespace rooftile::ptx
