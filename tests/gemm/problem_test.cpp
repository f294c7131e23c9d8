#include "rooftile/gemm/problem.hpp"

#include <gtest/gtest.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

std::string refusal(std::int64_t m, std::int64_t n, std::int64_t k) {
    try {
        gemm_problem(m, n, k);
    } catch (const RequestError& error) { return error.what(); }
    return "accepted";
}

TEST(GemmProblem, CountsWorkAndLeastBytes) {
    const GemmProblem p = gemm_problem(4096, 14336, 4096);
    EXPECT_EQ(p.flops().value, 2.0 * 4096 * 14336 * 4096);
    // (4096 * 4096 + 14336 * 4096 + 4096 * 14336) * 2 B = 268435456 B
    EXPECT_EQ(p.compulsory_bytes().value, 268435456.0);
}

TEST(GemmProblem, DenseLeadingDimensionsFollowTheMajors) {
    const GemmProblem linear = gemm_problem(3, 5, 7);
    EXPECT_EQ(linear.lda, 7);
    EXPECT_EQ(linear.ldb, 7);
    EXPECT_EQ(linear.ldc, 5);
    const GemmProblem other = gemm_problem(3, 5, 7, Type::fp16, Major::mn, Major::mn);
    EXPECT_EQ(other.lda, 3);
    EXPECT_EQ(other.ldb, 5);
    EXPECT_EQ(a_major_name(other.a_major), "m");
    EXPECT_EQ(b_major_name(other.b_major), "n");
}

TEST(GemmProblem, SizesOutsideTheRangeAreNamed) {
    EXPECT_EQ(refusal(0, 1, 1), "m = 0: must be 1 .. 2147483647");
    EXPECT_EQ(refusal(1, -1, 1), "n = -1: must be 1 .. 2147483647");
    EXPECT_EQ(refusal(1, 1, std::int64_t{1} << 31), "k = 2147483648: must be 1 .. 2147483647");
    EXPECT_EQ(refusal((std::int64_t{1} << 31) - 1, 1, 1), "accepted");
    // 2 * 2^21 * 2^21 * 2^20 = 2^63
    EXPECT_NE(refusal(1 << 21, 1 << 21, 1 << 20), "accepted");
    EXPECT_EQ(refusal(1 << 21, 1 << 20, 1 << 20), "accepted");
}

TEST(GemmProblem, LeadingDimensionsMustHoldALine) {
    GemmProblem p = gemm_problem(8, 16, 32);
    p.ldc = 15;
    EXPECT_THROW(check(p), RequestError);
    p.ldc = 17;
    EXPECT_NO_THROW(check(p));
    p.lda = 31;
    EXPECT_THROW(check(p), RequestError);
}

std::string refusal(const GemmProblem& p) {
    try {
        check(p);
        return "accepted";
    } catch (const RequestError& error) { return error.what(); }
}

TEST(GemmProblem, MatricesOfABatchLieApart) {
    GemmProblem p = gemm_problem(8, 16, 32);
    p.a_stride = 256;
    EXPECT_EQ(refusal(p), "stride_a, stride_b and stride_d are of a batch; one product has none");
    p.batch = 3;
    EXPECT_EQ(refusal(p), "stride_d = 0: matrices of 8 lines, ldc = 16, would overlap; from 128 on they are separate");
    p.c_stride = dense_stride(p, 'c');
    EXPECT_EQ(refusal(p), "accepted") << "B is shared";
    p.a_stride = 255;
    EXPECT_EQ(refusal(p), "stride_a = 255: matrices of 8 lines, lda = 32, would overlap; from 256 on they are separate, and 0 shares one");
    // Side by side: three of 32 in lines of 96.
    p.a_stride = 32, p.lda = 96;
    EXPECT_EQ(refusal(p), "accepted");
    p.batch = 4;
    EXPECT_NE(refusal(p), "accepted");
    p.batch = 0;
    EXPECT_EQ(refusal(p), "batch = 0: must be 1 .. 2147483647");
}

TEST(GemmProblem, ABatchCountsEveryProductAndASharedOperandOnce) {
    GemmProblem p = gemm_problem(8, 16, 32);
    p.batch = 5, p.a_stride = 0, p.b_stride = 512, p.c_stride = 128;
    EXPECT_EQ(p.flops().value, 5 * 2 * 8 * 16 * 32);
    EXPECT_EQ(p.compulsory_bytes().value, 2 * (8 * 32 + 5 * 16 * 32 + 5 * 8 * 16));
}

TEST(GemmProblem, ScalesOfBlocksAreOnesOfBytes) {
    GemmProblem p = gemm_problem(257, 300, 1000);
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, Scales::block);
    EXPECT_EQ(refusal(p), "scales block: it is of operands of 8 bits; of bf16 sums are fp32 as they are");
    p.a_type = p.b_type = Type::fp8_e4m3;
    EXPECT_EQ(refusal(p), "accepted");
    EXPECT_TRUE(p.promoted());
    EXPECT_EQ(p.first_operand(), 4u);
    // 1000 = 7 * 128 + 104, 300 = 2 * 128 + 44; lines are multiples of four numbers.
    EXPECT_EQ(p.a_scales().lines, 8);
    EXPECT_EQ(p.a_scales().pitch(), 260);
    EXPECT_EQ(p.b_scales().lines, 3);
    EXPECT_EQ(p.b_scales().width, 8);
    EXPECT_EQ(p.compulsory_bytes().value, 257 * 1000 + 300 * 1000 + 2 * 257 * 300 + 4 * (8 * 257 + 3 * 8));
    p.epilogue = {}, p.accumulation = Accumulation::promoted;
    EXPECT_EQ(refusal(p), "accepted");
    p.a_type = p.b_type = Type::fp16, p.c_type = Type::fp16;
    EXPECT_EQ(refusal(p), "accumulation promoted: it is of operands of 8 bits; of fp16 sums are fp32 as they are");
}

TEST(GemmProblem, WhatIsNotSupportedYetIsRefusedByName) {
    GemmProblem p = gemm_problem(8, 16, 32);
    p.beta = 1;
    EXPECT_THROW(check(p), RequestError);
}

}  // namespace
}  // namespace rooftile
