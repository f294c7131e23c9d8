#include "rooftile/physics/what_if.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/variants.hpp"

namespace rooftile {
namespace {

/// Nothing left to search, by the closed form.
GemmRequest closed_form_of(const GemmConfig& config) {
    GemmRequest request = fixed_to(config);
    request.simulate = false;
    return request;
}

/// The planner's own times of the same configurations on another machine.
std::vector<double> times_on(const Machine& machine, const Plans& plans) {
    std::vector<double> times;
    for (const GemmPlan& plan : plans.plans) {
        const auto outcome = derive(machine, plans.problem, closed_form_of(plan.config));
        const auto* found = std::get_if<Plans>(&outcome);
        times.push_back(found ? found->plans.front().prediction.time_us.value_or(INFINITY) : INFINITY);
    }
    return times;
}

bool fastest(const std::vector<double>& times, std::size_t plan) {
    for (double other : times)
        if (other < times[plan] * (1 - win_margin)) return false;
    return times[plan] < times[0] * (1 - win_margin);
}

// The planner itself says so on either side of each threshold. By the closed form of DRAM's bytes: a simulation
// is of one machine, and another number of SMs would tile schedule C otherwise.
TEST(Counterfactuals, ThePlannerAgreesOnBothSidesOfEachThreshold) {
    const Machine machine = machine_by_id("h200-sxm");
    GemmRequest closed_form;
    closed_form.simulate = false;
    closed_form.grid_split_k = 1;  // how many pieces there are follows from the number of SMs
    int checked = 0;
    for (const GemmProblem& problem :
         {gemm_problem(4096, 14336, 4096), gemm_problem(64, 4096, 4096), gemm_problem(512, 512, 16384)}) {
        const auto outcome = derive(machine, problem, closed_form);
        const Plans& plans = std::get<Plans>(outcome);
        const auto found = counterfactuals(machine, gemm_plan_set(plans).plans);
        ASSERT_EQ(found.size(), plans.plans.size());
        EXPECT_FALSE(found.front());
        for (std::size_t plan = 1; plan < found.size(); ++plan)
            for (const Counterfactual& c : found[plan].value_or(std::vector<Counterfactual>())) {
                SCOPED_TRACE(testing::Message() << problem.m << " plan " << plan + 1 << ", " << c.key << " "
                                                << c.value << " -> " << c.threshold);
                const double factor = c.threshold / c.value;
                EXPECT_GE(factor, min_change * (1 - 1e-9));
                EXPECT_LE(factor, max_change * (1 + 1e-9));
                const bool whole = c.unit == "SMs" || c.unit == "partitions";
                const double beyond = c.threshold < c.value ? -1 : 1;
                Machine other = machine;
                double& number = other.facts.at(c.key).value;
                const double threshold = number * factor;
                number = whole ? std::round(threshold) : threshold * (1 + 1e-6 * beyond);
                EXPECT_TRUE(fastest(times_on(other, plans), plan));
                number = whole ? std::round(threshold) - beyond : threshold * (1 - 1e-4 * beyond);
                EXPECT_FALSE(fastest(times_on(other, plans), plan));
                ++checked;
            }
    }
    EXPECT_GT(checked, 10);
}

TEST(Counterfactuals, TheLeastChangeComesFirst) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto outcome = derive(machine, gemm_problem(64, 4096, 4096));
    for (const auto& found : counterfactuals(machine, gemm_plan_set(outcome).plans)) {
        const auto list = found.value_or(std::vector<Counterfactual>());
        for (std::size_t i = 1; i < list.size(); ++i)
            EXPECT_LE(std::abs(std::log(list[i - 1].threshold / list[i - 1].value)),
                      std::abs(std::log(list[i].threshold / list[i].value)) + 1e-12);
    }
}

// A plan that differs from the first in nothing the model knows wins by nothing.
TEST(Counterfactuals, ATwinNeverWins) {
    const Machine machine = machine_by_id("h200-sxm");
    const PlanSet set = gemm_plan_set(derive(machine, gemm_problem(4096, 14336, 4096)));
    const std::vector<Plan> plans{set.plans[0], set.plans[0]};
    EXPECT_TRUE(counterfactuals(machine, plans)[1].value().empty());
}

// A quarter of such a limit is less than what the GPU takes at rest: no machine is like that.
TEST(Counterfactuals, PassByNumbersThatCannotBe) {
    Machine machine = machine_by_id("h200-sxm");
    set_number(machine, "power.sustained=300 W");
    const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096));
    EXPECT_EQ(counterfactuals(machine, gemm_plan_set(outcome).plans).size(), std::size_t(GemmRequest{}.top));
}

TEST(Counterfactuals, WithoutTimesThereAreNone) {
    Machine machine = machine_by_id("h200-sxm");
    machine.facts.erase("sm.count");
    const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096));
    for (const auto& list : counterfactuals(machine, gemm_plan_set(outcome).plans))
        EXPECT_TRUE(!list || list->empty());
}

}  // namespace
}  // namespace rooftile
