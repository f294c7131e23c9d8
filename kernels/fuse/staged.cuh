// Rows that wait in shared memory, and bulk copies that bring them there or to L2.
#pragma once

#include "kernels/fuse/pack.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile::fuse {

/// `count` vectors of a tensor; of one thread, whose barrier expects them.
template <CachePolicy policy = CachePolicy::normal, class T, int vector_width>
__device__ inline void fetch(Pack<T, vector_width>* to, const T* tensor, long long vector, unsigned count,
                             unsigned barrier) {
    constexpr unsigned bytes = vector_width * sizeof(T);
    if (count > 0)
        ptx::bulk_load<policy>(ptx::shared_address(to), tensor + vector * vector_width, count * bytes,
                               barrier);
}

/// Brings to L2 one of `shares` of `count` vectors, number `share`; vectors are whole units of 16 bytes.
template <int vector_width, class T>
__device__ inline void bring_to_l2(const T* tensor, long long vector, unsigned count, unsigned share,
                                   unsigned shares) {
    const unsigned each = (count + shares - 1) / shares, from = share * each;
    constexpr unsigned bytes = vector_width * sizeof(T);
    if (from < count)
        ptx::bulk_prefetch(tensor + (vector + from) * vector_width, min(each, count - from) * bytes);
}

/// A vector that waits there. Volatile: the compiler would rather hold a row in registers from pass to pass.
template <class T, int vector_width>
__device__ inline Pack<T, vector_width> waiting(const Pack<T, vector_width>* from) {
    Pack<T, vector_width> pack;
    constexpr int bytes = vector_width * sizeof(T), access = least(16, bytes);
    if constexpr (access < 4) {
        pack = *from;
    } else {
        using Words = ptx::Words<access>;
        const unsigned shared = ptx::shared_address(from);
#pragma unroll
        for (int i = 0; i < bytes / access; ++i)
            ptx::load_shared(reinterpret_cast<Words*>(&pack)[i], shared + i * access);
    }
    return pack;
}

}  // namespace rooftile::fuse
