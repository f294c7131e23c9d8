// sm80_few_gemm's own text, thread by thread on the CPU: every shift of A's and B's rows, tails of K, edges of C, parts of K and batches,
// every element against the plain sums, and nothing read beside an operand's rows. Numbers are whole, so that sums are exact in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/fake/cta/text.hpp"

#include "kernels/gemm/sm80_few_gemm.cuh"

namespace cta_text {
namespace {

/// Rows of numbers, NaN beside them, and which bytes may be read.
struct Matrix {
    std::vector<unsigned short> memory;
    std::vector<bool> inside;  // elements
    const unsigned short* first = nullptr;
    long long ld = 0, stride = 0;

    /// That begins `offset` elements past a multiple of 16 B. `alone`: nothing between its lines may be read.
    Matrix(Type type, int matrices, int rows, int k, long long leading, int offset, std::mt19937& random, bool alone)
        : ld(leading), stride(rows * leading + 5) {
        constexpr int guard = 64;
        constexpr unsigned short nan = 0x7fff;
        memory.assign(std::size_t(guard + 8 + stride * matrices + guard), nan);
        inside.assign(memory.size(), false);
        std::size_t begin = guard;
        while (reinterpret_cast<std::uintptr_t>(&memory[begin]) % 16 != 0) ++begin;
        begin += std::size_t(offset);
        first = &memory[begin];
        for (int p = 0; p < matrices; ++p)
            for (int row = 0; row < rows; ++row)
                for (int i = 0; i < k; ++i) {
                    const std::size_t at = begin + std::size_t(p * stride + row * ld + i);
                    memory[at] = ptx::bits_of(type, float(int(random() % 9) - 4));
                    inside[at] = true;
                }
        if (alone) return;
        const auto last = std::find(inside.rbegin(), inside.rend(), true);
        std::fill(inside.begin() + std::ptrdiff_t(begin), last.base(), true);
    }
    float at(Type type, int product, int row, int i) const { return ptx::number_of(type, first[product * stride + row * ld + i]); }
    bool may_read(const void* from, std::size_t bytes) const {
        const auto begin = reinterpret_cast<std::uintptr_t>(from), own = reinterpret_cast<std::uintptr_t>(memory.data());
        if (begin < own || begin + bytes > own + memory.size() * 2) return false;
        for (std::uintptr_t b = begin - own; b < begin - own + bytes; ++b)
            if (!inside[b / 2]) return false;
        return true;
    }
};

struct Shape {
    int m, n, k, a_pad, b_pad, a_offset, b_offset, pieces = 1, batch = 1;
};

template <Sm80FewConfig C>
void expect_right(const Shape& s) {
    SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << ", lda +" << s.a_pad << " from " << s.a_offset << ", ldb +"
                                    << s.b_pad << " from " << s.b_offset << ", " << s.pieces << " pieces, " << s.batch << " products");
    std::mt19937 random(unsigned(s.k * 31 + s.n));
    const bool along_k = C.along_k();
    const int lines = along_k ? s.n : s.k, width = along_k ? s.k : s.n;
    constexpr bool a_along_k = C.a_along_k();
    const int a_lines = a_along_k ? s.m : s.k, a_width = a_along_k ? s.k : s.m;
    const Matrix a(C.type, s.batch, a_lines, a_width, a_width + s.a_pad, s.a_offset, random, true);
    const Matrix b(C.type, s.batch, lines, width, width + s.b_pad, s.b_offset, random, along_k);
    const long long ldc = s.n + s.b_pad % 3, c_stride = s.m * ldc + 1;
    constexpr unsigned short untouched = 0x1234;
    std::vector<unsigned short> c(std::size_t(c_stride * s.batch + 8), untouched);
    const long long tiles = few_tiles(C, s.n, s.batch);
    std::vector<float> sums(std::size_t(tiles * s.pieces * C.tile_m * C.tile_n), std::nanf(""));
    std::vector<unsigned> arrived(std::size_t(tiles), 0);
    const Sm80FewArguments args{s.m,     s.n,      s.k,         s.pieces,       a.ld,    b.ld,     ldc,      a.first,
                                b.first, c.data(), sums.data(), arrived.data(), s.batch, a.stride, b.stride, c_stride};
    int outside = 0;
    on_global_read = [&](const void* from, std::size_t bytes) { outside += !a.may_read(from, bytes) && !b.may_read(from, bytes); };
    int early_of_b = 0, early_of_a = 0;
    on_early_read = [&](const void* from, std::size_t bytes) { ++(b.may_read(from, bytes) ? early_of_b : early_of_a); };
    // From the last CTA to the first: whoever comes last is not the last piece.
    for (long long cta = tiles * s.pieces - 1; cta >= 0; --cta)
        run_cta_on_cpu(
            unsigned(cta), unsigned(C.threads()), [](const Sm80FewArguments& x) { sm80_few_gemm<C>(x); }, args);
    on_global_read = on_early_read = nullptr;  // they name what is of here
    EXPECT_EQ(outside, 0);
    EXPECT_EQ(early_of_a, 0);
    EXPECT_EQ(early_of_b > 0, C.early_weights);
    for (const unsigned counter : arrived) EXPECT_EQ(counter, 0u);
    int wrong = 0;
    for (int p = 0; p < s.batch; ++p)
        for (int row = 0; row < s.m; ++row)
            for (int column = 0; column < s.n; ++column) {
                float sum = 0;
                for (int i = 0; i < s.k; ++i)
                    sum += (a_along_k ? a.at(C.type, p, row, i) : a.at(C.type, p, i, row)) * (along_k ? b.at(C.type, p, column, i) : b.at(C.type, p, i, column));
                unsigned short& stored = c[std::size_t(p * c_stride + row * ldc + column)];
                if (stored != ptx::bits_of(C.type, sum) && wrong++ == 0)
                    ADD_FAILURE() << "product " << p << ", row " << row << ", column " << column << ": " << ptx::number_of(C.type, stored)
                                  << ", not " << sum;
                stored = untouched;
            }
    EXPECT_EQ(wrong, 0);
    for (const unsigned short element : c) EXPECT_EQ(element, untouched);  // beside C
}

constexpr Sm80FewConfig plain(int tile_m, int tile_n, int tile_k, int stages, Type type = Type::bf16) {
    return {.tile_m = tile_m, .tile_n = tile_n, .tile_k = tile_k, .stages = stages, .ctas_per_sm = 1, .type = type};
}
constexpr Sm80FewConfig even(Sm80FewConfig c) {
    c.odd_rows = false;
    return c;
}
constexpr Sm80FewConfig along_n(Sm80FewConfig c) {
    c.b_major = Major::mn;
    return c;
}
constexpr Sm80FewConfig many(Sm80FewConfig c, bool batched, bool in_pieces) {
    c.batched = batched, c.in_pieces = in_pieces;
    return c;
}

// An odd leading dimension gives each of eight rows another shift, whatever the base's is.
TEST(FewOnCpu, RowsBeginAnywhere) {
    for (int offset = 0; offset < 8; ++offset) expect_right<plain(8, 128, 64, 3)>({3, 40, 131, 0, 0, 7 - offset, offset});
    for (int pad = 1; pad < 8; ++pad) expect_right<plain(8, 128, 64, 2)>({5, 24, 128, 8 - pad, pad, pad, 3});
}

TEST(FewOnCpu, EvenRowsTakeWholeWords) {
    for (int pad = 0; pad < 8; pad += 2) expect_right<even(plain(8, 128, 64, 4))>({8, 33, 192, pad, 6 - pad, 6 - pad, pad});
}

// Blocks of K that are full but for one element, by one, or not there; fewer than one chunk.
TEST(FewOnCpu, TailsOfK) {
    for (const int k : {1, 2, 7, 9, 57, 58, 63, 64, 65, 121, 127, 128, 129}) expect_right<plain(8, 128, 64, 3)>({2, 9, k, 1, k % 2, 5, 2});
}

TEST(FewOnCpu, TilesOfEveryForm) {
    expect_right<plain(16, 128, 128, 3)>({13, 130, 301, 0, 0, 1, 6});
    expect_right<plain(64, 128, 64, 3, Type::fp16)>({64, 70, 149, 3, 0, 0, 1});
    expect_right<plain(40, 256, 64, 2)>({33, 300, 95, 0, 2, 3, 0});
    expect_right<plain(24, 128, 256, 2, Type::fp16)>({17, 129, 517, 0, 0, 2, 7});
    expect_right<even(plain(32, 256, 128, 2))>({32, 264, 256, 0, 0, 0, 0});
}

// More pieces than blocks too: some have nothing to add.
TEST(FewOnCpu, PiecesOfK) {
    for (const int pieces : {2, 3, 5, 9}) expect_right<many(plain(8, 128, 64, 3), false, true)>({7, 131, 330, 0, 0, 4, 5, pieces});
    expect_right<many(plain(64, 128, 64, 2), false, true)>({50, 40, 300, 1, 0, 4, 5, 3});
}

TEST(FewOnCpu, Batches) {
    expect_right<many(plain(8, 128, 64, 3), true, false)>({3, 130, 77, 0, 0, 1, 2, 1, 3});
    expect_right<many(plain(8, 128, 64, 3), true, true)>({8, 20, 200, 0, 1, 1, 2, 2, 2});
}

constexpr Sm80FewConfig m_major(Sm80FewConfig c) {
    c.a_major = Major::mn;
    return c;
}

// Lines of A along M, whatever their length and distance; beside B's lines of every shift, of which those along K begin up to seven
// elements before a block.
TEST(FewOnCpu, AnMMajorAIsTurned) {
    for (int offset = 0; offset < 8; ++offset) expect_right<m_major(plain(8, 128, 64, 3))>({3, 40, 131, 2, 0, 7 - offset, offset});
    for (int pad = 0; pad < 8; ++pad) expect_right<m_major(plain(16, 128, 64, 2))>({11, 24, 200, pad, pad, pad, 3});
    for (const int k : {1, 2, 7, 63, 64, 65, 127, 128, 129, 320}) expect_right<m_major(plain(8, 128, 64, 3))>({8, 9, k, 1, k % 2, 5, 2});
    expect_right<m_major(plain(64, 128, 128, 3, Type::fp16))>({61, 70, 300, 3, 1, 0, 1});
    expect_right<m_major(plain(32, 128, 256, 2))>({28, 300, 517, 0, 2, 3, 0});
    expect_right<m_major(plain(40, 256, 64, 2))>({33, 300, 217, 0, 2, 3, 0});
    expect_right<even(m_major(plain(24, 128, 64, 4)))>({20, 33, 192, 1, 2, 3, 2});
    expect_right<m_major(along_n(plain(24, 120, 128, 3)))>({20, 250, 301, 0, 0, 1, 6});
    expect_right<m_major(along_n(plain(8, 56, 256, 3)))>({7, 113, 700, 5, 2, 3, 1});
    for (const int pieces : {2, 9}) expect_right<m_major(many(plain(8, 128, 64, 3), true, true))>({7, 131, 330, 1, 1, 4, 5, pieces, 2});
}

constexpr Sm80FewConfig early(Sm80FewConfig c) {
    c.early_weights = true;
    return c;
}

// Fewer blocks than the ring has stages, as many and more; tiles of pieces that have none.
TEST(FewOnCpu, WeightsAreAskedForBeforeTheWait) {
    for (const int k : {64, 100, 128, 300, 641}) expect_right<early(plain(8, 128, 64, 4))>({3, 130, k, 1, 1, 4, 5});
    for (const int pieces : {2, 9}) expect_right<early(many(plain(16, 128, 64, 3), true, true))>({9, 131, 330, 0, 0, 4, 5, pieces, 2});
    for (const int k : {64, 300}) expect_right<early(m_major(plain(8, 128, 64, 4)))>({3, 130, k, 1, 1, 4, 5});
    for (const int k : {128, 300, 700}) expect_right<early(along_n(plain(8, 120, 128, 3)))>({3, 131, k, 0, 0, 2, 3});
}

// Lines of K, of which a warp has every eighth. Columns at both ends of a tile are of neighbours' chunks.
TEST(FewOnCpu, LinesAlongNBeginAnywhere) {
    for (int offset = 0; offset < 8; ++offset) expect_right<along_n(plain(8, 120, 128, 3))>({3, 131, 300, 0, 0, 7 - offset, offset});
    for (int pad = 0; pad < 8; ++pad) expect_right<along_n(plain(8, 56, 128, 2))>({5, 120, 129, pad, pad, pad, 3});
    for (const int k : {1, 7, 8, 127, 128, 257}) expect_right<along_n(plain(8, 120, 128, 2))>({2, 9, k, 1, 1, 5, 2});
}

TEST(FewOnCpu, TilesAlongNOfEveryForm) {
    expect_right<along_n(plain(24, 120, 128, 3))>({20, 250, 301, 0, 0, 1, 6});
    expect_right<along_n(plain(64, 56, 128, 4, Type::fp16))>({64, 70, 149, 3, 0, 0, 1});
    expect_right<along_n(plain(32, 56, 256, 3))>({30, 113, 395, 0, 2, 3, 0});
    expect_right<even(along_n(plain(8, 120, 128, 3)))>({8, 128, 256, 0, 0, 0, 0});
    expect_right<many(along_n(plain(8, 120, 128, 3)), false, true)>({7, 131, 530, 0, 0, 4, 5, 3});
    expect_right<many(along_n(plain(16, 56, 128, 3)), true, true)>({9, 20, 300, 0, 1, 1, 2, 2, 2});
}

}  // namespace
}  // namespace cta_text
