// sm80_few_gemm in the planner: where it joins, what its tiles take, how K is cut, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/rules.hpp"
#include "rooftile/gemm/sm80_few_space.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

Plans plans_for(const char* machine, const GemmProblem& problem, const GemmRequest& request = {}) {
    auto outcome = derive(machine_by_id(machine), problem, request);
    if (const auto* none = std::get_if<Infeasible>(&outcome)) ADD_FAILURE() << none->message;
    return std::get<Plans>(std::move(outcome));
}

GemmRequest by_few() {
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm80_few_gemm");
    return request;
}

std::string refusal_of(const GemmProblem& problem, const GemmRequest& request, const char* machine = "h200-sxm") {
    const auto outcome = derive(machine_by_id(machine), problem, request);
    const auto* none = std::get_if<Infeasible>(&outcome);
    return none ? none->message : "";
}

std::int64_t left_out(const Plans& plans) {
    for (const LeftOutByRule& left : plans.rejected.by_rule)
        if (left.rule == &gemm_rules::pieces_of_idle_sms) return left.count;
    return 0;
}

// K = 4230 makes rows of 8460 B, which TMA does not take: sm90_gemm would copy 107 MB of B first. Read as it lies, B comes once: of DRAM
// 9 * 4230 * 2 + 12676 * 4230 * 2 B in and 9 * 12676 * 2 B out. With K in one piece a CTA has 17 blocks of 128 x 256: 65536 B at 23.5 a clock,
// 9 words of A at 150 clk and 80 clk beside, 39.19 us at 1.83 GHz; with 2.95 us of start, 1.41 of launch and what the ring's first stage takes
// 44.62.
TEST(Sm80Few, JoinsWhereRowsBeginOffSixteenBytes) {
    GemmRequest whole;
    whole.grid_split_k = 1;
    const Plans plans = plans_for("h200-sxm", gemm_problem(9, 12676, 4230), whole);
    const GemmPlan& first = plans.plans.front();
    EXPECT_EQ(first.config.kernel->name(), "sm80_few_gemm");
    EXPECT_TRUE(first.buildable);
    EXPECT_FALSE(first.config.pack_a || first.config.pack_b);
    EXPECT_EQ(first.resources.workspace_bytes, 0);
    EXPECT_EQ(first.prediction.dram_bytes, 9 * 4230 * 2 + 12676 * 4230 * 2 + 9 * 12676 * 2);
    EXPECT_EQ(first.prediction.dram_bytes, first.prediction.moved_bytes);
    EXPECT_NEAR(*first.prediction.time_us, 44.62, 0.02);
}

// From compute capability 9.0 on it is launched as the other kernel is; there a plain launch takes 0.85 us longer.
TEST(Sm80Few, IsAProgrammaticDependentWhereThereAreSome) {
    const GemmProblem problem = gemm_problem(9, 12676, 4230);
    GemmRequest request = by_few();
    const GemmPlan on = plans_for("h200-sxm", problem, request).plans.front();
    EXPECT_TRUE(on.config.programmatic_launch);
    request.programmatic_launch = false;
    const GemmPlan off = plans_for("h200-sxm", problem, request).plans.front();
    EXPECT_FALSE(off.config.programmatic_launch);
    EXPECT_NEAR(*off.prediction.time_us - *on.prediction.time_us, 0.85, 0.01);
    EXPECT_FALSE(plans_for("a100-80-sxm", problem, by_few()).plans.front().config.programmatic_launch);
    request.programmatic_launch = true;
    EXPECT_THAT(refusal_of(problem, request, "a100-80-sxm"),
                HasSubstr("programmatic_launch = true: no kernel of a100-80-sxm begins before"));
    request = by_few();
    request.early_weights = true;
    const GemmPlan early = plans_for("h200-sxm", problem, request).plans.front();
    EXPECT_TRUE(early.config.early_weights && sm80_few_config(early.problem, early.config).early_weights);
    EXPECT_LT(*early.prediction.time_us, *on.prediction.time_us);
}

