// Two plans at once: what no split may promise, for the example of every operation beside every other.
#include "rooftile/physics/beside.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
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

/// The clock at which both plans' joules, which grow with it, are what the limit leaves of `cycles` at it: by halves.
double clock_of(const Machine& machine, const SideBySide& s, double cycles) {
    const auto number = [&](const char* key) {
        const Fact* fact = machine.find(key);
        return fact ? fact->value : NAN;
    };
    const double watts = number("power.sustained") - number("power.static"), exponent = number("energy.exponent");
    double top = std::max(s.parts[0].clock_hz, s.parts[1].clock_hz);
    for (const char* key : {"clock.tensor", "clock.boost"})
        if (machine.find(key)) top = std::max(top, number(key));
    if (std::isnan(watts * exponent * s.parts[0].joules * s.parts[1].joules)) return top;
    double low = 1e6, high = top;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        double joules = 0;
        for (const UnitShares& p : s.parts) joules += p.joules * std::pow(middle / p.stated_hz, exponent);
        (joules > watts * cycles / middle ? high : low) = middle;
    }
    return high;
}

// Every split of the SMs tried; machines of which one number is scarce, so that each kind of unit binds now and then.
TEST(Beside, IsTheBestSplitOfAll) {
    Random random(471040);
    std::set<std::string> bounds;
    std::set<const Operation*> of_parts;  // their plans take long
    for (int i = 0; i < 60; ++i) {
        Machine machine = machine_by_id(random.coin() ? "h200-sxm" : "h100-sxm");
        static constexpr const char* scarce[] = {"l2.bandwidth", "dram.sustained_read", "power.sustained", "sm.count", "clock.boost"};
        const std::string key = random.one_of(scarce);
        Fact& fact = machine.facts.find(key)->second;
        fact.value = std::ceil(fact.value * random.log_uniform(0.3, 1));
        const auto shared = std::make_shared<const Machine>(machine);
        std::vector<Plan> plans;
        while (plans.size() < 2) {
            const Operation& op = *random.one_of(operations());
            if (of_parts.contains(&op)) continue;
            const Problem problem = op.draw(random, {});
            const auto found = op.derive(shared, problem, op.request(Given(Given::Named::by_key), {.top = 1, .one_of_many = true})).plans;
            if (found.empty()) continue;
            if (found.front().parts.empty()) plans.push_back(found.front());
            else of_parts.insert(&op);
        }
        std::string why;
        const auto s = side_by_side(machine, plans[0], plans[1], why);
        ASSERT_TRUE(s) << why;
        const UnitShares &a = s->parts[0], &b = s->parts[1];
        SCOPED_TRACE(machine.id + " " + key + ": " + plans[0].operation->short_name(plans[0].problem) + " beside " + plans[1].operation->short_name(plans[1].problem));
        const int sms = int(*machine.count("sm.count"));
        EXPECT_EQ(s->sms[0] + s->sms[1], sms);
        EXPECT_DOUBLE_EQ(s->in_turn, a.seconds + b.seconds);
        const double units[] = {a.of_sms + b.of_sms, a.of_dram + b.of_dram, a.of_l2 + b.of_l2}, launch = std::max(a.launch, b.launch);
        EXPECT_NEAR(s->ceiling, s->in_turn / std::max({units[0], units[1], units[2], a.seconds, b.seconds}), 1e-9 * s->ceiling);
        double best = INFINITY, at_split = INFINITY;
        for (int first = 1; first < sms; ++first) {
            const double cycles = std::max(std::max(a.of_sms, a.dram_by_sms) * a.clock_hz * sms / first, std::max(b.of_sms, b.dram_by_sms) * b.clock_hz * sms / (sms - first));
            const double seconds = std::max({cycles / clock_of(machine, *s, cycles), units[0], units[1], units[2], a.seconds - launch, b.seconds - launch}) + launch;
            best = std::min(best, seconds);
            if (first == s->sms[0]) at_split = seconds;
        }
        EXPECT_NEAR(s->together, best, 1e-6 * best);
        EXPECT_NEAR(at_split, best, 1e-6 * best);
        const double longest = s->together - launch;
        if (s->bound == "dram") { EXPECT_NEAR(longest, units[1], 1e-6 * longest); }
        if (s->bound == "l2") { EXPECT_NEAR(longest, units[2], 1e-6 * longest); }
        if (s->bound == "the longer one") { EXPECT_NEAR(longest, std::max({units[0], a.seconds - launch, b.seconds - launch}), 1e-6 * longest); }
        if (s->bound == "power") { EXPECT_LT(s->clock_hz, clock_of(machine, *s, 1e30)) << "the top"; }
        bounds.insert(s->bound);
        // What is asked of L2 and DRAM at their rates, all of it; a launch is a launch.
        for (std::size_t k = 0; k < 2; ++k) {
            const Demand demand = plans[k].operation->demand(machine, plans[k]);
            EXPECT_DOUBLE_EQ(s->parts[k].seconds, *plans[k].time_us * 1e-6);
            EXPECT_NEAR(s->parts[k].launch, demand.launches * machine.find("launch.gap_stream")->value, 1e-12);
            EXPECT_GE(s->parts[k].of_dram * 1.001, demand.dram_bytes.value_or(0) / machine.find("dram.sustained_read")->value);
        }
    }
    EXPECT_GE(bounds.size(), 4u) << testing::PrintToString(bounds);
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
