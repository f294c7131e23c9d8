// Two plans at once: what no split may promise, for the example of every operation beside every other.
#include "rooftile/physics/beside.hpp"

#include <gtest/gtest.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

Plan plan_of_example(const Operation& operation, const Machine& machine) {
    return operation.derive(std::make_shared<const Machine>(machine), operation.problem(example_of(operation)), operation.request(Given(), {.top = 1}))
        .plans.front();
}

TEST(Beside, PromisesNoMoreThanUnitsHave) {
    const Machine machine = machine_by_id("h200-sxm");
    for (const Operation* one : operations())
        for (const Operation* other : operations()) {
            SCOPED_TRACE(std::string(one->name()) + " beside " + std::string(other->name()));
            const Plan first = plan_of_example(*one, machine), second = plan_of_example(*other, machine);
            std::string why;
            const auto s = side_by_side(machine, first, second, why);
            ASSERT_TRUE(s) << why;
            EXPECT_EQ(s->sms[0] + s->sms[1], 132);
            EXPECT_GT(s->sms[0], 0);
            EXPECT_GT(s->sms[1], 0);
            // Nobody ends before the longer one of them alone, and no gain exceeds its ceiling but by a launch.
            const double launch = 2 * std::max(s->parts[0].launch, s->parts[1].launch);
            EXPECT_GE(s->together + launch, std::max(*first.time_us, *second.time_us) * 1e-6);
            EXPECT_LE(s->in_turn / (s->together + launch), s->ceiling * 1.001);
            const auto turned = side_by_side(machine, second, first, why);
            ASSERT_TRUE(turned);
            EXPECT_NEAR(turned->together, s->together, 1e-9 + 0.01 * s->together) << "which one is named first says nothing";
        }
}

// A limit of power that leaves each plan alone as it is: both together want more watts than either.
TEST(Beside, PowerIsShared) {
    Machine machine = machine_by_id("h200-sxm");
    const Plan first = plan_of_example(*operations().front(), machine), second = plan_of_example(*operations().back(), machine);
    std::string why;
    const auto gain = [&](const char* watts) {
        set_number(machine, watts);
        const auto s = side_by_side(machine, first, second, why);
        EXPECT_TRUE(s) << why;
        return *s;
    };
    const SideBySide much = gain("power.sustained=5000 W"), none = gain("power.sustained=unknown"), little = gain("power.sustained=400 W");
    EXPECT_NE(much.bound, "power");
    EXPECT_NEAR(much.together, none.together, 1e-12) << "an unknown limit binds nothing";
    EXPECT_EQ(little.bound, "power");
    EXPECT_LT(little.clock_hz, much.clock_hz);
    EXPECT_GT(little.together, much.together);
}

SideBySide weighed(const Plan& first, const Plan& second) {
    std::string why;
    const auto s = side_by_side(machine_by_id("h200-sxm"), first, second, why);
    EXPECT_TRUE(s) << why;
    return *s;
}

TEST(Beside, IsNotAdvisedForWhatNobodyBuildsOrWhatIsALaunch) {
    const Machine machine = machine_by_id("h200-sxm");
    const Plan plan = plan_of_example(*operations().front(), machine);
    Plan unbuilt = plan;
    unbuilt.buildable = false, unbuilt.why_not = "nobody wrote it";
    EXPECT_EQ(weighed(unbuilt, plan).against, "the first plan cannot be built: nobody wrote it");
    EXPECT_EQ(weighed(plan, unbuilt).against, "the second plan cannot be built: nobody wrote it");
    EXPECT_FALSE(weighed(plan, unbuilt).pays());
    // 1 us of work behind a launch of 1.6 us or so.
    Plan tiny = plan;
    tiny.time_us = weighed(plan, plan).parts[0].launch * 1e6 + 1;
    EXPECT_EQ(weighed(tiny, tiny).against.find("most of the first plan's"), 0u) << weighed(tiny, tiny).against;
    EXPECT_EQ(weighed(plan, tiny).against.find("most of the second plan's"), 0u);
    EXPECT_EQ(weighed(plan, plan).against.find("on fewer SMs each takes longer"), 0u);
}

TEST(Beside, WhatIsUnknownIsSaid) {
    Machine machine = machine_by_id("h200-sxm");
    const Plan plan = plan_of_example(*operations().front(), machine);
    set_number(machine, "sm.count=unknown");
    std::string why;
    EXPECT_FALSE(side_by_side(machine, plan, plan, why));
    EXPECT_FALSE(why.empty());
}

}  // namespace
}  // namespace rooftile
