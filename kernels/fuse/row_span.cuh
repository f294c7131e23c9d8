// Rows that are no whole vectors. Vectors count elements of the tensor and stay aligned; a row begins and ends somewhere in one,
// and all tensors of as many columns lie alike, whatever their types. What of a row's first and last vector belongs to
// its neighbours is loaded with it, left out of reductions, and never stored.
#pragma once

#include "kernels/fuse/pack.cuh"

namespace rooftile::fuse {

/// Where one row lies. Vector `at` is counted from the one in which the row begins.
template <int vector_width>
struct RowSpan {
    unsigned long long start;          ///< the row's first vector, in the tensor
    unsigned phase, columns, vectors;  ///< elements before the row in its first vector; vectors that have some of it

    __device__ RowSpan(unsigned long long row, long long columns)
        : columns(static_cast<unsigned>(columns)) {
        const unsigned long long first = row * static_cast<unsigned long long>(columns);
        start = first / vector_width;
        phase = static_cast<unsigned>(first % vector_width);
        vectors = (phase + this->columns + vector_width - 1) / vector_width;
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
__device__ inline unsigned add_inside(Accumulator& to, float (&v)[vector_width], const RowSpan<vector_width>& span,
                                      unsigned at) {
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

/// The elements of a tensor's row that begins at its element `row`, beside those of vector `at`: vectors of other rows lie off
/// its own. Two aligned words an access, shifted together; words beside the row are not touched.
template <class T, int vector_width>
__device__ inline void load_beside(Pack<T, vector_width>& to, const T* tensor, long long row,
                                   const RowSpan<vector_width>& span, unsigned at) {
    constexpr int word = 16, words = vector_width * static_cast<int>(sizeof(T)) / word;
    const int columns = static_cast<int>(span.columns), column = static_cast<int>(span.column(at));
    if constexpr (words * word != vector_width * static_cast<int>(sizeof(T))) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) to.element[k] = tensor[row + max(0, min(column + k, columns - 1))];
    } else {
        const auto* begin = reinterpret_cast<const char*>(tensor + row);
        const int ahead = static_cast<int>(reinterpret_cast<unsigned long long>(begin) % word);  // bytes before the row
        const auto* aligned = reinterpret_cast<const uint4*>(begin - ahead);
        const int last = static_cast<int>((ahead + static_cast<long long>(columns) * sizeof(T) - 1) / word);
        const long long byte = ahead + static_cast<long long>(column) * static_cast<int>(sizeof(T));
        const int from = static_cast<int>(byte >> 4);
        unsigned part[4 * words + 4];
#pragma unroll
        for (int w = 0; w <= words; ++w)
            reinterpret_cast<uint4*>(part)[w] = aligned[max(0, min(from + w, last))];
        const unsigned shift = static_cast<unsigned>(byte) % word;
#pragma unroll
        for (int i = 0; i < 4 * words + 2; ++i) part[i] = shift & 8 ? part[i + 2] : part[i];
#pragma unroll
        for (int i = 0; i < 4 * words + 1; ++i) part[i] = shift & 4 ? part[i + 1] : part[i];
#pragma unroll
        for (int i = 0; i < 4 * words; ++i)
            reinterpret_cast<unsigned*>(&to)[i] =
                sizeof(T) == 4 ? part[i] : __funnelshift_r(part[i], part[i + 1], shift % 4 * 8);
    }
}

/// What of vector `at` is the row's own; `vector`: where it lies in the tensor.
template <class T, int vector_width>
__device__ inline void store_inside(T* tensor, long long vector, const Pack<T, vector_width>& from,
                                    const RowSpan<vector_width>& span, unsigned at) {
    T* to = tensor + vector * vector_width;
#pragma unroll
    for (int k = 0; k < vector_width; ++k)
        if (span.has(at, k)) to[k] = from.element[k];
}

}  // namespace rooftile::fuse
