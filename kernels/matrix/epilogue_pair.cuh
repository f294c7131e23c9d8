// What a caller's expression sees of a product, whichever kernel has the sums: two neighbours of the result, and an operand's
// elements there.
#pragma once

#include "kernels/ptx/cluster_memory.cuh"

namespace rooftile {

struct NoEpilogue {};
template <class Epilogue>
constexpr bool is_plain() { return false; }
template <>
constexpr bool is_plain<NoEpilogue>() { return true; }

/// Two neighbours of the result, which one thread has: beside each other, or turned one below the other.
struct EpiloguePair {
    int row, column;     // of the thread's first element
    int down, right;     // constants, from there to the pair's first
    int rows, columns;   // of the result
    int product;         // of a batch
    bool first, second;  // inside
    unsigned first_at = 0, second_at = 0;  // in shared memory, of the operand that is staged

    /// Of the first in the result, were it dense. In 64 bits, so that constants become part of a load's address.
    __device__ long long index() const {
        return static_cast<long long>(row) * columns + column + (static_cast<long long>(down) * columns + right);
    }
};

/// An operand's elements at a pair. `by_product`, `by_row`, `by_column`: whether it differs along them. `paired`: rows are an even number
/// of elements long, so that neighbours are one aligned word. Outside nothing is read.
template <bool turned, bool by_product, bool by_row, bool by_column, bool paired, class T>
__device__ inline void load_pair(T (&to)[2], const T* from, const EpiloguePair& at) {
    struct alignas(2 * sizeof(T)) Word {
        T part[2];
    };
    long long offset = 0;
    if constexpr (by_row && by_column) offset = at.index();
    else if constexpr (by_column) offset = static_cast<long long>(at.column) + at.right;
    else if constexpr (by_row) offset = static_cast<long long>(at.row) + at.down;
    if constexpr (by_product) from += static_cast<long long>(at.product) * (by_row ? at.rows : 1) * (by_column ? at.columns : 1);
    constexpr bool differ = turned ? by_row : by_column;
    if constexpr (!differ) {
        to[0] = at.first ? from[offset] : T{};
        to[1] = to[0];
    } else if constexpr (paired && !turned) {
        const Word word = at.first ? *reinterpret_cast<const Word*>(from + offset) : Word{};
        to[0] = word.part[0], to[1] = word.part[1];
    } else {
        const long long next = turned && by_column ? at.columns : 1;
        to[0] = at.first ? from[offset] : T{};
        to[1] = at.second ? from[offset + next] : T{};
    }
}

/// The same of the operand that is staged, 16 bits each: outside it is zero.
template <bool turned, class T>
__device__ inline void load_staged_pair(T (&to)[2], const EpiloguePair& at) {
    static_assert(sizeof(T) == 2);
    if constexpr (turned) {
        to[0] = __builtin_bit_cast(T, ptx::load_shared_half(at.first_at));
        to[1] = __builtin_bit_cast(T, ptx::load_shared_half(at.second_at));
    } else {
        const unsigned word = ptx::load_shared_word(at.first_at);
        to[0] = __builtin_bit_cast(T, static_cast<unsigned short>(word));
        to[1] = __builtin_bit_cast(T, static_cast<unsigned short>(word >> 16));
    }
}

}  // namespace rooftile
