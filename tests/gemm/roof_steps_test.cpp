#include "rooftile/gemm/roof_steps.hpp"

#include "rooftile/gemm/operation.hpp"
#include "rooftile/physics/explanation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

const GemmProblem problems[] = {gemm_problem(4096, 14336, 4096), gemm_problem(64, 4096, 4096),
                                gemm_problem(300, 517, 4096),    gemm_problem(1, 2112, 7168),
                                gemm_problem(512, 512, 16384),   gemm_problem(8192, 8192, 8192)};

Energy energy(const Machine& machine, const GemmPlan& plan) {
    return explain(machine, any_plan(plan), {.energy = true}).energy.value();
}

// On every machine that is shipped, whatever it knows: the steps add up to the prediction, or there are none
// where there is no prediction.
TEST(Explanation, StepsAddUpToThePredictionOfEveryPlan) {
    int explained = 0;
    for (const std::string& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        for (const GemmProblem& problem : problems) {
            const auto outcome = derive(machine, problem);
            const auto* plans = std::get_if<Plans>(&outcome);
            if (!plans) continue;
            for (std::size_t i = 0; i < plans->plans.size(); ++i) {
                SCOPED_TRACE(testing::Message() << id << " " << problem.m << " plan " << i + 1);
                const Prediction& prediction = plans->plans[i].prediction;
                const auto steps = gemm_roof_steps(machine, plans->plans[i]);
                EXPECT_EQ(steps.empty(), !prediction.time_us);
                if (steps.empty()) continue;
                std::int64_t sum = 0;
                for (const RoofStep& step : steps) sum += step.cost_ns;
                EXPECT_EQ(sum, steps.back().time_ns);
                EXPECT_EQ(sum, std::llround(*prediction.time_us * 1000));
                ++explained;
            }
        }
    }
    EXPECT_GT(explained, 200);
}

TEST(Explanation, NamesTheNumbersEachStepCameFrom) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto outcome = derive(machine, problems[0]);
    for (const RoofStep& step : gemm_roof_steps(machine, std::get<Plans>(outcome).plans.front())) {
        EXPECT_TRUE(step.cost_ns == 0 || !step.inputs.empty()) << step.name;
        for (const Input& input : step.inputs) EXPECT_TRUE(input.value) << input.name;
    }
}

TEST(Explanation, WhatIsNotChargedIsNamed) {
    Machine machine = machine_by_id("h200-sxm");
    machine.facts.erase("launch.gap_stream");
    const auto outcome = derive(machine, problems[0]);
    const auto steps = gemm_roof_steps(machine, std::get<Plans>(outcome).plans.front());
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().name, "launch");
    EXPECT_EQ(steps.back().cost_ns, 0);
    EXPECT_EQ(steps.back().note, "not charged: launch.gap_stream is unknown");
    machine.facts.erase("sm.count");
    const auto unknown = derive(machine, problems[0]);
    EXPECT_TRUE(gemm_roof_steps(machine, std::get<Plans>(unknown).plans.front()).empty());
}

// With energies that a reader can follow: at a clock that power does not bind nothing is scaled.
TEST(Explanation, EnergyIsTheSumOfItsTerms) {
    Machine machine = machine_by_id("h200-sxm");
    for (const char* number :
         {"clock.tensor=1.33 GHz", "clock.sustained.bf16=1.33 GHz", "energy.flop.bf16=1 pJ/FLOP",
          "energy.fill=10 pJ/B", "energy.shared_read=1 pJ/B", "energy.dram=100 pJ/B", "power.static=100 W",
          "power.sustained=5000 W", "energy.exponent=2 1"})
        set_number(machine, number);
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256, request.top = 1;
    const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096), request);
    const GemmPlan& plan = std::get<Plans>(outcome).plans.front();
    const Energy e = energy(machine, plan);
    EXPECT_TRUE(e.unknown.empty());
    // 2 * 4096^3 FLOP = 137438953472 at 1 pJ. 512 tiles of 64 steps of 49152 B at 10 pJ, as C and what is read from DRAM and crosses L2: A is
    // on one side for 16 columns of tiles once in 2^16, B for 32 rows, counted as 31. And 81920 B that the instructions read at 1 pJ.
    const double c = 2.0 * 4096 * 4096, crossing = 1 - (std::ldexp(1, -16) + std::ldexp(1, -31)) / 2;
    const double across = c + crossing * (double(*plan.prediction.dram_bytes) - c);
    EXPECT_NEAR(e.matrix.value(), 0.137438953472, 1e-12);
    EXPECT_NEAR(e.fill.value(), 512 * 64 * (49152e-11 + 81920e-12) + across * 1e-11, 1e-12);
    EXPECT_NEAR(e.dram.value(), double(*plan.prediction.dram_bytes) * 1e-10, 1e-12);
    EXPECT_NEAR(e.idle.value(), 100 * *plan.prediction.time_us * 1e-6, 1e-12);
    EXPECT_NEAR(e.total.value(), *e.matrix + *e.fill + *e.dram + *e.idle, 1e-12);
    EXPECT_NEAR(e.watts.value(), *e.total / (*plan.prediction.time_us * 1e-6), 1e-6);
    EXPECT_NEAR(e.joules_per_tflop.value(), *e.total / 0.137438953472, 1e-9);
}

// The clock is what holds the mean power where it is: the energies must say the same.
TEST(Explanation, EnergyUnderPowerIsWhatHoldsTheClock) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto outcome = derive(machine, problems[5]);
    EXPECT_NEAR(energy(machine, std::get<Plans>(outcome).plans.front()).watts.value(), 690, 1);  // power.sustained
}

TEST(Explanation, UnknownEnergiesAreNamedAndTheOthersStand) {
    Machine machine = machine_by_id("h200-sxm");
    machine.facts.erase("energy.fill");
    const auto outcome = derive(machine, problems[0]);
    const Energy e = energy(machine, std::get<Plans>(outcome).plans.front());
    EXPECT_EQ(e.unknown, std::vector<std::string>{"energy.fill"});
    EXPECT_TRUE(e.matrix);
    EXPECT_TRUE(e.dram);
    EXPECT_TRUE(e.idle);
    EXPECT_FALSE(e.fill);
    EXPECT_FALSE(e.total);
    EXPECT_FALSE(e.watts);
}

}  // namespace
}  // namespace rooftile
