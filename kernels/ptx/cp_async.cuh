// Copies from global to shared memory that pass no register. PTX ISA 9.7.9.25 "cp.async".
#pragma once

namespace rooftile::ptx {

/// 16 bytes past L1 to `shared`, both addresses multiples of 16; zeros instead where `inside` is false, and
/// then `global` is not read.
__device__ inline void copy_async_16(unsigned shared, const void* global, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(inside ? 16 : 0)
                 : "memory");
}

/// 4, 8 or 16 bytes to `shared`, both addresses multiples of that: the first `source_bytes` of them, with zeros after; with
/// none `global` is not read. 16 pass L1 by, and L2 brings whole lines of 128 bytes for them: the neighbours are wanted at once.
template <int bytes>
__device__ inline void copy_async_filled(unsigned shared, const void* global, int source_bytes) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16);
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared),
                     "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared),
                     "l"(__cvta_generic_to_global(global)), "n"(bytes), "r"(source_bytes)
                     : "memory");
}

/// An element, for which cp.async is too wide.
__device__ inline void store_element(unsigned shared, unsigned short value) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(shared), "h"(value) : "memory");
}

__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until all but the newest `pending` groups of this thread have arrived.
template <int pending>
__device__ inline void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace rooftile::ptx