TEST(Sm80Few, LeavesRowsOnSixteenBytesToOthers) {
    for (const GemmPlan& plan : plans_for("h200-sxm", gemm_problem(9, 12676, 4232)).plans)
        EXPECT_EQ(plan.config.kernel->name(), "sm90_gemm");
    GemmProblem off = gemm_problem(9, 12676, 4232);
    off.b_offset = 1;
    EXPECT_EQ(plans_for("h200-sxm", off).plans.front().config.kernel->name(), "sm80_few_gemm");
    off.b_offset = 0, off.ldb = 4233;
    EXPECT_EQ(plans_for("h200-sxm", off).plans.front().config.kernel->name(), "sm80_few_gemm");
    EXPECT_TRUE(rows_on_chunks(gemm_problem(9, 12676, 4232)));
    // Who asks for a kernel gets that one.
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm90_gemm");
    for (const GemmPlan& plan : plans_for("h200-sxm", off, request).plans) EXPECT_EQ(plan.config.kernel->name(), "sm90_gemm");
    // More rows than it holds.
    EXPECT_EQ(plans_for("h200-sxm", gemm_problem(65, 12676, 4230)).plans.front().config.kernel->name(), "sm90_gemm");
}

// The times of sm80_gemm leave out what its narrow copies cost: beside those a prediction of the whole cost would lose.
TEST(Sm80Few, GoesBeforeTimesThatLeaveItsAdvantageOut) {
    for (const GemmPlan& plan : plans_for("a100-80-sxm", gemm_problem(9, 12676, 4230)).plans)
        EXPECT_EQ(plan.config.kernel->name(), "sm80_few_gemm");
    for (const GemmPlan& plan : plans_for("a100-80-sxm", gemm_problem(9, 12676, 4232)).plans)
        EXPECT_EQ(plan.config.kernel->name(), "sm80_gemm");
}

// (16 + 128) * 64 * 2 = 18432 B of elements in a stage. A row of A takes (64 / 8 + 1) * 16 = 144 B in place of 128: 16 * 16 = 256 more.
// 232448 / 18688 = 12.4 stages.
TEST(Sm80Few, CountsItsStages) {
    GemmRequest request = by_few();
    request.tile_n = 128, request.tile_k = 64, request.ctas_per_sm = 1;
    const GemmPlan plan = plans_for("h200-sxm", gemm_problem(9, 12676, 4230), request).plans.front();
    EXPECT_EQ(plan.config.tile_m, 16);
    EXPECT_EQ(plan.resources.stage_bytes, 18432);
    EXPECT_EQ(plan.resources.stages_max, 12);
    EXPECT_EQ(plan.resources.shared_bytes, 12 * 18688);
    EXPECT_EQ(plan.resources.threads, 256);
    EXPECT_EQ(plan.resources.accumulator_registers, 2 * 4);  // 2 m16n8 a warp
    const Sm80FewConfig config = sm80_few_config(plan.problem, plan.config);
    EXPECT_EQ(config.shared_bytes(), plan.resources.shared_bytes);
    EXPECT_FALSE(config.odd_rows);  // 4230 is even
    EXPECT_FALSE(config.in_pieces);
    GemmProblem odd = plan.problem;
    odd.a_offset = 3;  // A is turned
    EXPECT_FALSE(sm80_few_config(odd, plan.config).odd_rows);
    odd.b_offset = 3;
    EXPECT_TRUE(sm80_few_config(odd, plan.config).odd_rows);
}

