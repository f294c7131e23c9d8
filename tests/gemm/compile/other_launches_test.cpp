// A plan of few rows is launched in another way too, by the same code.
#include <gtest/gtest.h>

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

Plan first_plan(std::int64_t m, std::int64_t n, std::int64_t k, const char* kernel = "sm90_gemm") {
    GemmRequest request;
    request.kernel = find_gemm_kernel(kernel);
    request.buildable_only = true;
    return any_plan(std::get<Plans>(derive(machine_by_id("h200-sxm"), gemm_problem(m, n, k), request)).plans.front());
}

std::vector<OtherLaunch> others(const Plan& plan) {
    static const Machine machine = machine_by_id("h200-sxm");
    return on_device(*plan.operation).other_launches(plan, &machine);
}

TEST(OtherLaunches, APlainOneOfFewRowsIsOfTheSameCode) {
    const Plan plan = first_plan(64, 4096, 4096);
    const CompiledKernel kernel = compile(plan);
    const std::vector<OtherLaunch> found = others(plan);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, "pdl_off");
    EXPECT_EQ(found[0].kernel.code().hash, kernel.code().hash);
    EXPECT_TRUE(found[0].kernel.code().from_cache);
    const Plan& off = found[0].kernel.plan();
    EXPECT_FALSE(off.own.as<GemmPlan>().config.programmatic_launch);
    EXPECT_GT(off.time_us, plan.time_us);
    EXPECT_EQ(off.rank, plan.rank);
}

TEST(OtherLaunches, ManyRowsOfLongWorkHaveNone) {
    EXPECT_TRUE(others(first_plan(4096, 4096, 4096)).empty());
    EXPECT_EQ(others(first_plan(128, 256, 512)).size(), 1u);  // under 5 us
}

TEST(OtherLaunches, AKernelWithoutSuchLaunchesHasNone) {
    EXPECT_TRUE(others(first_plan(64, 4096, 4096, "sm80_gemm")).empty());
}

}  // namespace
}  // namespace rooftile
