#include "rooftile/gemm/device/operands.hpp"
#include "rooftile/measure/bench.hpp"

#include <gtest/gtest.h>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

GemmProblem problem(Major a_major, Major b_major) {
    GemmProblem p;
    p.m = 5, p.n = 7, p.k = 16, p.a_major = a_major, p.b_major = b_major;
    p.lda = 24, p.ldb = 32, p.ldc = 9;
    return p;
}

TEST(OperandView, LinesRunAlongTheContiguousIndex) {
    const GemmProblem k = problem(Major::k, Major::k), mn = problem(Major::mn, Major::mn);
    const MatrixView a = operand_view(k, Operand::a, 0);
    EXPECT_EQ(a.lines, 5);
    EXPECT_EQ(a.width, 16);
    EXPECT_EQ(a.leading, 24);
    EXPECT_EQ(span_of(a), 4 * 24 + 16);  // the last line has no padding
    const MatrixView at = operand_view(mn, Operand::a, 0);
    EXPECT_EQ(at.lines, 16);
    EXPECT_EQ(at.width, 5);
    const MatrixView b = operand_view(mn, Operand::b, 0);
    EXPECT_EQ(b.lines, 16);
    EXPECT_EQ(b.width, 7);
    EXPECT_EQ(b.leading, 32);
    const MatrixView c = operand_view(k, Operand::c, 0);
    EXPECT_EQ(c.lines, 5);
    EXPECT_EQ(c.width, 7);
    EXPECT_EQ(c.leading, 9);
}

// The reference's strides must address the same memory as the views: tile schedule every element both ways.
TEST(VerifyArguments, StridesAgreeWithTheViews) {
    for (const Major a_major : {Major::k, Major::mn}) {
        for (const Major b_major : {Major::k, Major::mn}) {
            const GemmProblem p = problem(a_major, b_major);
            const VerifyArguments v = verify_arguments(p, nullptr, nullptr, nullptr);
            const MatrixView a = operand_view(p, Operand::a, 0), b = operand_view(p, Operand::b, 0);
            for (std::int64_t k = 0; k < p.k; ++k) {
                for (std::int64_t i = 0; i < p.m; ++i) {
                    const std::int64_t at = a_major == Major::k ? i * a.leading + k : k * a.leading + i;
                    EXPECT_EQ(i * v.a_m_stride + k * v.a_k_stride, at);
                }
                for (std::int64_t j = 0; j < p.n; ++j) {
                    const std::int64_t at = b_major == Major::k ? j * b.leading + k : k * b.leading + j;
                    EXPECT_EQ(k * v.b_k_stride + j * v.b_n_stride, at);
                }
            }
            EXPECT_EQ(v.c_m_stride, p.ldc);
            EXPECT_EQ(v.gamma, accumulation_error(p.k));
        }
    }
}

// 2^24 = 16777216: 262143 x 64 = 16777152 fits, 262144 x 64 does not; then 7^2 = 49, and so on.
TEST(ExactRange, KeepsEverySumBelow2To24) {
    EXPECT_EQ(exact_range(1).range, 8);
    EXPECT_EQ(exact_range(262143).range, 8);
    EXPECT_EQ(exact_range(262144).range, 7);
    EXPECT_EQ(exact_range(4194303).range, 2);
    EXPECT_EQ(exact_range(4194304).range, 1);
    EXPECT_EQ(exact_range(16777215).sparsity, 1);
    EXPECT_EQ(exact_range(16777216).sparsity, 2);
    for (std::int64_t k = 1; k < (std::int64_t{1} << 31); k = k * 3 + 1) {
        const ExactRange e = exact_range(k);
        EXPECT_LT(ceil_div(k, e.sparsity) * e.range * e.range, 1 << 24) << k;
        EXPECT_GE(e.range, 1);
    }
}

TEST(RotatedSets, ExceedL2AndFitMemory) {
    EXPECT_EQ(rotated_sets(100, 1000, 4, 1'000'000), 40);    // 40 x 100 = 4 x 1000
    EXPECT_EQ(rotated_sets(300, 1000, 4, 1'000'000), 14);    // 13 x 300 is 3900
    EXPECT_EQ(rotated_sets(10'000, 1000, 4, 1'000'000), 2);  // at least two
    EXPECT_EQ(rotated_sets(100, 1000, 4, 1000), 10);         // what memory holds
    EXPECT_EQ(rotated_sets(2000, 1000, 4, 1000), 0);
    EXPECT_EQ(rotated_sets(1, 1'000'000, 4, 1'000'000), 16384);
}

TEST(FillArguments, NameKAndKeepOperandsApart) {
    const GemmProblem p = problem(Major::k, Major::mn);
    const FillArguments a = fill_arguments(p, Operand::a, operand_view(p, Operand::a, 0), Fill::integer, 9);
    const FillArguments b = fill_arguments(p, Operand::b, operand_view(p, Operand::b, 0), Fill::integer, 9);
    EXPECT_TRUE(a.k_is_width);
    EXPECT_FALSE(b.k_is_width);
    EXPECT_NE(a.stream, b.stream);
    EXPECT_EQ(a.seed, 9u);
}

}  // namespace
}  // namespace rooftile
