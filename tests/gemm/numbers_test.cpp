// A machine of a few numbers [M8]: what is planned from them is judged on the machine that they are of.
#include "rooftile/machine/numbers.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/gemm.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

constexpr const char* of_the_method = "smem=256KiB,regs=65536,bw=1TB/s,peak=50TFLOP/s,latency=500clk";
// Of the H100 that is shipped: its own five.
constexpr const char* of_an_h100 = "smem=228KiB,regs=65536,bw=3.35TB/s,peak=989TFLOP/s,latency=800clk";

GemmPlan first_plan(const Machine& machine, const GemmProblem& problem, const GemmRequest& request = {}) {
    const auto result = derive(machine, problem, request);
    return std::get<Plans>(result).plans.at(0);
}

/// Of that tile on the whole machine, of its plan 1's time.
double share_of_best(const Machine& machine, const GemmProblem& problem, const GemmPlan& from_few) {
    GemmRequest fixed;
    fixed.top = 1, fixed.tile_m = from_few.config.tile_m, fixed.tile_n = from_few.config.tile_n, fixed.tile_k = from_few.config.tile_k;
    const auto result = derive(machine, problem, fixed);
    const auto* plans = std::get_if<Plans>(&result);
    if (!plans) return INFINITY;
    return *plans->plans.at(0).prediction.time_us / *first_plan(machine, problem).prediction.time_us;
}

TEST(FewNumbers, TheMethodsExampleReachesItsIntensity) {
    Random random(480001);
    for (int i = 0; i < 30; ++i) {
        const GemmProblem problem = gemm_problem(random.whole(128, 2000) * 8, random.whole(128, 2000) * 8, random.whole(8, 600) * 8);
        const GemmPlan plan = first_plan(machine_of_numbers(of_the_method), problem);
        EXPECT_GE(flops_a_loaded_byte(gemm_problem(1 << 14, 1 << 14, 1 << 10), {.tile_m = plan.config.tile_m, .tile_n = plan.config.tile_n}), 50);
        EXPECT_EQ(plan.config.stages, 2) << "assumed: nobody said how fast an SM is";
        EXPECT_FALSE(plan.prediction.time_us.has_value());
    }
}

TEST(FewNumbers, WithAClockAndARateTheExampleIsTheMethods) {
    const Machine machine = machine_of_numbers(std::string(of_the_method) + ",clock.boost=1GHz,rate.generic.bf16.fp32=500FLOP/clk/SM");
    GemmRequest tile;
    tile.tile_m = tile.tile_n = 128, tile.tile_k = 32, tile.consumer_warpgroups = 2;
    const GemmPlan plan = first_plan(machine, gemm_problem(4096, 4096, 4096), tile);
    EXPECT_EQ(plan.config.stages, 2);                     // S_min = ceil(500 / 2098) + 1
    EXPECT_EQ(plan.resources.accumulator_registers, 64);  // and about 104 with the rest: two blocks an SM
    EXPECT_EQ(plan.config.ctas_per_sm, 2);
    EXPECT_EQ(plan.resources.shared_bytes, 2 * 16384);
}

TEST(FewNumbers, AnH100sFiveGiveATileThatServesIt) {
    const Machine whole = machine_by_id("h100-sxm"), few = machine_of_numbers(of_an_h100);
    Random random(480002);
    constexpr int problems = 20;
    int near = 0;
    for (int i = 0; i < problems; ++i) {
        const auto extent = [&] { return std::int64_t(random.log_uniform(512, 2049)) * 8; };
        const GemmProblem problem = gemm_problem(extent(), extent(), std::int64_t(random.log_uniform(64, 1025)) * 8);
        near += share_of_best(whole, problem, first_plan(few, problem)) <= 1.10;
    }
    EXPECT_GE(near, problems * 9 / 10);
}

TEST(FewNumbers, WithSmsAndAClockTheyServeSmallerProblemsToo) {
    const Machine whole = machine_by_id("h100-sxm"), few = machine_of_numbers(std::string(of_an_h100) + ",sm.count=132,clock.boost=1.83GHz");
    Random random(480003);
    constexpr int problems = 30;
    int near = 0;
    for (int i = 0; i < problems;) {
        const GemmProblem problem = drawn_gemm(random, {});
        if (problem.flops().value < 2e10 || problem.flops().value > 5e12) continue;
        ++i;
        near += share_of_best(whole, problem, first_plan(few, problem)) <= 1.15;
    }
    EXPECT_GE(near, problems * 9 / 10);
}

TEST(FewNumbers, NoPlanNeedsWhatNoInstructionHas) {
    Random random(480004);
    for (int i = 0; i < 100; ++i) {
        const std::string text = fmt::format("smem={}KiB,regs={},bw={}GB/s,peak={}TFLOP/s,latency={}clk", random.whole(16, 1024), random.whole(16, 512) * 1024,
                                             random.whole(50, 20000), random.whole(1, 5000), random.whole(50, 3000));
        const auto result = derive(machine_of_numbers(text), gemm_problem(random.whole(1, 9000), random.whole(1, 1000) * 8, random.whole(1, 1000) * 8), {});
        const auto* plans = std::get_if<Plans>(&result);
        ASSERT_NE(plans, nullptr) << text;
        for (const GemmPlan& plan : plans->plans) {
            EXPECT_LE(plan.resources.accumulator_registers.value_or(0) + MmaOnlyFamily::working_registers, 255) << text;
            EXPECT_LE(plan.resources.threads.value_or(0), 1024) << text;
        }
    }
}

TEST(FewNumbers, WhatIsWrongIsSaidInOneLine) {
    const std::pair<const char*, const char*> wrong[] = {
        {"", "is empty"}, {"smem", "accepted is NAME=VALUE"}, {"smem=256", "smem = \"256\": no unit"}, {"smem=1GHz", "is not this key's unit"},
        {"smem=1KiB,smem=2KiB", "given twice"}, {"smem=1KiB,shared.per_sm=1KiB", "as smem and as shared.per_sm"}, {"sm.cuont=3", "did you mean sm.count"},
        {"regs=-3", "negative"}, {"latency=5", "no unit"},
        {"peak=50TFLOP/s,rate.generic.bf16.fp32=500FLOP/clk/SM,sm.count=80,clock.boost=1GHz", "is 40 TFLOP/s: leave one of them out"}};
    for (const auto& [text, said] : wrong) {
        try {
            machine_of_numbers(text);
            ADD_FAILURE() << text << " is taken";
        } catch (const RequestError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(said), message.npos) << message;
            EXPECT_EQ(message.find('\n'), message.npos) << message;
        }
    }
}

}  // namespace
}  // namespace rooftile
