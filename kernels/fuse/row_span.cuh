// Rows that are no whole vectors. Vectors count elements of the tensor and stay aligned; a row begins and ends somewhere in one,
// and all tensors of as many columns lie alike, whatever their types. What of a row's first and last vector belongs to
// its neighbours is loaded with it, left out of reductions, and never stored.
#pragma once

#include "kernels/fuse/pack.cuh"

namespace rooftile::fuse {

/// Where one row lies. Vector `at` is counted from the one in which the row begins.
template <int vector_width>
struct RowSpan {
    unsigned long long start;  ///< the row's first vector, in the tensor
    unsigned phase, columns,
        vectors;  ///< elements before the row in its first vector; vectors that have some of it

    /// Of `rows` rows that lie together it is one row of all their columns.
    __device__ RowSpan(unsigned long long row, long long row_columns, unsigned rows = 1)
        : columns(rows * static_cast<unsigned>(row_columns)) {
        const unsigned long long first = row * static_cast<unsigned long long>(row_columns);
        start = first / vector_width;
        phase = static_cast<unsigned>(first % vector_width);
        vectors = (phase + columns + vector_width - 1) / vector_width;
    }

    /// Whether elements of neighbours may lie in it.
    __device__ bool cuts(unsigned at) const { return at == 0 || at + 1 == vectors; }
    /// Of its first element; of one before the row beyond all columns.
    __device__ unsigned column(unsigned at) const { return at * vector_width - phase; }
    __device__ bool has(unsigned at, int k) const { return column(at) + k < columns; }
    /// The row's elements in `count` vectors from `at` on.
    __device__ unsigned elements(unsigned at, unsigned count) const {
        if (count == 0) return 0;
        const unsigned end = min(columns, column(at + count));
        return end - (at == 0 ? 0 : column(at));
    }
};

/// Elements of neighbours become `value`.
template <class T, int vector_width>
__device__ inline void leave_out(Pack<T, vector_width>& pack, const RowSpan<vector_width>& span, unsigned at,
                                 float value) {
    if (!span.cuts(at)) return;
#pragma unroll
    for (int k = 0; k < vector_width; ++k)
        if (!span.has(at, k)) pack.element[k] = narrowed<T>(value);
}

/// What it adds up of neighbours' elements counts as nothing; how many they were.
template <class Accumulator, int vector_width>
__device__ inline unsigned add_inside(Accumulator& to, float (&v)[vector_width],
                                      const RowSpan<vector_width>& span, unsigned at) {
    unsigned outside = 0;
    if constexpr (requires { Accumulator::nothing; }) {
        if (span.cuts(at))
#pragma unroll
            for (int k = 0; k < vector_width; ++k)
                if (!span.has(at, k)) v[k] = Accumulator::nothing;
        to.add(v, span.column(at));
    } else if (span.cuts(at)) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) {
            const float one[1] = {v[k]};
            if (span.has(at, k)) to.add(one, span.column(at) + k);
            else ++outside;
        }
    } else {
        to.add(v, span.column(at));
    }
    return outside;
}

/// A vector that begins `shift` bytes into the first of the aligned words `part`.
template <class T, int vector_width, int words>
__device__ inline void shift_down(Pack<T, vector_width>& to, unsigned (&part)[words], unsigned shift) {
#pragma unroll
    for (int i = 0; i < words - 2; ++i) part[i] = shift & 8 ? part[i + 2] : part[i];
#pragma unroll
    for (int i = 0; i < words - 3; ++i) part[i] = shift & 4 ? part[i + 1] : part[i];
#pragma unroll
    for (int i = 0; i < words - 4; ++i)
        reinterpret_cast<unsigned*>(&to)[i] =
            sizeof(T) == 4 ? part[i] : __funnelshift_r(part[i], part[i + 1], shift % 4 * 8);
}

