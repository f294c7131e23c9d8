// What the planner calls feasible of any request compiles as planned: nothing spills.
//
// ROOFTILE_TEST_COUNT sets how many, ROOFTILE_FUZZ_SEED draws others.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_request.hpp"

namespace rooftile {
namespace {

void expect_clean(const std::vector<GemmPlan>& plans, const std::vector<std::string>& texts) {
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const auto* error = std::get_if<Error>(&kernels[i]);
        const GemmConfig& c = plans[i].config;
        if (error)
            ADD_FAILURE() << fmt::format("{} tile {}x{} {}{} split {}x{}: {}", texts[i], c.tile_m, c.tile_n, name_of(c.schedule),
                                         c.swap_ab ? " swapped" : "", c.split_k, c.grid_split_k, error->what());
    }
}

TEST(GemmRequests, OfTheSearchCompileWithoutASpill) {
    const std::size_t count = test_count(8, 24);
    Random random(from_environment("ROOFTILE_FUZZ_SEED", test_seed()));
    const Machine machine = machine_by_id("h200-sxm");
    std::vector<GemmPlan> plans;
    std::vector<std::string> texts;
    while (plans.size() < count) {
        const Given given = drawn_request(random, 9000);
        try {
            GemmRequest request;
            request.top = 4, request.buildable_only = true;
            const auto derived = derive(machine, gemm_problem(given), request);
            const auto* found = std::get_if<Plans>(&derived);
            if (!found) continue;
            plans.push_back(found->plans[random.pick(found->plans.size())]);
            texts.push_back(shown(given));
        } catch (const RequestError&) {}
    }
    expect_clean(plans, texts);
}

}  // namespace
}  // namespace rooftile
