#include "rooftile/tiled/epilogue.hpp"

#include <gtest/gtest.h>

#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/records.hpp"

namespace rooftile {
namespace {

SharedEpilogue made(double alpha, double beta, std::string_view text, const std::vector<std::string>& tensors) {
    return product_epilogue(512, 256, Type::bf16, alpha, beta, text, tensors);
}
std::string refused(double alpha, double beta, std::string_view text, const std::vector<std::string>& tensors) {
    try {
        made(alpha, beta, text, tensors);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(Epilogue, CountsWhatItReads) {
    const SharedEpilogue e = made(0.5, 2, "d = gelu(acc + bias) * rows", {"c:bf16[M,N]", "bias:fp32[N]", "rows:fp16[M,1]"});
    EXPECT_EQ(e->bytes, 512 * 256 * 2 + 256 * 4 + 512 * 2);
    EXPECT_EQ(e->output(), "d");
    EXPECT_TRUE(e->operands[0].by_row && e->operands[0].by_column);
    EXPECT_TRUE(!e->operands[1].by_row && e->operands[1].by_column);
    EXPECT_TRUE(e->operands[2].by_row && !e->operands[2].by_column);
    EXPECT_GT(e->issue, made(1, 0, "d = acc * 2", {})->issue);
    EXPECT_FALSE(made(1, 0, "", {}));
}

TEST(Epilogue, RefusesInOneLineThatSaysWhatWouldWork) {
    EXPECT_NE(refused(1, 1, "", {}).find("give --tensor \"c:bf16[M,N]\""), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + foo", {}).find("there is no tensor \"foo\""), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc; e = acc * 2; f = acc * 3; g = acc * 4", {}).find("4 results; up to 3 are stored"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc; e = x * 2", {"x:bf16[N]"}).find("e is bf16 [256]; it must be a number for each"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = softmax(acc)", {}).find("takes whole rows"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + x", {"x:bf16[N,M]"}).find("the result is [512,256]"), std::string::npos);
    EXPECT_NE(refused(1, 0, "", {"x:bf16[N]"}).find("no epilogue that reads it"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc + dropout(x, 0.5)", {"x:bf16[N]"}).find("dropout of [256]"), std::string::npos);
    EXPECT_NE(refused(1, 0, "d = acc > 0", {}).find("must be a number"), std::string::npos);
    // A fault's place is that in what was given, though alpha stands before it.
    EXPECT_NE(refused(2, 0, "d = acc + foo", {}).find("column 11"), std::string::npos);
}

// B counts the products, one of them too; G the groups; either first of three axes, and nowhere else.
TEST(Epilogue, LettersOfProductsAndGroupsStandFirstOfThreeAxes) {
    const auto of = [](std::int64_t batch, std::int64_t groups, const char* shape) {
        try {
            const SharedEpilogue e = product_epilogue(512, 256, Type::bf16, 1, 0, "d = acc + x", {std::string("x:bf16") + shape}, Scales::none, batch, groups);
            return fmt::format("{} B", e->bytes);
        } catch (const RequestError& error) { return std::string(error.what()); }
    };
    EXPECT_EQ(of(4, 0, "[B,1,N]"), "2048 B");
    EXPECT_EQ(of(1, 0, "[B,1,N]"), "512 B");
    EXPECT_EQ(of(1, 0, "[1,1,256]"), "512 B");
    EXPECT_EQ(of(1, 0, "[B,M,N]"), of(1, 0, "[M,N]"));
    EXPECT_EQ(of(1, 0, "[ B, M, 1 ]"), of(1, 0, "[M,1]"));
    EXPECT_EQ(of(1, 0, "[B,1,1]"), of(1, 0, "[1]"));
    EXPECT_EQ(of(1, 3, "[G,1,N]"), "1536 B");
    for (const std::int64_t batch : {1, 4}) {
        EXPECT_NE(of(batch, 0, "[G,1,N]").find("G is the first of three axes and counts the groups of --groups: [G,1,N]"), std::string::npos) << of(batch, 0, "[G,1,N]");
        for (const char* shape : {"[B]", "[B,N]", "[M,B]", "[1,B,N]", "[B,B,N]", "[B,M,B]"})
            EXPECT_NE(of(batch, 0, shape).find("B is the first of three axes"), std::string::npos) << shape << ' ' << of(batch, 0, shape);
    }
    EXPECT_NE(of(1, 3, "[B,1,N]").find("counts the products of --batch, of groups none"), std::string::npos);
    EXPECT_NE(of(1, 3, "[G,N]").find("G is the first"), std::string::npos);
    EXPECT_NE(of(1, 0, "[2,1,N]").find("an epilogue's tensor is [M,N]"), std::string::npos);
}

std::string refused_pairs(Pairs pairs, std::string_view text, const std::vector<std::string>& tensors, std::int64_t n = 256, double beta = 0,
                          Scales scales = Scales::none) {
    try {
        product_epilogue(512, n, Type::bf16, 1, beta, text, tensors, scales, 1, 0, pairs);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(Epilogue, OfPairsHasHalfAsManyColumns) {
    const SharedEpilogue e = product_epilogue(512, 256, Type::bf16, 0.5, 0, "d = silu(gate) * up + r", {"r:bf16[M,N/2]"}, Scales::none, 1, 0, Pairs::split);
    EXPECT_EQ(e->bytes, 512 * 128 * 2);
    EXPECT_EQ(e->sums(), 2u);
    EXPECT_EQ(e->columns_of(256), 128);
    const GraphNode& d = e->graph.nodes[std::size_t(e->graph.outputs.front().node)];
    EXPECT_EQ(d.shape, (Shape{512, 128}));
    EXPECT_NE(e.text(), product_epilogue(512, 256, Type::bf16, 0.5, 0, "d = silu(gate) * up + r", {"r:bf16[M,N/2]"}, Scales::none, 1, 0, Pairs::interleaved).text());
}

TEST(Epilogue, OfPairsRefusesWhatHasNoPairs) {
    EXPECT_NE(refused_pairs(Pairs::split, "", {}).find("give --epilogue"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::split, "d = silu(gate) * up", {}, 255).find("give an even n"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::split, "d = silu(gate)", {}).find("\"up\" is not used"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::interleaved, "d = silu(gate) * up + c", {"c:bf16[M,N/2]"}, 256, 1).find("leave beta out"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::interleaved, "d = silu(gate) * up", {}, 256, 0, Scales::row).find("scales tensor work"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::interleaved, "d = silu(gate) * up + r", {"r:bf16[M,N]"}).find("[M,N/2]"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::interleaved, "d = silu(gate) * up + up_ab", {"up_ab:bf16[N/2]"}).find("choose another name"), std::string::npos);
    EXPECT_NE(refused_pairs(Pairs::interleaved, "d = acc * 2", {}).find("there is no tensor \"acc\""), std::string::npos);
}

TEST(Epilogue, StoresMoreThanOneResult) {
    const SharedEpilogue e = made(1, 0, "pre = acc + bias; d = gelu(pre); z = pre", {"bias:bf16[N]"});
    ASSERT_EQ(e->results(), 2u);
    EXPECT_EQ(e->output(), "d");
    EXPECT_EQ(e->graph.outputs[1].name, "z");
    for (const GraphOutput& out : e->graph.outputs) EXPECT_EQ(e->graph.nodes[std::size_t(out.node)].element, Element::bf16);
    // What is between them is not rounded: the activation's argument is fp32.
    const GraphNode& d = e->graph.nodes[std::size_t(e->graph.outputs[0].node)];
    EXPECT_EQ(e->graph.nodes[std::size_t(d.operands[0])].element, Element::fp32);
    // What both need is computed for each.
    EXPECT_GT(e->issue, made(1, 0, "d = gelu(acc + bias)", {"bias:bf16[N]"})->issue);
    GemmProblem p = gemm_problem(512, 256, 64);
    p.epilogue = e;
    EXPECT_EQ(p.c_bytes(), 2.0 * 512 * 256 * 2);
}

TEST(Epilogue, ComesBackFromRequestAndRecord) {
    Given given;
    for (const auto& [key, text] : {std::pair{"shape", "512x256x64"}, {"alpha", "0.5"}, {"beta", "-1"},
                                    {"epilogue", "d = relu(acc) + bias"}, {"tensor", "c:bf16[M,N]"}, {"tensor", "bias:bf16[N]"}})
        given.add(key, text);
    const GemmProblem p = gemm_problem(given);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    EXPECT_EQ(gemm_problem(gemm_given(problem_record(p))), p);
    EXPECT_NE(gemm_problem(512, 256, 64), p);
}

TEST(Epilogue, PairsComeBackFromRequestAndRecord) {
    Given given;
    for (const auto& [key, text] : {std::pair{"shape", "512x256x64"}, {"batch", "3"}, {"epilogue", "d = silu(gate) * up * s"},
                                    {"pairs", "interleaved"}, {"tensor", "s:bf16[N/2]"}})
        given.add(key, text);
    const GemmProblem p = gemm_problem(given);
    EXPECT_EQ(p.ldc, 128);
    EXPECT_EQ(p.c_stride, 512 * 128);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    EXPECT_EQ(gemm_problem(gemm_given(problem_record(p))), p);
    const std::vector<TensorInfo> tensors = gemm_operation().tensors({&gemm_operation(), Own::of(p)});
    EXPECT_EQ(tensors.back().name, "d");
    EXPECT_EQ(tensors.back().extents.back().most, 128);
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

TEST(Epilogue, StagesWhatHasAnElementForEachOfTheResult) {
    EXPECT_EQ(made(1, 0, "d = acc + bias + r", {"bias:bf16[N]", "r:fp16[M,N]"})->staged_operand(), 1u);
    EXPECT_FALSE(made(1, 0, "d = acc + r", {"r:fp32[M,N]"})->staged_operand());
    EXPECT_FALSE(made(1, 0, "d = acc + bias", {"bias:bf16[N]"})->staged_operand());
    EXPECT_FALSE(product_epilogue(512, 255, Type::bf16, 1, 0, "d = acc + r", {"r:bf16[M,N]"})->staged_operand()) << "rows begin anywhere";
}

TEST(Epilogue, IsSweptOverWithItsOwnCommas) {
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

// As in BLAS: whatever C holds, 0 times it is not added.
TEST(Epilogue, ABetaOf0ReadsNoC) {
    const auto problem = [](const std::vector<std::pair<const char*, const char*>>& more) {
        Given given;
        for (const auto& [key, text] : {std::pair{"m", "512"}, {"n", "256"}, {"k", "64"}}) given.add(key, text);
        for (const auto& [key, text] : more) given.add(key, text);
        return gemm_problem(given);
    };
    const std::pair<const char*, const char*> c{"tensor", "c:bf16[M,N]"}, none{"beta", "0"}, bias{"tensor", "bias:bf16[N]"}, half{"alpha", "0.5"},
        added{"epilogue", "d = gelu(acc + bias)"}, read{"epilogue", "d = acc + c"};
    EXPECT_EQ(problem({none, c}), problem({}));
    EXPECT_EQ(problem({none, c, half}), problem({half}));
    EXPECT_EQ(problem({none, c, bias, added}), problem({bias, added}));
    EXPECT_EQ(problem({none, c, read}), problem({c, read})) << "by the epilogue it is";
    EXPECT_EQ(problem({{"beta", "2"}, c}).epilogue->operands.size(), 1u);
    EXPECT_THROW(problem({c}), RequestError) << "who gives C and no beta forgot it";
}

}  // namespace
}  // namespace rooftile