/// The elements of a tensor's row that begins at its element `row`, beside those of vector `at`: vectors of other rows lie off
/// its own. Two aligned words an access, shifted together; words beside the row are not touched.
template <class T, int vector_width>
__device__ inline void load_beside(Pack<T, vector_width>& to, const T* tensor, long long row,
                                   const RowSpan<vector_width>& span, unsigned at) {
    constexpr int size = sizeof(T), word = 16, words = vector_width * size / word;
    const int columns = static_cast<int>(span.columns), column = static_cast<int>(span.column(at));
    if constexpr (words * word != vector_width * size) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k)
            to.element[k] = tensor[row + max(0, min(column + k, columns - 1))];
    } else {
        const auto* begin = reinterpret_cast<const char*>(tensor + row);
        const int ahead =
            static_cast<int>(reinterpret_cast<unsigned long long>(begin) % word);  // bytes before the row
        const auto* aligned = reinterpret_cast<const uint4*>(begin - ahead);
        const int last = static_cast<int>((ahead + static_cast<long long>(columns) * size - 1) / word);
        const long long byte = ahead + static_cast<long long>(column) * size;
        const int from = static_cast<int>(byte >> 4);
        unsigned part[4 * words + 4];
#pragma unroll
        for (int w = 0; w <= words; ++w)
            reinterpret_cast<uint4*>(part)[w] = aligned[max(0, min(from + w, last))];
        shift_down(to, part, static_cast<unsigned>(byte) % word);
    }
}

/// The same from element `first` on, all inside the tensor.
template <class T, int vector_width>
__device__ inline void load_any(Pack<T, vector_width>& to, const T* tensor, long long first) {
    constexpr int size = sizeof(T), word = 16, words = vector_width * size / word;
    if constexpr (words * word != vector_width * size) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) to.element[k] = tensor[first + k];
    } else {
        const auto* begin = reinterpret_cast<const char*>(tensor + first);
        const auto shift = static_cast<unsigned>(reinterpret_cast<unsigned long long>(begin) % word);
        const auto* aligned = reinterpret_cast<const uint4*>(begin - shift);
        unsigned part[4 * words + 4];
#pragma unroll
        for (int w = 0; w < words; ++w) reinterpret_cast<uint4*>(part)[w] = aligned[w];
        reinterpret_cast<uint4*>(part)[words] = aligned[shift > 0 ? words : words - 1];
        shift_down(to, part, shift);
    }
}

/// One value for all of a vector.
template <class T, int vector_width>
__device__ inline void fill(Pack<T, vector_width>& to, T value) {
#pragma unroll
    for (int k = 0; k < vector_width; ++k) to.element[k] = value;
}

/// The first `count` elements of a vector.
template <class T, int vector_width>
__device__ inline void store_first(T* tensor, long long vector, const Pack<T, vector_width>& from,
                                   long long count) {
#pragma unroll
    for (int k = 0; k < vector_width; ++k)
        if (k < count) tensor[vector * vector_width + k] = from.element[k];
}

/// Elements `begin` to `end` of `count` that lie at `to`, which is a multiple of them all: in one store if they are all of them, else
/// half by half. So a vector that is cut takes few stores, and L2 few parts of a sector.
template <int count, class T>
__device__ inline void store_part(T* to, const T* from, int begin, int end) {
    if (begin <= 0 && end >= count) {
        if constexpr (count * sizeof(T) >= 4) {
            using Words = ptx::Words<least(16, count * static_cast<int>(sizeof(T)))>;
#pragma unroll
            for (int i = 0; i < count * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(Words)); ++i)
                reinterpret_cast<Words*>(to)[i] = reinterpret_cast<const Words*>(from)[i];
        } else {
#pragma unroll
            for (int k = 0; k < count; ++k) to[k] = from[k];
        }
    } else if constexpr (count > 1) {
        constexpr int half = count / 2;
        if (begin < half && end > 0) store_part<half>(to, from, begin, end);
        if (begin < count && end > half) store_part<half>(to + half, from + half, begin - half, end - half);
    }
}

/// What of vector `at` is the row's own; `vector`: where it lies in the tensor.
template <class T, int vector_width>
__device__ inline void store_inside(T* tensor, long long vector, const Pack<T, vector_width>& from,
                                    const RowSpan<vector_width>& span, unsigned at) {
    const int begin = at == 0 ? static_cast<int>(span.phase) : 0;
    const int end = at + 1 == span.vectors ? static_cast<int>(span.phase + span.columns - at * vector_width)
                                           : vector_width;
    store_part<vector_width>(tensor + vector * vector_width, from.element, begin, end);
}

}  // namespace rooftile::fuse
