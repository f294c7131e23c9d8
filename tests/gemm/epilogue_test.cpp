#include "rooftile/gemm/epilogue.hpp"

#include <gtest/gtest.h>

#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/records.hpp"

namespace rooftile {
namespace {

SharedEpilogue made(double alpha, double beta, std::string_view text, const std::vector<std::string>& tensors) {
    return gemm_epilogue(512, 256, Type::bf16, alpha, beta, text, tensors);
}
std::string refused(double alpha, double beta, std::string_view text, const std::vector<std::string>& tensors) {
    try {
        made(alpha, beta, text, tensors);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(GemmEpilogue, CountsWhatItReads) {
    const SharedEpilogue e = made(0.5, 2, "d = gelu(acc + bias) * rows", {"c:bf16[M,N]", "bias:fp32[N]", "rows:fp16[M,1]"});
    EXPECT_EQ(e->bytes, 512 * 256 * 2 + 256 * 4 + 512 * 2);
    EXPECT_EQ(e->output(), "d");
    EXPECT_TRUE(e->operands[0].by_row && e->operands[0].by_column);
    EXPECT_TRUE(!e->operands[1].by_row && e->operands[1].by_column);
    EXPECT_TRUE(e->operands[2].by_row && !e->operands[2].by_column);
    EXPECT_GT(e->issue, made(1, 0, "d = acc * 2", {})->issue);
    EXPECT_FALSE(made(1, 0, "", {}));
}

TEST(GemmEpilogue, RefusesInOneLineThatSaysWhatWouldWork) {
    EXPECT_NE(refused(1, 1, "", {}).find("give --tensor \"c:bf16[M,N]\""), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + foo", {}).find("there is no tensor \"foo\""), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc; e = acc * 2", {}).find("one is stored so far"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = softmax(acc)", {}).find("takes whole rows"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + x", {"x:bf16[N,M]"}).find("the result is [512,256]"), std::string::npos);
    EXPECT_NE(refused(1, 0, "", {"x:bf16[N]"}).find("no epilogue that reads it"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + dropout(x, 0.5)", {"x:bf16[N]"}).find("dropout of [256]"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc > 0", {}).find("must be a number"), std::string::npos);
    // A fault's place is that in what was given, though alpha stands before it.
    EXPECT_NE(refused(2, 0, "d = acc + foo", {}).find("column 11"), std::string::npos);
}

TEST(GemmEpilogue, ComesBackFromRequestAndRecord) {
    Given given;
    for (const auto& [key, text] : {std::pair{"shape", "512x256x64"}, {"alpha", "0.5"}, {"beta", "-1"},
                                    {"epilogue", "d = relu(acc) + bias"}, {"tensor", "c:bf16[M,N]"}, {"tensor", "bias:bf16[N]"}})
        given.add(key, text);
    const GemmProblem p = gemm_problem(given);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    EXPECT_EQ(gemm_problem(gemm_given(problem_record(p))), p);
    EXPECT_NE(gemm_problem(512, 256, 64), p);
}

TEST(GemmProblem, TypesScalesAndBatchesComeBackFromRequestAndRecord) {
    const auto asked = [](std::initializer_list<std::pair<const char*, const char*>> fields) {
        Given given;
        given.add("shape", "512x256x64");
        for (const auto& [key, text] : fields) given.add(key, text);
        return gemm_problem(given);
    };
    for (const GemmProblem& p :
         {asked({{"types", "fp8_e4m3,fp8_e5m2,fp32"}}), asked({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "tensor"}}),
          asked({{"types", "fp16,fp16,fp32"}, {"scales", "row"}, {"epilogue", "d = relu(acc)"}}),
          asked({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "block"}}), asked({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"accumulation", "promoted"}}),
          asked({{"types", "fp8_e5m2,fp8_e4m3,bf16"}, {"scales", "block"}, {"epilogue", "d = gelu(acc + bias)"}, {"tensor", "bias:bf16[N]"}}),
          asked({{"batch", "7"}, {"stride_a", "0"}}), asked({{"batch", "3"}, {"type", "fp16"}, {"stride_d", "200000"}})}) {
        EXPECT_EQ(gemm_problem(gemm_given(p)), p);
        EXPECT_EQ(gemm_problem(gemm_given(problem_record(p))), p);
    }
    const GemmProblem scaled = asked({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "row"}});
    EXPECT_EQ(scaled.epilogue->operands.size(), 2u);
    EXPECT_EQ(scaled.epilogue->bytes, 4 * (512 + 256));
    EXPECT_EQ(scaled.compulsory_bytes().value, 512 * 64 + 256 * 64 + 2 * 512 * 256 + 4 * (512 + 256));
    EXPECT_THROW(asked({{"types", "fp8_e4m3,bf16,bf16"}}), RequestError);
    EXPECT_THROW(asked({{"types", "bf16,bf16,fp16"}}), RequestError);
    EXPECT_THROW(asked({{"types", "fp8_e4m3,fp8_e4m3"}}), RequestError);
    EXPECT_THROW(asked({{"types", "bf16,bf16,bf16"}, {"type", "bf16"}}), RequestError);
    EXPECT_THROW(asked({{"stride_a", "0"}}), RequestError);
}

TEST(GemmEpilogue, StagesWhatHasAnElementForEachOfTheResult) {
    EXPECT_EQ(made(1, 0, "d = acc + bias + r", {"bias:bf16[N]", "r:fp16[M,N]"})->staged_operand(), 1u);
    EXPECT_FALSE(made(1, 0, "d = acc + r", {"r:fp32[M,N]"})->staged_operand());
    EXPECT_FALSE(made(1, 0, "d = acc + bias", {"bias:bf16[N]"})->staged_operand());
    EXPECT_FALSE(gemm_epilogue(512, 255, Type::bf16, 1, 0, "d = acc + r", {"r:bf16[M,N]"})->staged_operand()) << "rows begin anywhere";
}

TEST(GemmEpilogue, IsSweptOverWithItsOwnCommas) {
    SweepRequest request;
    for (const auto& [key, text] : {std::pair{"m", "256,512"}, {"n", "256"}, {"k", "64"}, {"tensor", "mask:bool[M,N]"},
                                    {"epilogue", "d = where(mask, acc, 0.25)"}})
        request.given.add(key, text);
    const Suite suite = swept_suite(gemm_operation(), request);
    ASSERT_EQ(suite.problems.size(), 2u);
    const auto& last = suite.problems[1].problem.own.as<GemmProblem>();
    EXPECT_EQ(last.m, 512);
    EXPECT_EQ(last.epilogue->bytes, 512 * 256);
}

}  // namespace
}  // namespace rooftile
