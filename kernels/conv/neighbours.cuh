// Neighbouring channels of a pixel, loaded together, and neighbouring filters of a place through a caller's expression.
#pragma once

#include "kernels/matrix/epilogue_pair.cuh"

namespace rooftile {

/// `count` 16-bit numbers at `from`, by loads of `bytes`; zeros where `there` is not.
template <int count, int bytes>
__device__ __forceinline__ void load_channels(unsigned (&to)[(count + 1) / 2], const unsigned short* from, bool there) {
    static_assert(2 * count % bytes == 0);
#pragma unroll
    for (int i = 0; i < (count + 1) / 2; ++i) to[i] = 0;
    if (!there) return;
#pragma unroll
    for (int i = 0; i < 2 * count / bytes; ++i) {
        if constexpr (bytes == 16) {
            const uint4 v = __ldg(reinterpret_cast<const uint4*>(from) + i);
            to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
        } else if constexpr (bytes == 8) {
            const uint2 v = __ldg(reinterpret_cast<const uint2*>(from) + i);
            to[2 * i] = v.x, to[2 * i + 1] = v.y;
        } else if constexpr (bytes == 4) {
            to[i] = __ldg(reinterpret_cast<const unsigned*>(from) + i);
        } else {
            to[i / 2] |= static_cast<unsigned>(__ldg(from + i)) << 16 * (i % 2);
        }
    }
}

template <class Epilogue>
__device__ __forceinline__ auto once_of(const Epilogue& epilogue) {
    if constexpr (is_plain<Epilogue>()) return 0;
    else return epilogue.once();
}

/// A place's sums of `count` neighbouring filters from `filter` on through the expression; `row`: the place among all of the result's. `whole`: all of them
/// are filters. A filter that has no neighbour with it here is a pair of which the second is outside: turned, since neighbours in a row would be loaded as
/// one aligned word.
template <bool whole = true, int count, class Epilogue>
__device__ __forceinline__ void finish(float (&sums)[count], const Epilogue& epilogue, const auto& once, const auto& p, int row, int filter) {
    if constexpr (!is_plain<Epilogue>()) {
        constexpr bool alone = count == 1;
        constexpr int pairs = alone ? 1 : count / 2;
        const auto pair = [&](int i) {
            return EpiloguePair{row, filter, 0, 2 * i, static_cast<int>(p.rows), p.filters, 0, whole || filter + 2 * i < p.filters, !alone && (whole || filter + 2 * i + 1 < p.filters)};
        };
        typename Epilogue::Operands operands[pairs];
#pragma unroll
        for (int i = 0; i < pairs; ++i) epilogue.template load<alone>(operands[i], pair(i));
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
            float finished[2];
            epilogue.template apply<alone>(finished, sums[2 * i], alone ? 0 : sums[2 * i + !alone], operands[i], once, pair(i));
            sums[2 * i] = finished[0];
            if constexpr (!alone) sums[2 * i + 1] = finished[1];
        }
    }
}

}  // namespace rooftile