// A comes by registers, whatever its major: it need not begin at words, and takes room there. A row of a block has (64 + 8) / 2 = 36 words of two
// elements; of an m-major one 256 threads bring 16 of each of 16 rows at once, so that a thread has 3. Along K a warp has 2 of 16 rows, 32 words
// of a block each, and 4 of the chunk before of both: 3 a lane.
TEST(Sm80Few, TakesAnMMajorA) {
    GemmProblem problem = gemm_problem(9, 12676, 4230, Type::bf16, Major::mn);
    ASSERT_EQ(problem.lda, 9);
    const GemmPlan plan = plans_for("h200-sxm", problem).plans.front();
    EXPECT_EQ(plan.config.kernel->name(), "sm80_few_gemm");
    const Sm80FewConfig config = sm80_few_config(problem, plan.config);
    EXPECT_FALSE(config.a_along_k());
    EXPECT_FALSE(config.odd_rows);  // B's are even
    problem.ldb = 4231;
    EXPECT_TRUE(sm80_few_config(problem, plan.config).odd_rows);
    Sm80FewConfig turned = config;
    turned.tile_m = 16, turned.tile_k = 64;
    EXPECT_EQ(turned.a_words(), 3);
    Sm80FewConfig upright = turned;
    upright.a_major = Major::k;
    EXPECT_EQ(upright.a_words(), 3);
    EXPECT_EQ(turned.a_blocks(), 2);
    EXPECT_EQ(turned.turning_registers(), 12);
    turned.ctas_per_sm = 2;
    EXPECT_EQ(turned.turning_registers(), 6);
    EXPECT_EQ(plan.prediction.dram_bytes, plan.prediction.moved_bytes);
    // Rows of 132 words, of which 40 rows have 6 at once: 22 a thread.
    GemmRequest request = by_few();
    request.tile_k = 256, request.grid_split_k = 1;
    EXPECT_THAT(refusal_of(gemm_problem(40, 12676, 4230, Type::bf16, Major::mn), request),
                HasSubstr("tile_k = 256: A comes by registers, which hold half of such a block of so many rows; take 128"));
}

// 4096 columns are 16 tiles of 256: 8 pieces of each keep 128 of 132 SMs, 10 would be 160. Counters of 16 tiles and the two warpgroups that
// others count by are 128 B; sums are 16 * 8 tiles of 8 x 256 fp32.
TEST(Sm80Few, CutsKWhereSmsIdle) {
    const Plans plans = plans_for("h200-sxm", gemm_problem(1, 4096, 4097));
    const GemmPlan& first = plans.plans.front();
    EXPECT_EQ(first.config.grid_split_k, 8);
    EXPECT_EQ(first.config.ctas_per_sm, 1);
    EXPECT_EQ(first.resources.workspace_bytes, 128 + 16 * 8 * 8 * 256 * 4);
    EXPECT_TRUE(sm80_few_config(first.problem, first.config).in_pieces);
    for (const GemmPlan& plan : plans.plans) EXPECT_LE(plan.config.grid_split_k * (4096 / plan.config.tile_n), 132);
    EXPECT_GT(left_out(plans), 0);
    GemmRequest exhaustive = by_few();
    exhaustive.exhaustive = true;
    EXPECT_EQ(left_out(plans_for("h200-sxm", gemm_problem(1, 4096, 4097), exhaustive)), 0);
}

// What a document records makes the same plan again.
TEST(Sm80Few, IsFixedByItsConfiguration) {
    for (const GemmProblem& problem : {gemm_problem(1, 4096, 4097), gemm_problem(40, 30000, 1111, Type::fp16)}) {
        const GemmPlan plan = plans_for("h200-sxm", problem).plans.front();
        ASSERT_EQ(plan.config.kernel->name(), "sm80_few_gemm");
        const GemmPlan again = plans_for("h200-sxm", problem, fixed_to(plan.config)).plans.front();
        EXPECT_EQ(again.config, plan.config);
        EXPECT_EQ(again.prediction.time_us, plan.prediction.time_us);
    }
}

