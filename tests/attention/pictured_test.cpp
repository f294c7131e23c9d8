#include "rooftile/attention/pictured.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "rooftile/attention/model.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

// One tile for each SM: what the picture shows of it, blocks and what is between tiles, is what the SM that ends last takes.
TEST(AttentionPicture, AddsUpToTheModelsCycles) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    Given given(Given::Named::by_key);
    for (const auto& [key, text] : {std::pair("heads", "32"), std::pair("q", "512"), std::pair("kv", "8192"), std::pair("dim", "128")})
        given.add(key, text);
    const Operation& operation = attention_operation();
    const PlanSet plans = operation.derive(machine, operation.problem(given), operation.request(given, {.top = 1}));
    ASSERT_FALSE(plans.refusal);
    const AttentionPlan& plan = plans.plans[0].own.as<AttentionPlan>();
    std::vector<std::string> unknown;
    const AttentionTime time = attention_time(attention_hardware(*machine, plan.problem.type, unknown), plan.problem, plan.config);
    ASSERT_LE(time.work.tiles, 132);
    const auto p = operation.pipeline(*machine, plans.plans[0]);
    ASSERT_TRUE(p);
    EXPECT_EQ(p->stages, plan.config.stages);
    EXPECT_EQ(p->steps, 8192 / plan.config.tile_kv + (8192 % plan.config.tile_kv != 0));
    EXPECT_NEAR(double(p->steps) * p->step + p->turn + p->epilogue, time.cycles, 0.02 * time.cycles);
    EXPECT_GT(p->epilogue, 0);
    EXPECT_GE(p->turn, 0);
}

// Whatever the plan, no unit takes longer for a block than the block does; a machine without a rate has no picture.
TEST(AttentionPicture, NoUnitTakesLongerThanTheStep) {
    Random random(471003);
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    Machine less = *machine;
    std::erase_if(less.facts, [](const auto& fact) { return fact.first.starts_with("rate.mufu"); });
    const Operation& operation = attention_operation();
    int pictures = 0;
    for (int i = 0; i < 20; ++i) {
        const Problem problem = operation.draw(random, {random.coin() ? "draw" : "any"});
        const PlanSet plans = operation.derive(machine, problem, operation.request(operation.given(problem), {.top = 1}));
        if (plans.refusal) continue;
        const auto p = operation.pipeline(*machine, plans.plans[0]);
        ASSERT_TRUE(p) << operation.short_name(problem);
        for (const UnitCycles& unit : p->units)
            EXPECT_LE(unit.cycles, p->step * 1.0001) << operation.short_name(problem) << ": " << unit.unit;
        EXPECT_GT(p->clock_hz, 1e8);
        EXPECT_GE(p->steps, 1);
        ++pictures;
        EXPECT_FALSE(operation.pipeline(less, plans.plans[0]));
    }
    EXPECT_GE(pictures, 10);
}

}  // namespace
}  // namespace rooftile
