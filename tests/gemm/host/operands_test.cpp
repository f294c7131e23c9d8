#include "rooftile/gemm/device/operands.hpp"
#include "rooftile/measure/bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

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
            EXPECT_EQ(v.model.most, error_model(p.k).most);
            EXPECT_EQ(v.model.rms, error_model(p.k).rms);
        }
    }
}

// bf16: 2 x 128 - 1 = 255, fp16: 2 x 1024 - 1 = 2047. Three quarters of 2^24 - 1 are 12582909: 64 x 196608 = 12582912
// is too much for a range of 8.
TEST(ExactNumbers, UseTheWholeSignificandWhereTheSumsAllow) {
    const ExactNumbers bf16 = exact_numbers(4096, Type::bf16, Type::bf16), fp16 = exact_numbers(4096, Type::fp16, Type::fp16);
    EXPECT_EQ(bf16.wide, 255);
    EXPECT_EQ(fp16.wide, 2047);
    EXPECT_EQ(bf16.period, 7);
    // C's deviation is an eighth of 65520: 3 x 8190^2 / 2047^2 = 48 wide numbers; 4096 / 48 = 85.3.
    EXPECT_EQ(fp16.period, 87);
    EXPECT_EQ(exact_numbers(196607, Type::bf16, Type::bf16).range, 8);
    EXPECT_EQ(exact_numbers(196608, Type::bf16, Type::bf16).range, 7);
    EXPECT_EQ(exact_numbers(12582909, Type::bf16, Type::bf16).sparsity, 1);
    EXPECT_EQ(exact_numbers(12582910, Type::bf16, Type::bf16).sparsity, 2);
}

// Words that make the largest magnitude: word % (2 r + 1) = 0 gives -r, and 1 or -1 any word.
TEST(ExactNumbers, KeepEverySumBelow2To24) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        for (std::int64_t k = 1; k < (std::int64_t{1} << 31); k = k * 3 + 1) {
            const ExactNumbers e = exact_numbers(k, type, type);
            std::int64_t sum = ceil_div(k, e.period) * e.wide + ceil_div(k, e.sparsity) * e.range * e.range;
            EXPECT_LT(sum, 1 << 24) << k;
            EXPECT_EQ(e.period % 2, 1) << k;
            EXPECT_GE(e.range, 1) << k;
            if (k > 100'000) continue;
            sum = 0;
            for (std::int64_t l = 0; l < k; ++l)
                sum += std::abs(exact_number(e, false, l, 0) * exact_number(e, true, l, 0));
            EXPECT_LT(sum, 1 << 24) << k;
        }
    }
}

// 8-bit operands: 14 bits of a sum are kept.
TEST(ExactNumbers, KeepEverySumOfBytesBelow2To13) {
    EXPECT_EQ(exact_numbers(512, Type::fp8_e4m3, Type::bf16).wide, 15);
    EXPECT_EQ(exact_numbers(512, Type::fp8_e5m2, Type::bf16).wide, 7);
    for (std::int64_t k = 1; k < (std::int64_t{1} << 31); k = k * 3 + 1) {
        const ExactNumbers e = exact_numbers(k, Type::fp8_e4m3, Type::fp16);
        EXPECT_LT(ceil_div(k, e.period) * e.wide + ceil_div(k, e.sparsity) * e.range * e.range, 1 << 13) << k;
    }
    GemmProblem p = gemm_problem(16, 16, 4096);
    p.a_type = Type::fp8_e5m2, p.b_type = Type::fp8_e4m3;
    const auto of = [&p](Operand operand) { return fill_arguments(p, operand, operand_view(p, operand, 0), Fill::integer, 1).exact; };
    EXPECT_EQ(of(Operand::a).period, of(Operand::b).period);
    EXPECT_EQ(of(Operand::a).range, of(Operand::b).range);
    EXPECT_EQ(of(Operand::a).wide, 7);
    EXPECT_EQ(of(Operand::b).wide, 15);
}

TEST(ExactNumbers, AreWideInTurn) {
    ExactNumbers e{};
    e.range = 2, e.sparsity = 2, e.wide = 255, e.period = 7;
    for (std::int64_t k = 0; k < 28; ++k) {
        int most_a = 0, most_b = 0, zeros_a = 0;
        for (unsigned word = 0; word < 511 * 5; ++word) {
            const int a = exact_number(e, false, k, word), b = exact_number(e, true, k, word);
            most_a = std::max(most_a, std::abs(a)), most_b = std::max(most_b, std::abs(b));
            zeros_a += a == 0;
        }
        const bool wide = k % 7 == 0, of_a = k % 14 == 0, dense = k % 2 == 0;
        EXPECT_EQ(most_a, wide ? (of_a ? 255 : 1) : dense ? 2 : 0) << k;
        EXPECT_EQ(most_b, wide ? (of_a ? 1 : 255) : dense ? 2 : 0) << k;
        EXPECT_EQ(zeros_a, wide ? (of_a ? 5 : 0) : dense ? 511 : 511 * 5) << k;  // each of 511, of 5, all
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
    EXPECT_FALSE(a.of_b);
    EXPECT_TRUE(b.of_b);
    EXPECT_EQ(a.exact.period, b.exact.period);
    EXPECT_EQ(a.seed, 9u);
}

}  // namespace
}  // namespace rooftile
