// The toy matrix operation's kernel without a GPU: every tile of its knobs compiles, with nothing spilled and no product serialised.
#include "tests/toy/gather.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

TEST(ToyGather, EveryPlanIsBuiltWithoutSpills) {
    const Operation& toy = toy_gather();
    const PlanSet set = toy.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), toy.problem(example_of(toy)),
                                   toy.request(given_of(toy, "--stages 3"), {.top = 64}));
    ASSERT_EQ(set.plans.size(), 6u);
    for (const Plan& plan : set.plans) {
        SCOPED_TRACE(toy.label(plan));
        const KernelCode code = compile_gather(plan).code();
        EXPECT_EQ(code.entry.spill_store_bytes + code.entry.spill_load_bytes + code.entry.stack_bytes, 0);
        EXPECT_EQ(code.entry.static_shared_bytes, 0) << "the planner counts all of it";
        EXPECT_GT(code.entry.registers, 0);
    }
}

}  // namespace
}  // namespace rooftile
