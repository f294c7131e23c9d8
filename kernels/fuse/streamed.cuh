// What nobody reads again, beside rows that wait in L2: of its lines L2 gives up these first.
#pragma once

#include "kernels/fuse/pack.cuh"

namespace rooftile::fuse {

template <class T, int vector_width>
__device__ inline void load_streamed(Pack<T, vector_width>& to, const T* tensor, long long vector,
                                     unsigned further = 0) {
    if constexpr (sizeof(to) % sizeof(uint4) != 0) {
        load(to, tensor, vector, further);
    } else {
        const auto* from =
            reinterpret_cast<const uint4*>(tensor + vector * vector_width + further * vector_width);
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(to) / sizeof(uint4)); ++i)
            reinterpret_cast<uint4*>(&to)[i] = __ldcs(from + i);
    }
}

template <class T, int vector_width>
__device__ inline void store_streamed(T* tensor, long long vector, const Pack<T, vector_width>& from,
                                      unsigned further = 0) {
    if constexpr (sizeof(from) % sizeof(uint4) != 0) {
        store(tensor, vector, from, further);
    } else {
        auto* to = reinterpret_cast<uint4*>(tensor + vector * vector_width + further * vector_width);
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(from) / sizeof(uint4)); ++i)
            __stcs(to + i, reinterpret_cast<const uint4*>(&from)[i]);
    }
}

}  // namespace rooftile::fuse
