#include "rooftile/gemm/device/cublaslt_epilogue.hpp"

#include <gtest/gtest.h>

#include "rooftile/gemm/device/cublaslt_api.hpp"

namespace rooftile {
namespace {

struct Asked {
    std::string_view expression;
    std::vector<std::string> tensors = {};
    double alpha = 1, beta = 0;
    Scales scales = Scales::none;
    Type operands = Type::bf16;
};

std::optional<CublasLtEpilogue> epilogue_of(const Asked& asked) {
    GemmProblem p = gemm_problem(64, 128, 32);
    p.a_type = p.b_type = asked.operands;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, asked.alpha, asked.beta, asked.expression, asked.tensors, asked.scales);
    std::string missing;
    auto found = cublaslt_epilogue(p, missing);
    EXPECT_EQ(found.has_value(), missing.empty());
    return found;
}

TEST(CublasLtEpilogue, OfAPlainProductIsThePlainOne) {
    std::string missing;
    const auto e = cublaslt_epilogue(gemm_problem(64, 128, 32), missing);
    ASSERT_TRUE(e);
    EXPECT_EQ(e->kind, cublaslt::epilogue_default);
    EXPECT_EQ(e->alpha, 1);
    EXPECT_EQ(e->beta, 0);
}

TEST(CublasLtEpilogue, SaysBiasActivationAndWhatIsAdded) {
    const auto bias = epilogue_of({"d = gelu(acc + bias)", {"bias:bf16[N]"}});
    ASSERT_TRUE(bias);
    EXPECT_EQ(bias->kind, cublaslt::epilogue_gelu | cublaslt::epilogue_bias);
    EXPECT_EQ(bias->bias, 0u);
    EXPECT_TRUE(bias->other_gelu);
    const auto relu = epilogue_of({"d = relu(acc)", {}, 0.5});
    ASSERT_TRUE(relu);
    EXPECT_EQ(relu->kind, cublaslt::epilogue_relu);
    EXPECT_EQ(relu->alpha, 0.5f);
    const auto all = epilogue_of({"d = gelu_tanh(acc - 2 * r + bias)", {"r:bf16[M,N]", "bias:bf16[N]"}});
    ASSERT_TRUE(all);
    EXPECT_EQ(all->kind, cublaslt::epilogue_gelu | cublaslt::epilogue_bias);
    EXPECT_EQ(all->residual, 0u);
    EXPECT_EQ(all->beta, -2.0f);
    EXPECT_EQ(all->bias, 1u);
    EXPECT_FALSE(all->other_gelu);
    const auto beta = epilogue_of({"", {"c:bf16[M,N]"}, 2, -1.5});
    ASSERT_TRUE(beta);
    EXPECT_EQ(beta->kind, cublaslt::epilogue_default);
    EXPECT_EQ(beta->alpha, 2.0f);
    EXPECT_EQ(beta->beta, -1.5f);
}

TEST(CublasLtEpilogue, ScalesOfEightBitOperandsAreItsOwn) {
    const auto scaled = epilogue_of({"d = relu(acc + bias)", {"bias:bf16[N]"}, 1, 0, Scales::tensor, Type::fp8_e4m3});
    ASSERT_TRUE(scaled);
    EXPECT_EQ(scaled->scale_a, 0u);
    EXPECT_EQ(scaled->scale_b, 1u);
    EXPECT_EQ(scaled->bias, 2u);
    EXPECT_FALSE(epilogue_of({"", {}, 1, 0, Scales::tensor})) << "of 16-bit operands it has none";
    const auto by_row = epilogue_of({"", {}, 1, 0, Scales::row, Type::fp8_e4m3});
    ASSERT_TRUE(by_row);
    EXPECT_TRUE(by_row->outer_scales);
    EXPECT_FALSE(scaled->outer_scales);
    const auto of_blocks = epilogue_of({"", {}, 1, 0, Scales::block, Type::fp8_e4m3});
    ASSERT_TRUE(of_blocks) << "they are none of the epilogue's";
    EXPECT_FALSE(of_blocks->scale_a);
}

TEST(CublasLtEpilogue, WhatItCannotComputeIsMissing) {
    EXPECT_FALSE(epilogue_of({"d = silu(acc)"}));
    EXPECT_FALSE(epilogue_of({"d = acc * r", {"r:bf16[M,N]"}}));
    EXPECT_FALSE(epilogue_of({"d = relu(acc) + r", {"r:bf16[M,N]"}}));
    EXPECT_FALSE(epilogue_of({"d = acc + acc"}));
    EXPECT_FALSE(epilogue_of({"d = acc + rows", {"rows:bf16[M,1]"}}));
    EXPECT_FALSE(epilogue_of({"d = acc + bias", {"bias:fp32[N]"}}));
    EXPECT_FALSE(epilogue_of({"d = acc + 2 * bias", {"bias:bf16[N]"}}));
    EXPECT_FALSE(epilogue_of({"d = acc + r + s", {"r:bf16[M,N]", "s:bf16[M,N]"}}));
    EXPECT_FALSE(epilogue_of({"d = acc + 1"}));
}

}  // namespace
}  // namespace rooftile
