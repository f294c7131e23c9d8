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

/// Elements of neighbours become `value`; `cut`: whether there may be any.
template <class T, int vector_width>
__device__ inline void leave_out(Pack<T, vector_width>& pack, const RowSpan<vector_width>& span, unsigned at,
                                 bool cut, float value) {
    if (!cut) return;
#pragma unroll
    for (int k = 0; k < vector_width; ++k)
        if (!span.has(at, k)) pack.element[k] = narrowed<T>(value);
}

/// What it adds up of neighbours' elements counts as nothing; how many they were.
template <class Accumulator, int vector_width>
__device__ inline unsigned add_inside(Accumulator& to, float (&v)[vector_width],
                                      const RowSpan<vector_width>& span, unsigned at, bool cut) {
    unsigned outside = 0;
    if constexpr (requires { Accumulator::nothing; }) {
        if (cut)
#pragma unroll
            for (int k = 0; k < vector_width; ++k)
                if (!span.has(at, k)) v[k] = Accumulator::nothing;
        to.add(v, span.column(at));
    } else if (cut) {
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

/// A vector that lies off the aligned words of its tensor, as the words around it: shifted into place where it is used, so that
/// loads of several are on their way together. Vectors of less than a word are their elements.
template <class T, int vector_width, bool whole_words = vector_width * sizeof(T) % 16 == 0>
struct Beside {
    static constexpr int words = vector_width * static_cast<int>(sizeof(T)) / 16;
    uint4 word[words + 1];

    /// `shift`: bytes of the first word before the vector.
    __device__ Pack<T, vector_width> shifted(unsigned shift) const {
        unsigned part[4 * words + 4];
#pragma unroll
        for (int w = 0; w <= words; ++w) reinterpret_cast<uint4*>(part)[w] = word[w];
#pragma unroll
        for (int i = 0; i < 4 * words + 2; ++i) part[i] = shift & 8 ? part[i + 2] : part[i];
#pragma unroll
        for (int i = 0; i < 4 * words + 1; ++i) part[i] = shift & 4 ? part[i + 1] : part[i];
        Pack<T, vector_width> pack;
#pragma unroll
        for (int i = 0; i < 4 * words; ++i)
            reinterpret_cast<unsigned*>(&pack)[i] =
                sizeof(T) == 4 ? part[i] : __funnelshift_r(part[i], part[i + 1], shift % 4 * 8);
        return pack;
    }
};
template <class T, int vector_width>
struct Beside<T, vector_width, false> {
    Pack<T, vector_width> pack;
    __device__ Pack<T, vector_width> shifted(unsigned) const { return pack; }
};

/// Where the vectors of a row lie in another tensor's row that begins at its element `row`: bytes from the first word of that to the
/// first vector, which may begin before it.
template <class T, int vector_width>
__device__ inline int beside(const T* tensor, long long row, const RowSpan<vector_width>& span) {
    const int ahead = static_cast<int>(reinterpret_cast<unsigned long long>(tensor + row) % 16);
    return ahead - static_cast<int>(span.phase * sizeof(T));
}
template <class T, int vector_width>
__device__ inline unsigned beside_shift(const T* tensor, long long row, const RowSpan<vector_width>& span) {
    return static_cast<unsigned>(beside(tensor, row, span)) % 16;
}

/// The words around the elements of a tensor's row that stand beside those of vector `at`; words that have nothing of the row are
/// not touched.
template <class T, int vector_width>
__device__ inline void load_beside(Beside<T, vector_width>& to, const T* tensor, long long row,
                                   const RowSpan<vector_width>& span, unsigned at) {
    const int columns = static_cast<int>(span.columns);
    if constexpr (requires { to.word; }) {
        const int ahead = static_cast<int>(reinterpret_cast<unsigned long long>(tensor + row) % 16);
        const auto* aligned =
            reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(tensor + row) - ahead);
        const int last = static_cast<int>((ahead + static_cast<long long>(columns) * sizeof(T) - 1) / 16);
        const int from = static_cast<int>(at) * to.words + (beside(tensor, row, span) >> 4);
#pragma unroll
        for (int w = 0; w <= to.words; ++w) to.word[w] = aligned[max(0, min(from + w, last))];
    } else {
        const int column = static_cast<int>(span.column(at));
#pragma unroll
        for (int k = 0; k < vector_width; ++k)
            to.pack.element[k] = tensor[row + max(0, min(column + k, columns - 1))];
    }
}

/// A vector from any element `first` on, all inside the tensor.
template <class T, int vector_width>
__device__ inline void load_any(Pack<T, vector_width>& to, const T* tensor, long long first) {
    Beside<T, vector_width> around;
    unsigned shift = 0;
    if constexpr (requires { around.word; }) {
        const auto* begin = reinterpret_cast<const char*>(tensor + first);
        shift = static_cast<unsigned>(reinterpret_cast<unsigned long long>(begin) % 16);
        const auto* aligned = reinterpret_cast<const uint4*>(begin - shift);
#pragma unroll
        for (int w = 0; w < around.words; ++w) around.word[w] = aligned[w];
        around.word[around.words] = aligned[shift > 0 ? around.words : around.words - 1];
    } else {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) around.pack.element[k] = tensor[first + k];
    }
    to = around.shifted(shift);
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
