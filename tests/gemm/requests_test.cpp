// Requests of every kind, drawn and wrong on purpose: each ends in a plan, or in one line that says what would work.
//
// ROOFTILE_FUZZ_SHAPES sets how many are drawn (2000), ROOFTILE_FUZZ_SEED draws others.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>

#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/records.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_request.hpp"

namespace rooftile {
namespace {

constexpr std::size_t longest_line = 400;

TEST(GemmRequests, DrawnOnesEndInAPlanOrInOneLine) {
    const std::size_t count = from_environment("ROOFTILE_FUZZ_SHAPES", test_all() ? 2000 : 500);
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 1));
    const Machine machine = machine_by_id("h200-sxm");
    std::map<std::string, int> planned, refused;
    for (std::size_t i = 0; i < count; ++i) {
        const Given given = drawn_request(random, 1500);
        SCOPED_TRACE(shown(given));
        try {
            const GemmProblem p = gemm_problem(given);
            ASSERT_EQ(gemm_problem(gemm_given(p)), p);
            ASSERT_EQ(gemm_problem(gemm_given(problem_record(p))), p);
            GemmRequest request;
            request.top = 1, request.buildable_only = true;
            const auto derived = derive(machine, p, request);
            const auto* plans = std::get_if<Plans>(&derived);
            if (!plans) throw RequestError(std::get<Infeasible>(derived).message);
            ASSERT_FALSE(plans->plans.empty());
            EXPECT_GT(plans->plans.front().prediction.time_us.value_or(0), 0);
            for (const char* key : {"batch", "groups", "scales", "accumulation", "epilogue", "a_major", "b_major"}) planned[key] += given.has(key);
            ++planned["result " + std::string(name_of(p.c_type))];
            ++planned["operands " + std::string(name_of(p.a_type)) + " " + std::string(name_of(p.b_type))];
            planned["packed"] += p.is_quantised(), planned["packed with epilogue"] += p.is_quantised() && p.epilogue;
            if (p.epilogue) ++planned["scales " + std::string(name_of(p.epilogue->scales))];
        } catch (const RequestError& error) {
            std::string line = error.what();
            if (line.starts_with("column ")) line.resize(line.find('\n'));  // below it an expression shows its place
            EXPECT_EQ(line.find('\n'), line.npos) << line;
            EXPECT_TRUE(line.size() > 20 && line.size() < longest_line) << line;
            ++refused[line.substr(0, line.find_first_of(":=,0123456789"))];
        }
    }
    // Of 2,000 every kind is planned dozens of times.
    for (const char* kind : {"batch",
                             "groups",
                             "scales",
                             "accumulation",
                             "epilogue",
                             "a_major",
                             "b_major",
                             "result bf16",
                             "result fp16",
                             "result fp32",
                             "result fp8_e4m3",
                             "result fp8_e5m2",
                             "operands bf16 bf16",
                             "operands fp16 fp16",
                             "operands fp8_e4m3 fp8_e4m3",
                             "operands fp8_e4m3 fp8_e5m2",
                             "operands fp8_e5m2 fp8_e4m3",
                             "operands fp8_e5m2 fp8_e5m2",
                             "scales tensor",
                             "scales row",
                             "scales block",
                             "packed",
                             "packed with epilogue"})
        EXPECT_GE(planned[kind] * 100, int(count)) << kind;
    EXPECT_GE(refused.size(), 4u);
    for (const auto& [line, times] : refused) fmt::print("refused {:5}: {}\n", times, line);
}

std::string refusal(std::initializer_list<std::pair<const char*, const char*>> fields) {
    Given given(Given::Named::by_key);
    for (const auto& [key, text] : fields) given.add(key, text);
    if (!given.has("shape") && !given.has("m")) given.add("shape", "512x256x128");
    try {
        gemm_problem(given);
    } catch (const RequestError& error) { return error.what(); }
    return "accepted";
}

TEST(GemmRequests, TypesThatCannotPairSayWhichDo) {
    EXPECT_EQ(refusal({{"types", "bf16,fp16,bf16"}}),
              "types bf16 x fp16 -> bf16: no instruction multiplies the two; a and b are both bf16, both fp16, or fp8_e4m3 and fp8_e5m2 in any pair");
    EXPECT_EQ(refusal({{"types", "fp8_e4m3,bf16,bf16"}}),
              "types fp8_e4m3 x bf16 -> bf16: no instruction multiplies the two; a and b are both bf16, both fp16, or fp8_e4m3 and fp8_e5m2 in any "
              "pair");
    EXPECT_EQ(refusal({{"types", "bf16,bf16,fp8_e4m3"}}),
              "types bf16 x bf16 -> fp8_e4m3: results of 8 bits are of operands of 8 bits; bf16 or fp32");
    EXPECT_EQ(refusal({{"types", "fp16,fp16,bf16"}}), "types fp16 x fp16 -> bf16: of 16-bit operands the result is of their type or fp32");
    EXPECT_NE(refusal({{"types", "fp8_e4m3,fp8_e4m3"}}).find("accepted are three, of A, B and the result"), std::string::npos);
    EXPECT_EQ(refusal({{"types", "fp8_e4m3,fp8_e5m2,fp8_e4m3"}}), "accepted");
}

TEST(GemmRequests, WhatAnEpilogueReadsIsThere) {
    EXPECT_NE(refusal({{"epilogue", "d = acc + bias"}}).find("there is no tensor \"bias\""), std::string::npos);
    EXPECT_NE(refusal({{"beta", "1"}}).find("give --tensor \"c:bf16[M,N]\""), std::string::npos);
    // What is added to a result of 8 bits is none of it.
    EXPECT_NE(refusal({{"types", "fp8_e4m3,fp8_e4m3,fp8_e4m3"}, {"beta", "1"}}).find("give --tensor \"c:bf16[M,N]\""), std::string::npos);
    EXPECT_NE(refusal({{"tensor", "bias:bf16[N]"}}).find("no epilogue that reads it"), std::string::npos);
    EXPECT_NE(refusal({{"epilogue", "d = acc + x"}, {"tensor", "x:bf16[N,M]"}}).find("the result is [512,256]"), std::string::npos);
    EXPECT_NE(refusal({{"epilogue", "d = acc + x"}, {"tensor", "x:fp8_e4m3[N]"}}).find("the type must be bf16, fp16, fp32 or bool"), std::string::npos);
}

TEST(GemmRequests, OverlappingResultsSayFromWhereTheyLieApart) {
    EXPECT_EQ(refusal({{"batch", "3"}, {"stride_d", "100"}}),
              "stride_d = 100: matrices of 512 lines, ldc = 256, would overlap; from 131072 on they are separate");
    EXPECT_EQ(refusal({{"batch", "3"}, {"stride_d", "0"}}), "stride_d = 0: matrices of 512 lines, ldc = 256, would overlap; from 131072 on they are separate");
    EXPECT_NE(refusal({{"ldc", "255"}}).find("ldc = 255: must be at least 256"), std::string::npos);
}

TEST(GemmRequests, ScalesAndPromotionAreOfEightBits) {
    EXPECT_EQ(refusal({{"scales", "block"}}), "scales block: it is of operands of 8 bits; of bf16 sums are fp32 as they are");
    EXPECT_EQ(refusal({{"accumulation", "promoted"}}), "accumulation promoted: it is of operands of 8 bits; of bf16 sums are fp32 as they are");
    EXPECT_EQ(refusal({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "block"}, {"batch", "2"}}),
              "scales block in a batch: not supported yet; scales tensor or row work");
}

}  // namespace
}  // namespace rooftile
