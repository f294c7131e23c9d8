#include "rooftile/gemm/device/cublaslt.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rooftile {
namespace {

/// Element (row, column) of what the library sees, after its transposition.
double at(const std::vector<double>& memory, const ColumnMajorProblem::Layout& layout, std::int64_t row,
          std::int64_t column) {
    const std::int64_t r = layout.transposed ? column : row, c = layout.transposed ? row : column;
    EXPECT_LT(r, layout.rows);
    EXPECT_LT(c, layout.columns);
    return memory[static_cast<std::size_t>(r + c * layout.leading)];
}

// The library computes result = left x right, all column-major; in memory that must be our C, row-major.
TEST(ColumnMajor, GivesOurProductInAllFourMajors) {
    constexpr std::int64_t m = 3, n = 2, k = 4;
    for (const Major a_major : {Major::k, Major::mn}) {
        for (const Major b_major : {Major::k, Major::mn}) {
            GemmProblem p;
            p.m = m, p.n = n, p.k = k, p.a_major = a_major, p.b_major = b_major;
            p.lda = 6, p.ldb = 5, p.ldc = 4;
            std::vector<double> a(64), b(64), c(64, -1);
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t l = 0; l < k; ++l) {
                    a[std::size_t(a_major == Major::k ? i * p.lda + l : l * p.lda + i)] = double(10 * i + l);
                }
            }
            for (std::int64_t l = 0; l < k; ++l) {
                for (std::int64_t j = 0; j < n; ++j) {
                    b[std::size_t(b_major == Major::k ? j * p.ldb + l : l * p.ldb + j)] = double(3 * l - j);
                }
            }
            const ColumnMajorProblem s = column_major(p);
            EXPECT_EQ(s.result.rows, n);
            EXPECT_EQ(s.result.columns, m);
            for (std::int64_t row = 0; row < n; ++row) {
                for (std::int64_t column = 0; column < m; ++column) {
                    double sum = 0;
                    for (std::int64_t l = 0; l < k; ++l)
                        sum += at(b, s.left, row, l) * at(a, s.right, l, column);
                    c[std::size_t(row + column * s.result.leading)] = sum;
                }
            }
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    double sum = 0;
                    for (std::int64_t l = 0; l < k; ++l) sum += double(10 * i + l) * double(3 * l - j);
                    EXPECT_EQ(c[std::size_t(i * p.ldc + j)], sum);
                }
            }
        }
    }
}

}  // namespace
}  // namespace rooftile
