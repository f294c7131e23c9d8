#include "rooftile/gemm/apart.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/core/arena.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

PlanSet planned_on(Machine machine, const std::string& words) {
    const Given given = given_of(gemm_operation(), words);
    return gemm_operation().derive(std::make_shared<const Machine>(std::move(machine)), gemm_operation().problem(given),
                                   gemm_operation().request(given, {.top = 4}));
}
PlanSet planned_as(const std::string& words, const char* machine = "h200-sxm") { return planned_on(machine_by_id(machine), words); }
const Step* step_where(const Plan& plan, std::string_view quantity) {
    for (const Step& step : plan.derivation)
        if (step.quantity == quantity) return &step;
    return nullptr;
}

TEST(GemmApart, FusedIsWeighedAgainstTwoKernelsAndFaster) {
    const PlanSet set = planned_as("--shape 4096x4096x4096 --epilogue d=gelu(acc+bias) --tensor bias:bf16[N]");
    ASSERT_FALSE(set.plans.empty());
    for (const Plan& plan : set.plans) {
        EXPECT_TRUE(plan.parts.empty());
        const Step* step = step_where(plan, "epilogue_apart");
        ASSERT_TRUE(step);
        EXPECT_EQ(step->value, 0);
        // Sums of 4 B are written and read: 2 * 4 * 4096^2.
        EXPECT_EQ(step->inputs.front().value, 2.0 * 4 * 4096 * 4096);
    }
}

// The workspace: the product's results up to the next multiple of 256 B, then what the product takes for itself. Documents say as much
// as the kernels take.
TEST(GemmApart, TheWorkspaceHasWhatLiesBetweenAndThePartsOwn) {
    Random random(471050);
    int with_own = 0;
    for (int i = 0; i < 30; ++i) {
        const std::int64_t m = random.whole(1, 300), n = 8 * random.whole(1, 60), k = 64 * random.whole(1, 100);
        const PlanSet set = planned_as(fmt::format("--shape {}x{}x{} --epilogue d=gelu(acc+bias) --tensor bias:bf16[N] --epilogue-apart on", m, n, k));
        ASSERT_FALSE(set.plans.empty());
        for (const Plan& plan : set.plans) {
            const std::int64_t sums = 4 * m * n, own = plan.parts[0].own.as<GemmPlan>().resources.workspace_bytes;
            const Arena arena = arena_of(plan);
            EXPECT_EQ(arena.between.size(), 1u);
            EXPECT_EQ(arena.between.begin()->second, 0);
            EXPECT_EQ(arena.parts[0] % 256, 0);
            EXPECT_GE(arena.parts[0], sums);
            EXPECT_LT(arena.parts[0], sums + 256);
            EXPECT_GE(arena.parts[1], arena.parts[0] + own);
            EXPECT_LT(arena.parts[1], arena.parts[0] + own + 256);
            EXPECT_EQ(plan.own.as<GemmPlan>().resources.workspace_bytes, arena.bytes);
            with_own += own > 0;
        }
    }
    EXPECT_GE(with_own, 1);
}

TEST(GemmApart, IsTwoPlansInOneWhereItIsAskedFor) {
    const PlanSet set = planned_as("--shape 4096x4096x4096 --epilogue d=gelu(acc+bias) --tensor bias:bf16[N] --epilogue-apart on");
    ASSERT_EQ(set.plans.size(), 1u);
    const Plan& plan = set.plans.front();
    ASSERT_EQ(plan.parts.size(), 2u);
    EXPECT_EQ(plan.parts[0].operation->name(), "gemm");
    EXPECT_EQ(plan.parts[1].operation->name(), "fuse");
    EXPECT_NEAR(*plan.time_us, *plan.parts[0].time_us + *plan.parts[1].time_us, 1e-9);
    EXPECT_EQ(plan.launches.size(), 2u);
    EXPECT_GE(plan.launches.front().workspace_bytes, std::int64_t{4} * 4096 * 4096);
    EXPECT_EQ(step_where(plan, "epilogue_apart")->value, 1);
    EXPECT_EQ(plan.problem.own.as<GemmProblem>().c_type, Type::bf16);
    // The configuration says it again, and a request made of it comes to the same.
    const Given again = gemm_operation().given_of_config(gemm_operation().config_record(plan));
    EXPECT_EQ(again.text("epilogue_apart"), "on");
}