// Along N a tile copies 8 columns more than it has: 128 lines of 128 columns are 32768 B a stage, 8 rows of A 8 * (16 + 1) * 16 = 2176 B;
// 232448 / 34944 = 6.7 stages. Eight warps' sums of 64 rows, 8 * 64 * 57 * 4 = 116736 B, take 4 stages of 16384 + 64 * 17 * 16 = 33792 B.
TEST(Sm80Few, TakesLinesAlongN) {
    const GemmProblem along_n = gemm_problem(1, 4096, 4097, Type::bf16, Major::k, Major::mn);
    EXPECT_TRUE(rows_on_chunks(gemm_problem(1, 4096, 4096, Type::bf16, Major::k, Major::mn)));
    GemmRequest request = by_few();
    request.tile_n = 120, request.tile_k = 128, request.ctas_per_sm = 1;
    GemmPlan plan = plans_for("h200-sxm", along_n, request).plans.front();
    EXPECT_EQ(plan.resources.stage_bytes, (8 + 120) * 128 * 2);
    EXPECT_EQ(plan.resources.shared_bytes, 6 * 34944);
    EXPECT_EQ(plan.resources.accumulator_registers, 8 * 4);  // all of 128 columns a warp
    EXPECT_EQ(sm80_few_config(plan.problem, plan.config).shared_bytes(), plan.resources.shared_bytes);
    request = by_few();
    request.tile_n = 56, request.tile_k = 128, request.stages = 3;
    EXPECT_THAT(refusal_of(gemm_problem(64, 4096, 4097, Type::bf16, Major::k, Major::mn), request), HasSubstr("4 stages hold the sums"));
    GemmProblem off = gemm_problem(9, 12677, 4230, Type::bf16, Major::k, Major::mn);
    plan = plans_for("h200-sxm", off).plans.front();
    EXPECT_EQ(plan.config.kernel->name(), "sm80_few_gemm");
    EXPECT_EQ(plan.prediction.dram_bytes, plan.prediction.moved_bytes);
    request = by_few();
    request.tile_n = 128;
    EXPECT_THAT(refusal_of(off, request),
                HasSubstr("tile_n = 128: of 64 or 128 columns that are copied 8 are neighbours'; take 56 or 120"));
}

TEST(Sm80Few, RefusesInOneLine) {
    const GemmProblem few = gemm_problem(8, 1000, 1001);
    EXPECT_THAT(refusal_of(gemm_problem(65, 1000, 1001), by_few()), HasSubstr("m = 65: sm80_few_gemm takes up to 64 rows"));
    EXPECT_THAT(refusal_of(gemm_problem(8, 1008, 1024, Type::fp8_e4m3), by_few()), HasSubstr("sm90_gemm's so far"));
    GemmRequest request = by_few();
    request.reverse = true;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("leave it off"));
    request = by_few();
    request.swap_ab = true;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("swap_ab = on"));
    request = by_few();
    request.split_k = 2;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("split_k = 2"));
    request = by_few();
    request.tile_m = 24, request.tile_n = 96;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("tile_n = 96"));
    request = by_few();
    request.tile_m = 12;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("tile_m = 12"));
    request = by_few();
    request.tile_k = 192;
    EXPECT_THAT(refusal_of(few, request), HasSubstr("tile_k = 192"));
    request = by_few();
    request.grid_split_k = 17;  // ceil(1001 / 64) = 16 blocks
    EXPECT_THAT(refusal_of(few, request), HasSubstr("17 pieces of K; it has 16 blocks"));
    EXPECT_THAT(refusal_of(few, by_few(), "v100-sxm2"), HasSubstr("cp_async"));
}

// With batches each product's matrices may begin elsewhere.
TEST(Sm80Few, LooksAtEveryMatrixOfABatch) {
    GemmProblem batch = gemm_problem(4, 512, 1024);
    batch.batch = 6;
    batch.a_stride = dense_stride(batch, 'a'), batch.b_stride = dense_stride(batch, 'b') + 1, batch.c_stride = dense_stride(batch, 'c');
    EXPECT_FALSE(rows_on_chunks(batch));
    const GemmPlan plan = plans_for("h200-sxm", batch).plans.front();
    EXPECT_EQ(plan.config.kernel->name(), "sm80_few_gemm");
    const Sm80FewConfig config = sm80_few_config(plan.problem, plan.config);
    EXPECT_TRUE(config.batched && config.odd_rows);
}

}  // namespace
}  // namespace rooftile
