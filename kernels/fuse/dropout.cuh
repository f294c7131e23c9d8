// Dropout's mask: Philox 4x32-10 keyed on the element, so that it can be made again anywhere. Element e takes
// word e % 4 of the block at counter e / 4 in stream `offset` under `seed`, and is dropped where that word is
// below p * 2^32: the rate is p to 2^-32.
#pragma once

#include "kernels/measure/philox.hpp"

namespace rooftile::fuse {

/// The host makes it: the rounds then take their keys from the arguments, and no thread adds them up.
struct DropoutKey {
    PhiloxKeys keys;
    unsigned long long offset;
    unsigned long long threshold;  ///< p * 2^32, rounded, at most 2^32 - 1: where p is 1 the scale is 0
};

/// Whether each of `width` consecutive elements from `first` on is kept. `first` is a multiple of `width`.
template <int width>
__device__ inline void kept(bool (&keep)[width], unsigned long long first, const DropoutKey& key) {
    const unsigned threshold = static_cast<unsigned>(key.threshold);
    if constexpr (width % 4 == 0) {
#pragma unroll
        for (int block = 0; block < width / 4; ++block) {
            const PhiloxBlock words = philox(first / 4 + block, key.offset, key.keys);
#pragma unroll
            for (int k = 0; k < 4; ++k) keep[4 * block + k] = words.word[k] >= threshold;
        }
    } else {
#pragma unroll
        for (int k = 0; k < width; ++k) {
            const PhiloxBlock words = philox((first + k) / 4, key.offset, key.keys);
            const unsigned place = (first + k) % 4;  // selects, not an index: words stay in registers
            const unsigned low = place == 0 ? words.word[0] : words.word[1];
            const unsigned high = place == 2 ? words.word[2] : words.word[3];
            keep[k] = (place < 2 ? low : high) >= threshold;
        }
    }
}

}  // namespace rooftile::fuse
