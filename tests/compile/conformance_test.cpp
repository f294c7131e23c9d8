// What every operation promises of its compiled plans; no GPU is needed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/names/kernel_name.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

/// What a profiler prints of our own kernels is read as any other's: where the name has a field that the plan has, both are the same.
void expect_name_says(const std::string& lowered, const Record& config) {
    const KernelName name = decode(lowered);
    EXPECT_EQ(name.family, "rooftile") << lowered;
    EXPECT_FALSE(name.role.empty()) << name.name;
    const std::pair<const char*, std::optional<int>> extents[] = {{"tile_m", name.tile_m},       {"tile_n", name.tile_n},
                                                                  {"tile_q", name.tile_m},       {"tile_kv", name.tile_n},
                                                                  {"tile_k", name.tile_k},       {"stages", name.stages},
                                                                  {"cluster_m", name.cluster_m}, {"cluster_n", name.cluster_n},
                                                                  {"consumer_warpgroups", name.consumer_warpgroups}};
    for (const auto& [key, said] : extents)
        if (const auto planned = find_as<std::int64_t>(config, key); planned && said) {
            EXPECT_EQ(*said, *planned) << key << " of " << name.name;
        }
    // The tile at least is in every name whose kernel has one.
    if (find(config, "tile_m") && name.role == "gemm") {
        EXPECT_TRUE(name.tile_m && name.stages) << name.name;
    }
    if (const auto schedule = find_as<std::string>(config, "schedule"); schedule && !name.schedule.empty()) {
        EXPECT_EQ(name.schedule, *schedule) << name.name;
    }
}

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
            expect_name_says(code.lowered_name, operation.config_record(plan));
            ++built;
        }
    }
    EXPECT_GT(built, 0) << "nothing can be built of " << operation.name();
}

// A plan that the compiler refuses gives way to the next one, and is named; where all are refused, the first one's reason stays.
TEST(CompileFirst, TakesTheNextPlanWhereTheCompilerRefusesOne) {
    const Operation& operation = *operations().front();
    const PlanSet set = operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), operation.problem(example_of(operation)),
                                         operation.request(Given(), {.top = 3}));
    ASSERT_GE(set.plans.size(), 2u);
    const auto refusing = [](int ranks) {
        return [ranks](const Plan& plan) {
            if (plan.rank <= ranks) throw SpillError(ExitCode::compile_failed, fmt::format("plan {} spills", plan.rank), "log");
            return compile(plan);
        };
    };
    std::vector<std::string> notes;
    EXPECT_EQ(compile_first(set, notes, refusing(0)).plan().rank, 1);
    EXPECT_TRUE(notes.empty());
    EXPECT_EQ(compile_first(set, notes, refusing(1)).plan().rank, 2);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("plan 1 spills; the next plan is taken"), std::string::npos) << notes[0];
    try {
        compile_first(set, notes, refusing(99));
        FAIL() << "nothing is left";
    } catch (const Error& error) { EXPECT_STREQ(error.what(), "plan 1 spills"); }
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
