// Dropout's mask: Philox 4x32-7 keyed on the element, so that it can be made again anywhere. Elements share
// a word by twos and a block by eights: element e takes word e % 8 / 2 of the block at counter e / 8 in
// stream `offset` under `seed`, times `dropout_fold` where e is even, and is dropped where that is below
// p * 2^32. So each element's rate is p to 2^-32; the two of a word are independent in their leading 16 bits,
// and the chance that both are dropped is p^2 to within p * 2^-15 + 2^-32.
#pragma once

#include "kernels/measure/philox.hpp"

namespace rooftile::expression {

/// The host makes it: the rounds then take their keys from the arguments, and no thread adds them up.
struct DropoutKey {
    PhiloxKeys<dropout_rounds> keys;
    unsigned long long offset;
    unsigned threshold;  ///< p * 2^32, rounded, at most 2^32 - 1: where p is 1 the scale is 0
    unsigned fold;  ///< dropout_fold, as a number that the compiler does not know: a product, not a shift
};

/// Element `place` of its block of eight.
__device__ inline unsigned draw_of(const PhiloxBlock& block, unsigned place, unsigned fold) {
    // Selects, not an index: the words stay in registers.
    const unsigned low = place < 2 ? block.word[0] : block.word[1];
    const unsigned high = place < 6 ? block.word[2] : block.word[3];
    const unsigned word = place < 4 ? low : high;
    return place % 2 ? word : word * fold;
}

/// Whether each of `width` consecutive elements from `first` on is kept. `first` is a multiple of `width`, a
/// power of two.
template <int width>
__device__ inline void kept(bool (&keep)[width], unsigned long long first, const DropoutKey& key) {
    constexpr int block_elements = 8;
    constexpr int blocks = (width + block_elements - 1) / block_elements;
    constexpr int each = width < block_elements ? width : block_elements;
    const unsigned place = width < block_elements ? static_cast<unsigned>(first % block_elements) : 0;
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
        const PhiloxBlock block = philox(first / block_elements + b, key.offset, key.keys);
#pragma unroll
        for (int k = 0; k < each; ++k)
            keep[each * b + k] = draw_of(block, place + k, key.fold) >= key.threshold;
    }
}

/// As bytes, which shared memory takes in one access.
template <int width>
struct alignas(width) Flags {
    unsigned char element[width];
};
template <int width>
__device__ inline Flags<width> flags(const bool (&keep)[width]) {
    Flags<width> bytes;
#pragma unroll
    for (int k = 0; k < width; ++k) bytes.element[k] = keep[k];
    return bytes;
}

/// The same from any `first` on, one before the tensor's too: those elements are nobody's.
template <int width>
__device__ inline void kept_beside(bool (&keep)[width], long long first, const DropoutKey& key) {
    constexpr int block_elements = 8;
    static_assert(width <= block_elements, "two blocks have them all");
    const long long block = first >> 3;
    const PhiloxBlock lower = philox(block, key.offset, key.keys),
                      upper = philox(block + 1, key.offset, key.keys);
#pragma unroll
    for (int k = 0; k < width; ++k) {
        const auto place = static_cast<unsigned>(first + k) % block_elements;
        // Both are drawn from: a choice of blocks would put them into memory.
        const unsigned low = draw_of(lower, place, key.fold), high = draw_of(upper, place, key.fold);
        keep[k] = (first + k < block_elements * (block + 1) ? low : high) >= key.threshold;
    }
}

}  // namespace rooftile::expression
