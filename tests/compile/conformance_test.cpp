// What every operation promises of its compiled plans; no GPU is needed.
#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

class CompileConformance : public testing::TestWithParam<const Operation*> {};

INSTANTIATE_TEST_SUITE_P(Operations, CompileConformance,
                         testing::ValuesIn(operations().begin(), operations().end()), name_of_operation);

TEST_P(CompileConformance, APlanThatSaysSoIsBuiltWithoutSpills) {
    const Operation& operation = *GetParam();
    int built = 0;
    for (const char* id : {"h200-sxm", "a100-80-sxm"}) {
        SCOPED_TRACE(id);
        const PlanSet plans =
            operation.derive(std::make_shared<const Machine>(machine_by_id(id)), operation.problem(example_of(operation)),
                             operation.request(Given(), {.top = 2}));
        for (const Plan& plan : plans.plans) {
            if (!plan.buildable) {
                EXPECT_THROW(compile(plan), RequestError);
                continue;
            }
            const CompiledKernel kernel = compile(plan);
            const KernelCode& code = kernel.code();
            EXPECT_EQ(code.entry.spill_store_bytes, 0);
            EXPECT_EQ(code.entry.spill_load_bytes, 0);
            EXPECT_GT(code.entry.registers, 0);
            EXPECT_FALSE(code.cubin.empty());
            EXPECT_FALSE(code.hash.empty());
            EXPECT_NE(code.cubin.find(code.lowered_name), std::string::npos);
            EXPECT_EQ(&*kernel.plan().operation, &operation);
            ++built;
        }
    }
    EXPECT_GT(built, 0) << "nothing can be built of " << operation.name();
}

TEST(CompileAll, OutcomesComeInTheOrderOfThePlans) {
    const Operation& operation = *operations().front();
    PlanSet set = operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")),
                                   operation.problem(example_of(operation)), operation.request(Given(), {.top = 2}));
    ASSERT_GE(set.plans.size(), 1u);
    const auto outcomes = compile_all(set.plans);
    ASSERT_EQ(outcomes.size(), set.plans.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        EXPECT_EQ(std::get<CompiledKernel>(outcomes[i]).plan().rank, set.plans[i].rank);
}

}  // namespace
}  // namespace rooftile