// 85 * 776 sums of 4 B are no multiple of the 256 B at which the workspace goes on; what moves is the sums alone:
// 2 * (85 * 1288 + 776 * 1288 + 85 * 776 + 776) + 2 * 4 * 85 * 776.
TEST(GemmApart, MovesItsSumsAndNotWhatLiesBehindThem) {
    const PlanSet set = planned_as("--shape 85x776x1288 --epilogue d=gelu(acc+bias) --tensor bias:bf16[N] --epilogue-apart on");
    ASSERT_EQ(set.plans.size(), 1u);
    const Prediction& p = set.plans.front().own.as<GemmPlan>().prediction;
    EXPECT_EQ(p.moved_bytes, 2'879'088);
    EXPECT_EQ(p.dram_bytes, 2'879'088);
}

TEST(GemmApart, IsTheOnlyOneWhereTheKernelTakesNoPairs) {
    // 1032 columns are 64 steps of sixteen and a half.
    for (const char* words : {"--shape 512x1032x512 --epilogue d=silu(gate)*up --pairs split", "--shape 512x1024x512 --b-major n --epilogue d=silu(gate)*up --pairs split",
                              "--shape 512x1032x512 --epilogue d=silu(gate)*up --pairs interleaved"}) {
        const PlanSet set = planned_as(words);
        ASSERT_EQ(set.plans.size(), 1u) << words;
        EXPECT_EQ(set.plans.front().parts.size(), 2u) << words;
        EXPECT_FALSE(set.refusal) << words;
        // Gates and ups are a batch of two products of the same A.
        const auto& product = set.plans.front().parts[0].problem.own.as<GemmProblem>();
        EXPECT_EQ(product.batch, 2) << words;
        EXPECT_EQ(product.a_stride, 0) << words;
    }
    const PlanSet none = planned_as("--shape 512x1024x512 --b-major n --epilogue d=silu(gate)*up --pairs interleaved");
    ASSERT_TRUE(none.plans.empty());
    EXPECT_NE(none.refusal->message.find("give B k-major"), std::string::npos) << none.refusal->message;
}

// Of a batch that is one product, that product's: the plan keeps the batch, and takes the time that the one takes.
TEST(GemmApart, IsOfTheOneProductThatABatchIs) {
    const std::string words = "--b-major n --epilogue d=silu(gate)*up --pairs split";
    const PlanSet batch = planned_as("--batch 8 --shape 64x1024x512 --stride-b 0 " + words), one = planned_as("--shape 512x1024x512 " + words);
    ASSERT_EQ(batch.plans.size(), 1u) << (batch.refusal ? batch.refusal->message : "");
    const Plan& plan = batch.plans.front();
    ASSERT_EQ(plan.parts.size(), 2u);
    EXPECT_EQ(plan.problem.own.as<GemmProblem>().batch, 8);
    EXPECT_EQ(plan.parts[0].problem.own.as<GemmProblem>().m, 512);
    EXPECT_EQ(plan.time_us, one.plans.front().time_us);
    EXPECT_EQ(plan.launches.front().workspace_bytes, one.plans.front().launches.front().workspace_bytes);
}

