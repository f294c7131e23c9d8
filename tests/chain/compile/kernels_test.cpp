// The chain's kernels without a GPU: at the walls that the planner keeps to, ptxas neither spills nor serialises products.
#include <gtest/gtest.h>

#include "rooftile/chain/derive.hpp"
#include "rooftile/chain/device/kernel.hpp"
#include "rooftile/chain/device/reference.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/cache.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

PlanSet plans_of(const ChainProblem& problem, const ChainRequest& request) {
    return derive_chain(std::make_shared<const Machine>(machine_by_id("h200-sxm")), {&chain_operation(), Own::of(problem)}, request);
}

// The widest tiles that fit, of narrow and wide rows.
TEST(ChainKernels, TilesThatFitNeitherSpillNorSerialise) {
    int built = 0;
    for (const std::int64_t d : {64, 128, 256})
        for (const int tile_m : {128, 192})
            for (const int tile_ff : {64, 128})
                for (const ChainAct act : {ChainAct::gelu, ChainAct::swiglu}) {
                    if (act == ChainAct::swiglu && tile_m == 192 && tile_ff == 64) continue;  // far from the wall
                    const ChainProblem p{.m = 4096, .d = d, .ff = 4 * d, .act = act, .residual = true};
                    const PlanSet set = plans_of(p, {.form = ChainForm::on_chip, .tile_m = tile_m, .tile_ff = tile_ff});
                    if (set.plans.empty()) continue;
                    SCOPED_TRACE(testing::Message() << tile_m << "x" << tile_ff << " d " << d << " " << name_of(act));
                    EXPECT_NO_THROW(compiled_chain(set.plans.front()));
                    ++built;
                }
    EXPECT_GE(built, 8);
}

// Any sizes, every form: 4 of a seed, more by ROOFTILE_TEST_COUNT.
TEST(ChainKernels, RandomPlansCompile) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 12));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 4); ++i) {
        ChainProblem p;
        p.m = random.whole(1, 5000), p.d = 8 * random.whole(1, 60), p.ff = 8 * random.whole(1, 200);
        p.act = ChainAct(random.pick(4)), p.residual = random.coin();
        p.type = random.coin() ? Type::bf16 : Type::fp16;
        for (const Plan& plan : plans_of(p, {.buildable_only = true}).plans) {
            SCOPED_TRACE(chain_operation().short_name(plan.problem) + " " + chain_operation().label(plan));
            EXPECT_NO_THROW(compiled_chain(plan));
            EXPECT_FALSE(chain_code_key(plan).empty());
        }
    }
}

// A second product that runs backwards has the code of the one that does not: its tiles come from a table.
TEST(ChainKernels, BackwardsIsTheSameCode) {
    const ChainProblem p{.m = 8192, .d = 512, .ff = 2048};
    const PlanSet two = plans_of(p, {.form = ChainForm::two_kernels}), back = plans_of(p, {.form = ChainForm::carry_over});
    ASSERT_FALSE(two.plans.empty() || back.plans.empty());
    EXPECT_EQ(chain_code_key(two.plans.front()), chain_code_key(back.plans.front()));
    EXPECT_TRUE(find_as<bool>(back.plans.front().parts[1].operation->config_record(back.plans.front().parts[1]), "reverse").value_or(false));
}

TEST(ChainKernels, TheReferenceCompiles) { EXPECT_NO_THROW(compile_cached(chain_reference_source("sm_90"))); }

}  // namespace
}  // namespace rooftile
