// What the planner calls feasible with an epilogue compiles as planned: nothing spills.
//
// ROOFTILE_COMPILE_SAMPLE sets how many (24), ROOFTILE_FUZZ_SEED draws others.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {
namespace {

TEST(GemmEpilogues, OfTheSearchCompileWithoutASpill) {
    const std::size_t count = from_environment("ROOFTILE_COMPILE_SAMPLE", 24);
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 11));
    const Machine machine = machine_by_id("h200-sxm");
    std::vector<GemmPlan> plans;
    while (plans.size() < count) {
        GemmProblem p = drawn_product(random, random.coin() ? Type::bf16 : Type::fp16, 9000);
        p.k = 1 + std::int64_t(random.pick(8000));
        p = [&] {  // dense again, of the other depth
            GemmProblem deep = gemm_problem(p.m, p.n, p.k, p.a_type, p.a_major, p.b_major);
            deep.ldc = p.ldc, deep.c_offset = p.c_offset;
            return deep;
        }();
        if (!give_epilogue(p, drawn_epilogue(random))) continue;
        GemmRequest request;
        request.top = 4, request.buildable_only = true;
        request.kernel = find_gemm_kernel("sm90_gemm");
        const auto derived = derive(machine, p, request);
        const auto* found = std::get_if<Plans>(&derived);
        ASSERT_TRUE(found) << p.epilogue.text();
        // The best, and one of those that are hardly slower.
        plans.push_back(found->plans.front());
        if (plans.size() < count) plans.push_back(found->plans[random.pick(found->plans.size())]);
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* error = std::get_if<Error>(&kernels[i]);
        if (!error) continue;
        const GemmProblem& p = plans[i].problem;
        const GemmConfig& c = plans[i].config;
        ADD_FAILURE() << fmt::format("{} {}x{}x{} {} tile {}x{} {}{} split {}: {}\n  {}", i, p.m, p.n, p.k, name_of(p.a_type), c.tile_m,
                                     c.tile_n, c.schedule == Schedule::pingpong ? "pingpong" : "cooperative",
                                     c.swap_ab ? " swapped" : "", c.split_k, p.epilogue.text(), error->what());
    }
    fmt::print("{} products with epilogues\n", count);
}

}  // namespace
}  // namespace rooftile
