// The text of kernels/fuse/row_span.cuh, run on the CPU: every row, of every length and place, against its elements. Tensors stand
// among bytes that nobody may read but in a word with one of theirs, or write.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

struct uint4 {
    unsigned x, y, z, w;
};
inline int min(int x, int y) { return std::min(x, y); }
inline int max(int x, int y) { return std::max(x, y); }
inline unsigned min(unsigned x, unsigned y) { return std::min(x, y); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((std::uint64_t(high) << 32 | low) >> (shift % 32));
}
#include "tests/fuse/host/lanes.hpp"

#include "kernels/fuse/reduce.cuh"
#include "kernels/fuse/row_span.cuh"

namespace rooftile {
namespace {

using fuse::Beside, fuse::Pack, fuse::RowSpan;

/// `count` numbered elements that begin `off` elements behind a multiple of 64 bytes, with a word of NaN or -1 around them.
template <class T>
struct Tensor {
    alignas(64) unsigned char bytes[4096];
    T* first;
    Tensor(int count, int off) {
        std::memset(bytes, 0xff, sizeof bytes);
        first = reinterpret_cast<T*>(bytes + 64) + off;
        for (int i = 0; i < count; ++i) put(first[i], i + 1);
    }
    static void put(float& to, int value) { to = float(value); }
    static void put(expression::bf16& to, int value) { to.bits = static_cast<unsigned short>(value); }
    static void put(bool& to, int value) { std::memset(&to, value % 2, 1); }
};
template <class T>
bool same(const T& x, const T& y) {
    return std::memcmp(&x, &y, sizeof(T)) == 0;
}

template <class T, int width>
void expect_loads_beside() {
    constexpr int rows = 9;
    for (int columns = 1; columns < 40; ++columns)
        for (int off = 0; off < 16; ++off) {
            const Tensor<T> tensor(rows * columns, off);
            for (int row = 0; row < rows; ++row) {
                const RowSpan<width> span(row, columns);
                for (const int other : {0, row, rows - 1}) {
                    const auto shift = fuse::beside_shift(tensor.first, other * columns, span);
                    for (unsigned at = 0; at < span.vectors; ++at) {
                        Beside<T, width> words;
                        fuse::load_beside(words, tensor.first, other * columns, span, at);
                        const Pack<T, width> pack = words.shifted(shift);
                        for (int k = 0; k < width; ++k) {
                            const int column = int(at) * width - int(span.phase) + k;
                            if (column < 0 || column >= columns) continue;
                            ASSERT_TRUE(same(pack.element[k], tensor.first[other * columns + column]))
                                << columns << " columns, row " << row << " beside " << other << ", " << off
                                << " off, column " << column;
                        }
                    }
                }
            }
            for (int from = 0; from + width <= rows * columns; ++from) {
                Pack<T, width> pack;
                fuse::load_any(pack, tensor.first, from);
                for (int k = 0; k < width; ++k) ASSERT_TRUE(same(pack.element[k], tensor.first[from + k]));
            }
        }
}

TEST(RowSpanText, LoadsWhatLiesBesideRows) {
    expect_loads_beside<float, 4>();
    expect_loads_beside<float, 8>();
    expect_loads_beside<expression::bf16, 8>();
    expect_loads_beside<expression::bf16, 4>();
    expect_loads_beside<bool, 8>();
}

// Every row's vectors one after the other: all elements are stored, and nothing before or behind.
TEST(RowSpanText, RowsStoreTheirOwnAlone) {
    constexpr int rows = 9, width = 8;
    for (int columns = 1; columns < 40; ++columns)
        for (int only = 0; only < rows; ++only) {
            Tensor<float> tensor(0, 0);
            const Tensor<float> values(rows * columns + width, 0);
            const RowSpan<width> span(only, columns);
            unsigned elements = 0;
            for (unsigned at = 0; at < span.vectors; ++at) {
                Pack<float, width> pack;
                std::memcpy(&pack, values.first + (span.start + at) * width, sizeof pack);
                elements += span.elements(at, 1);
                if (span.cuts(at)) fuse::store_inside(tensor.first, span.start + at, pack, span, at);
                else std::memcpy(tensor.first + (span.start + at) * width, &pack, sizeof pack);
            }
            EXPECT_EQ(elements, unsigned(columns));
            EXPECT_EQ(span.elements(0, span.vectors), unsigned(columns));
            for (int i = 0; i < rows * columns; ++i) {
                const bool own = i / columns == only;
                ASSERT_EQ(same(tensor.first[i], values.first[i]), own)
                    << columns << " columns, row " << only << " at " << i;
            }
        }
}

// Sums of numbers, squares, the greatest and its place, moments: of neighbours nothing.
TEST(RowSpanText, NeighboursAddNothing) {
    constexpr int rows = 9, width = 8;
    for (int columns = 1; columns < 40; ++columns) {
        const Tensor<float> tensor(rows * columns, 0);
        for (int row = 0; row < rows; ++row) {
            const RowSpan<width> span(row, columns);
            fuse::Sum sum;
            fuse::Max greatest;
            fuse::ArgMax place;
            fuse::Moments moments;
            fuse::RunningMoments running;
            unsigned outside = 0;
            for (unsigned at = 0; at < span.vectors; ++at) {
                float v[width], copy[width];
                std::memcpy(v, tensor.first + (span.start + at) * width, sizeof v);
                const auto again = [&] { std::copy(v, v + width, copy); };
                again(), fuse::add_inside(sum, copy, span, at, span.cuts(at));
                again(), fuse::add_inside(greatest, copy, span, at, span.cuts(at));
                again(), fuse::add_inside(place, copy, span, at, span.cuts(at));
                again(), fuse::add_inside(moments, copy, span, at, span.cuts(at));
                again(), outside += fuse::add_inside(running, copy, span, at, span.cuts(at));
            }
            const float last = float((row + 1) * columns), mean = last - float(columns - 1) / 2;
            EXPECT_EQ(sum.total, mean * float(columns));
            EXPECT_EQ(greatest.greatest, last);
            EXPECT_EQ(place.place, unsigned(columns - 1));
            EXPECT_EQ(outside, span.vectors * width - unsigned(columns));
            const fuse::Moments all = running.moments(float(span.vectors * width - outside));
            // Squares from the mean of n numbers in a row: n (n^2 - 1) / 12.
            const double deviations = double(columns) * (double(columns) * columns - 1) / 12;
            for (const fuse::Moments& m : {moments, all}) {
                EXPECT_EQ(m.count, float(columns));
                EXPECT_NEAR(m.mean, mean, 1e-5 * mean);
                EXPECT_NEAR(m.deviations, deviations, 1e-4 * (deviations + 1));
            }
        }
    }
}

}  // namespace
}  // namespace rooftile