// No advice on types: bf16 is what was asked for, and sums are fp32 because the second launch reads them.
TEST(GemmApart, IsSm90GemmsAndSaysWhatElseThereIs) {
    for (const char* machine : {"a100-80-sxm", "rtx4090", "b200"}) {
        const PlanSet set = planned_as("--shape 512x1024x512 --epilogue d=gelu(acc) --epilogue-apart on", machine);
        ASSERT_TRUE(set.refusal) << machine;
        EXPECT_EQ(set.refusal->message, "epilogue_apart: a product alone stores its sums in fp32, which only sm90_gemm does so far; leave it off, sm80_gemm has the "
                                        "epilogue in the product's kernel");
        const PlanSet pairs = planned_as("--shape 512x1024x512 --epilogue d=silu(gate)*up --pairs split --epilogue-apart on", machine);
        ASSERT_TRUE(pairs.refusal) << machine;
        EXPECT_NE(pairs.refusal->message.find("; in one kernel: pairs split"), std::string::npos) << pairs.refusal->message;
        EXPECT_FALSE(planned_as("--shape 512x1024x512 --epilogue d=gelu(acc)", machine).plans.empty()) << machine;
    }
}

// Where no kernel takes pairs, what is advised can be planned.
TEST(GemmApart, WhatIsAdvisedInThePlaceOfPairsWorks) {
    const auto why = [](const std::string& words) { return planned_as("--shape 512x1024x512 --epilogue d=silu(gate)*up " + words, "rtx4090").refusal->message; };
    EXPECT_EQ(why("--pairs interleaved"), "pairs interleaved: sm90_gemm's so far; here plan gates and ups as two products of 512 columns with ldb = 1024, and the "
                                          "expression by fuse behind them");
    EXPECT_EQ(why("--pairs split"), "pairs split: sm90_gemm's so far; here plan gates and ups as two products of 512 columns, and the expression by fuse behind them");
    EXPECT_NE(why("--pairs interleaved --b-major n").find("of a B that is k-major"), std::string::npos);
    EXPECT_FALSE(planned_as("--shape 512x512x512 --ldb 1024", "rtx4090").plans.empty());
    EXPECT_FALSE(planned_as("--shape 512x512x512 --ldb 1024 --b-major n", "rtx4090").plans.empty());  // split, along N
}

TEST(GemmApart, LaysGatesAndUpsAsTheyAre) {
    GemmProblem p = gemm_problem(64, 96, 128);
    p.ldc = 48;
    for (const Pairs pairs : {Pairs::interleaved, Pairs::split}) {
        p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = silu(gate) * up", {}, Scales::none, 1, 0, pairs);
        const ProductAlone alone = product_alone(p);
        ASSERT_TRUE(alone.why_not.empty()) << alone.why_not;
        EXPECT_NO_THROW(check(alone.problem));
        EXPECT_EQ(alone.problem.n, 48);
        EXPECT_EQ(alone.problem.ldb, pairs == Pairs::interleaved ? 256 : 128);
        EXPECT_EQ(alone.problem.b_stride, pairs == Pairs::interleaved ? 128 : 48 * 128);
        EXPECT_EQ(alone.between_bytes(), 2.0 * 4 * 64 * 96);
    }
    p.ldc = 56;
    EXPECT_NE(product_alone(p).why_not.find("rows of the result are not contiguous"), std::string::npos);
}

// An expression whose issue slots nobody knows is not free.
TEST(GemmApart, WeighsNothingAgainstWhatIsUnknown) {
    Machine machine = machine_by_id("h200-sxm");
    set_number(machine, "sm.partitions=unknown");
    const std::string words = "--shape 4096x4096x4096 --epilogue d=gelu(acc+bias) --tensor bias:bf16[N]";
    const PlanSet fused = planned_on(machine, words);
    ASSERT_FALSE(fused.plans.empty());
    EXPECT_TRUE(fused.plans.front().parts.empty());
    for (const Input& input : step_where(fused.plans.front(), "epilogue_apart")->inputs)
        if (input.name == "expression in the product") { EXPECT_FALSE(input.value); }
    const PlanSet asked = planned_on(machine, words + " --epilogue-apart on");
    ASSERT_EQ(asked.plans.size(), 1u);
    const auto& unknown = asked.plans.front().unknown;
    EXPECT_NE(std::find(unknown.begin(), unknown.end(), "sm.partitions"), unknown.end());
}

}  // namespace
}  // namespace rooftile
