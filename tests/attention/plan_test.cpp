// Attention's plans: walls by hand, what is refused, what the model must keep to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "rooftile/report/plan_page.hpp"
#include "rooftile/attention/fields.hpp"
#include "rooftile/attention/model.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/attention/records.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/terminal.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

AttentionProblem problem_of(std::string_view line) { return attention_problem(given_of(attention_operation(), line)); }
AttentionHardware h200() {
    std::vector<std::string> unknown;
    return attention_hardware(machine_by_id("h200-sxm"), Type::bf16, unknown);
}
AttentionPlans plans_of(std::string_view line, const char* machine = "h200-sxm", const AttentionRequest& request = {}) {
    const auto outcome = derive(std::make_shared<const Machine>(machine_by_id(machine)), problem_of(line), request);
    EXPECT_TRUE(std::holds_alternative<AttentionPlans>(outcome)) << std::get<AttentionInfeasible>(outcome).message;
    return std::get<AttentionPlans>(outcome);
}

std::string refusal_of(std::string_view line) {
    try {
        problem_of(line);
    } catch (const RequestError& error) { return error.what(); }
    return "none";
}

// DeepSeek-V3's decode: 128 heads over one row of 576 elements a key, of which 512 are its values.
TEST(AttentionLatent, RowsAreReadOnce) {
    const AttentionProblem p = problem_of("--batch 16 --heads 128 --q 1 --kv 8192 --dim 576 --dim-v 512 --latent on --scale 0.0722");
    EXPECT_EQ(p.kv_heads, 1);
    EXPECT_EQ(p.k_bytes(), 16 * 8192 * 576 * 2);
    EXPECT_EQ(p.v_bytes(), 0);
    EXPECT_EQ(p.compulsory_bytes(), 16 * (8192 * 576 + 128 * (576 + 512)) * 2);
    EXPECT_EQ(p.flops(), 2.0 * 16 * 128 * 8192 * (576 + 512));
    EXPECT_EQ(p.score_scale(), 0.0722);
    EXPECT_DOUBLE_EQ(problem_of("--heads 128 --q 1 --kv 10 --dim 576 --dim-v 512 --latent on").score_scale(), 1.0 / 24);
    std::vector<std::string> names;
    for (const TensorInfo& t : attention_tensors(p)) names.push_back(t.name);
    EXPECT_THAT(names, testing::ElementsAre("Q", "K", "O"));
    EXPECT_EQ(output_tensor(p), 2u);
    EXPECT_EQ(attention_problem(attention_given(p)), p);
    EXPECT_EQ(attention_problem(attention_given(problem_record(p))), p);
    const AttentionProblem paged = problem_of("--heads 16 --q 2 --mask causal --dim 576 --dim-v 512 --latent on --lengths 100,0,3000 --page 64");
    EXPECT_EQ(bounds_tensor(paged), 2u);
    EXPECT_EQ(table_tensor(paged), 3u);
    EXPECT_EQ(attention_problem(attention_given(problem_record(paged))), paged);
}

// What the search takes where it is free is of the problem that was asked for, and not of its heads as rows.
TEST(AttentionPlans, ARuleIsHeldBackOfHeadsThatShareKeysToo) {
    EXPECT_GE(plans_of("--heads 32 --kv-heads 8 --q 1 --kv 9000 --dim 128", "h200-sxm", {.tile_kv = 16}).plans.front().held_back, 1);
}

TEST(AttentionLatent, ATileIsHeadsThatShareItsKeys) {
    const auto group = [](std::int64_t heads, std::int64_t queries) {
        AttentionProblem p;
        p.latent = true, p.kv_heads = 1, p.heads = heads, p.queries = queries, p.keys = 100, p.dim = 576, p.dim_v = 512;
        const AttentionProblem rows = heads_as_rows(p);
        EXPECT_EQ(rows.heads * rows.group, heads);
        EXPECT_EQ(rows.queries, queries * rows.group);
        EXPECT_EQ(rows.k_bytes(), p.k_bytes());
        EXPECT_EQ(rows.flops(), p.flops());
        return rows.group;
    };
    EXPECT_EQ(group(128, 1), 64);
    EXPECT_EQ(group(16, 4), 16);
    EXPECT_EQ(group(96, 1), 48);
    EXPECT_EQ(group(67, 2), 1);
}

// Q 64 x 576, two stages of 64 x 576, P 64 x 64, of 2 B; barriers of three stages, two places of what is told, 4 numbers of 64 rows, and 8 words.
TEST(AttentionLatent, TwoStagesFitBesideQ) {
    const AttentionPlans plans = plans_of("--batch 16 --heads 128 --q 1 --kv 8192 --dim 576 --dim-v 512 --latent on");
    const AttentionPlan& plan = plans.plans.front();
    EXPECT_TRUE(plan.buildable);
    EXPECT_EQ(plan.config.tile_kv, 64);
    EXPECT_EQ(plan.config.stages, 2);
    EXPECT_EQ(plan.resources.shared_bytes, 73728 + 2 * 73728 + 8192 + 2 * 3 * 8 + 2 * 36 + 4 * 64 * 4 + 32);
    EXPECT_EQ(plan.resources.threads, 384);
    EXPECT_EQ(plan.resources.accumulator_registers, 128 + 16);
    // Scores read 64 rows of Q twice and 64 keys, in 1728 clk at 128 B each; values 8192 B of P twice and 64 x 512, while the tensor cores take 1024 clk.
    EXPECT_EQ(plan.prediction.tensor_cycles, 2176);
    EXPECT_GE(plan.prediction.block_cycles, 1728 + 1024);
    EXPECT_EQ(plan.prediction.dram_bytes, plan.prediction.dram_lower_bound_bytes);
    EXPECT_GE(*plan.prediction.l2_bytes, 2 * plan.problem.k_bytes()) << "two tiles of 64 heads each";
    for (const AttentionPlan& each : plans.plans) EXPECT_GE(each.config.splits, 2);
    // Fewer blocks than CTAs that share them out.
    EXPECT_TRUE(plans_of("--heads 16 --q 1 --kv 5 --dim 576 --dim-v 512 --latent on").plans.front().buildable);
    // Rows that are heads already stay as they are.
    EXPECT_EQ(heads_as_rows(plan.problem), plan.problem);
    // Where registers do not move from the producer a thread has 168.
    const auto a100 = derive(std::make_shared<const Machine>(machine_by_id("a100-40-sxm")), plans.problem, {});
    ASSERT_TRUE(std::holds_alternative<AttentionInfeasible>(a100));
    EXPECT_THAT(std::get<AttentionInfeasible>(a100).message, HasSubstr("no tile fits"));
}

// Parts of 64 rows of 512 columns are many bytes for one SM: of one long sequence all SMs add them up.
TEST(AttentionLatent, ManyPartsAreAddedUpByAllSms) {
    const std::string_view one = "--heads 128 --q 1 --kv 8192 --dim 576 --dim-v 512 --latent on";
    const AttentionPlan apart = plans_of(one).plans.front(), last = plans_of(one, "h200-sxm", {.combine_apart = false}).plans.front();
    EXPECT_TRUE(apart.config.combine_apart);
    EXPECT_LT(*apart.prediction.time_us, *last.prediction.time_us);
    EXPECT_LT(last.config.splits, apart.config.splits);
    // Where cuts are a tile's own, a piece's 1024 keys are 9 times the bytes of its part.
    const AttentionPlan own = plans_of(one, "h200-sxm", {.batch_invariant = true}).plans.front();
    EXPECT_EQ(kernel_config(own.problem, own.config).piece * own.config.tile_kv, 1024);
    EXPECT_EQ(units_of_all(own.problem, own.config), 2 * 8);
    const auto outcome = derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), problem_of("--heads 8 --q 1 --kv 800 --dim 64"), {.combine_apart = true});
    EXPECT_TRUE(std::holds_alternative<AttentionInfeasible>(outcome));
}

// 128 tiles of 128 blocks by 132 CTAs: those of 64 heads and of the other 64 read the same block at the same time. By 127 they are half a share apart, and all that is
// loaded in between is more than L2 holds.
TEST(AttentionLatent, BothTilesReadAKeyAtTheSameTime) {
    const std::string_view line = "--batch 64 --heads 128 --q 1 --kv 8192 --dim 576 --dim-v 512 --latent on";
    const AttentionPlan even = plans_of(line, "h200-sxm", {.splits = 132}).plans.front(), odd = plans_of(line, "h200-sxm", {.splits = 127}).plans.front();
    EXPECT_EQ(even.prediction.dram_bytes, even.prediction.dram_lower_bound_bytes);
    EXPECT_GT(*odd.prediction.dram_bytes, *odd.prediction.dram_lower_bound_bytes + even.problem.k_bytes() / 2);
}

TEST(AttentionLatent, WhatCannotBeIsRefusedByName) {
    const std::string latent = "--heads 16 --q 1 --kv 100 --dim 576 --dim-v 512 --latent on";
    EXPECT_EQ(refusal_of(latent), "none");
    EXPECT_THAT(refusal_of("--heads 16 --q 1 --kv 100 --dim 576 --latent on"), HasSubstr("give --dim-v"));
    EXPECT_THAT(refusal_of("--heads 16 --q 4096 --dim 576 --dim-v 512 --latent on"), HasSubstr("1 to 32 queries"));
    EXPECT_THAT(refusal_of("--heads 16 --q 1 --kv 100 --dim 584 --dim-v 512 --latent on"), HasSubstr("16 to 576"));
    EXPECT_THAT(refusal_of("--heads 16 --q 1 --kv 100 --dim 192 --dim-v 64 --latent on"), HasSubstr("multiples of 128"));
    EXPECT_THAT(refusal_of("--heads 16 --q 1 --kv 100 --dim 128 --dim-v 256 --latent on"), HasSubstr("first elements of a key's row"));
    EXPECT_THAT(refusal_of(latent + " --kv-heads 2"), HasSubstr("kv_heads is 2"));
    EXPECT_THAT(refusal_of(latent + " --mask window:64"), HasSubstr("none or causal"));
    EXPECT_THAT(refusal_of(latent + " --score s=s*2"), HasSubstr("scale"));
    EXPECT_THAT(refusal_of(latent + " --scale -1"), HasSubstr("above 0"));
    EXPECT_THAT(refusal_of(latent + " --v-strides 1024,1024,1024"), HasSubstr("in K"));
    EXPECT_THAT(refusal_of("--heads 16 --dim 576 --dim-v 512 --latent on --lengths 5,6"), HasSubstr("cache"));
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (const AttentionRequest& request : {AttentionRequest{.tile_q = 128}, {.tile_kv = 48}, {.splits = 1}, {.ctas_per_sm = 2}}) {
        const auto outcome = derive(machine, problem_of(latent), request);
        ASSERT_TRUE(std::holds_alternative<AttentionInfeasible>(outcome));
        EXPECT_THAT(std::get<AttentionInfeasible>(outcome).message, HasSubstr("latent rows"));
    }
}

TEST(AttentionFields, WhatCannotBeIsRefusedByName) {
    EXPECT_THAT(refusal_of("--q 64 --dim 64"), HasSubstr("missing --heads"));
    EXPECT_THAT(refusal_of("--heads 8 --dim 64"), HasSubstr("missing --q"));
    EXPECT_THAT(refusal_of("--heads 8 --q 64"), HasSubstr("missing --dim"));
    EXPECT_THAT(refusal_of("--heads 0 --q 64 --dim 64"), HasSubstr("heads is 0"));
    EXPECT_THAT(refusal_of("--heads 8 --q 64 --dim 60"), HasSubstr("multiples of 8"));
    EXPECT_THAT(refusal_of("--heads 8 --q 64 --dim 264"), HasSubstr("8 to 256"));
    EXPECT_THAT(refusal_of("--heads 8 --kv-heads 3 --q 64 --dim 64"), HasSubstr("must divide heads"));
    EXPECT_THAT(refusal_of("--heads 8 --q 64 --dim 64 --mask sideways"), HasSubstr("accepted: none, causal, window:W"));
    EXPECT_THAT(refusal_of("--heads 8 --q 64 --dim 64 --mask window:0"), HasSubstr("1 .. "));
    EXPECT_THAT(refusal_of("--heads 8 --q 64 --dim 64 --type fp32"), HasSubstr("bf16"));
    EXPECT_THAT(refusal_of("--batch 65536 --heads 65536 --q 1000000 --dim 64"), HasSubstr("2^46 bytes"));
}

TEST(AttentionFields, LengthsAreAListARangeOrAFile) {
    const AttentionProblem list = problem_of("--heads 8 --kv-heads 2 --dim 64 --lengths 128,0,300");
    EXPECT_EQ(list.lengths, (std::vector<std::int64_t>{128, 0, 300}));
    EXPECT_EQ(list.batch, 3);
    EXPECT_EQ(list.query_rows(), 428);
    EXPECT_EQ(list.visible_pairs(), 128.0 * 128 + 300.0 * 300);
    EXPECT_EQ(list.q_bytes(), 8 * 428 * 64 * 2) << "nothing is padded";
    const AttentionProblem drawn = problem_of("--heads 8 --dim 64 --lengths 50x[10..40]");
    EXPECT_EQ(drawn.lengths.size(), 50u);
    EXPECT_THAT(drawn.lengths, testing::Each(testing::AllOf(testing::Ge(10), testing::Le(40))));
    EXPECT_EQ(attention_problem(attention_given(drawn)), drawn) << "as a list";
    EXPECT_EQ(attention_problem(attention_given(problem_record(drawn))), drawn);
    const std::string file = testing::TempDir() + "lengths.txt";
    std::ofstream(file) << "7\n0 9\n";
    EXPECT_EQ(problem_of("--heads 1 --dim 64 --lengths " + file).lengths, (std::vector<std::int64_t>{7, 0, 9}));
    EXPECT_THAT(refusal_of("--heads 8 --dim 64 --lengths 5 --batch 5"), HasSubstr("--batch is given, and --lengths says it too"));
    EXPECT_THAT(refusal_of("--heads 8 --dim 64 --lengths 5x[9..3]"), HasSubstr("--lengths"));
    EXPECT_THAT(refusal_of("--heads 8 --dim 64 --lengths ,"), HasSubstr("0 lengths"));
    EXPECT_THAT(refusal_of("--heads 8 --dim 64 --lengths 1000000000,1000000000"), HasSubstr("the sum of the lengths"));
}

// Each says what is wrong of it, and what works.
TEST(AttentionFields, LengthsThatMeanNothingAreRefused) {
    const auto why = [](const std::string& lengths) { return refusal_of("--heads 8 --dim 64 --lengths " + lengths); };
    EXPECT_THAT(why("1,,500"), HasSubstr("place 2 between its commas is empty; a sequence without rows is written 0"));
    EXPECT_THAT(why("1,2,"), HasSubstr("place 3"));
    EXPECT_THAT(why(",1"), HasSubstr("place 1"));
    EXPECT_THAT(why("0"), HasSubstr("none of the 1 sequences has a row"));
    EXPECT_THAT(why("0,0"), HasSubstr("none of the 2 sequences has a row"));
    EXPECT_THAT(why("3x[0..0]"), HasSubstr("none of the 3 sequences has a row"));
    EXPECT_THAT(why("1024x1"), HasSubstr("\"1024x1\"; sequences of one length are 1024x[1..1]"));
    EXPECT_THAT(why("3x[5..2]"), HasSubstr("LO = 5 is above HI = 2; give 3x[2..5]"));
    EXPECT_THAT(why("3x[1..]"), HasSubstr("Bx[LO..HI], HI = ''"));
    EXPECT_THAT(why("0x[1..5]"), HasSubstr("Bx[LO..HI], B = 0: out of range"));
    const std::string file = testing::TempDir() + "lengths_with_a_gap.txt";
    std::ofstream(file) << "7,\n,9\n";
    EXPECT_THAT(why(file), HasSubstr("place 2"));
    std::ofstream(file) << "7,\n9\n\n";
    EXPECT_EQ(problem_of("--heads 1 --dim 64 --lengths " + file).lengths, (std::vector<std::int64_t>{7, 9}));
}

TEST(AttentionFields, AScoreIsAnExpressionOfItsPlaces) {
    const AttentionProblem p = problem_of("--heads 8 --q 64 --dim 64 --score s=s+slope*(j-i) --tensor slope:fp32[H]");
    ASSERT_TRUE(p.score);
    EXPECT_TRUE(p.score->operands.front().by_head);
    EXPECT_TRUE(p.score->by_place);
    EXPECT_EQ(attention_tensors(p)[3].name, "slope");
    EXPECT_EQ(output_tensor(p), 4u);
    EXPECT_EQ(attention_problem(attention_given(p)), p);
    EXPECT_EQ(attention_problem(attention_given(problem_record(p))), p);
    EXPECT_FALSE(problem_of("--heads 8 --q 64 --dim 64 --score s=tanh(s)").score->by_place);
    const auto refused = [](const std::string& rest) { return refusal_of("--heads 8 --q 64 --dim 64 " + rest); };
    EXPECT_THAT(refused("--tensor slope:fp32[H]"), HasSubstr("no score that reads it"));
    EXPECT_THAT(refused("--score s=softmax(s)"), HasSubstr("softmax takes more scores than one"));
    EXPECT_THAT(refused("--score s=i+j"), HasSubstr("does not read s"));
    EXPECT_THAT(refused("--score s=s>0"), HasSubstr("true or false"));
    EXPECT_THAT(refused("--score s=s+b --tensor b:fp32[5]"), HasSubstr("one number of bf16, fp16 or fp32 a head"));
    EXPECT_THAT(refused("--score s=s+i --tensor i:fp32[H]"), HasSubstr("the name is taken"));
    EXPECT_THAT(refused("--score s=s+x"), HasSubstr("score: "));
}

// A soft-cap has two more of the special function unit's and more to issue: the plan says so, and takes longer.
TEST(AttentionModel, AScoreCostsWhatItsOperatorsDo) {
    const std::string rest = "--heads 16 --q 4096 --dim 64";
    const AttentionPrediction plain = plans_of(rest).plans.front().prediction,
                              capped = plans_of(rest + " --score s=30*tanh(s*0.033)").plans.front().prediction;
    EXPECT_DOUBLE_EQ(*capped.overlap_ceiling, 1.5) << "half as many exponentials again as products have cycles";
    EXPECT_GT(*capped.time_us, *plain.time_us);
    EXPECT_EQ(capped.dram_bytes, plain.dram_bytes);
}

// 2 x 3 heads of 100 x 200 scores, four times 2 bytes: 960,000 B; Q, K, V and O 100, 200, 200 and 100 rows of 64: 460,800.
TEST(AttentionModel, WhatThreeKernelsWouldMove) {
    EXPECT_EQ(problem_of("--batch 2 --heads 3 --q 100 --kv 200 --dim 64").unfused_bytes(), 960000 + 460800);
    EXPECT_EQ(problem_of("--heads 1 --lengths 10,20 --dim 64").unfused_bytes(), (100 + 400) * 8 + 4 * 30 * 128 + 3 * 4);
}

// A packed batch of equal lengths is the batch: the same tiles and blocks, but for a place more each, and as much to multiply.
// Keys before every window are cut away, in whole blocks: the same work, and the same prediction.
TEST(AttentionModel, WhatNobodySeesCostsNothing) {
    Random random(4711);
    for (int i = 0; i < 60; ++i) {
        const std::int64_t queries = random.whole(1, 3000), window = random.whole(1, 3000), seen = queries + window - 1;
        const std::int64_t tile_kv = 16 * random.whole(4, 10), hidden = tile_kv * random.whole(1, 2000);
        const auto planned = [&](std::int64_t keys) {
            AttentionRequest request;
            request.tile_kv = int(tile_kv);
            const std::string line = fmt::format("--batch 4 --heads 8 --kv-heads 8 --dim 128 --q {} --kv {} --mask window:{}", queries, keys, window);
            return plans_of(line, "h100-sxm", request).plans.front();
        };
        const AttentionPlan whole = planned(seen + hidden), cut = planned(seen);
        SCOPED_TRACE(fmt::format("{} queries, window {}, {} keys behind it, blocks of {}", queries, window, hidden, tile_kv));
        EXPECT_EQ(whole.config, cut.config);
        EXPECT_EQ(whole.prediction.dram_lower_bound_bytes, cut.prediction.dram_lower_bound_bytes);
        EXPECT_EQ(whole.prediction.dram_bytes, cut.prediction.dram_bytes);
        EXPECT_EQ(whole.prediction.time_us, cut.prediction.time_us);
        EXPECT_EQ(whole.prediction.l2_bytes, cut.prediction.l2_bytes);
    }
    // Queries before the first key see nothing, and neither they nor what stands for them is read.
    const AttentionProblem early = problem_of("--heads 2 --dim 64 --q 1000 --kv 300 --mask causal");
    EXPECT_EQ(early.q_bytes(), 2 * 300 * 64 * 2);
    EXPECT_EQ(early.k_bytes(), 2 * 300 * 64 * 2);
    EXPECT_EQ(problem_of("--heads 2 --dim 64 --q 300 --kv 1000 --mask causal").k_bytes(), 2 * 1000 * 64 * 2);
}

TEST(AttentionModel, PackedSequencesCountAsTheyAre) {
    for (const char* mask : {"none", "causal", "window:100"}) {
        const std::string rest = std::string(" --heads 8 --dim 64 --mask ") + mask;
        const AttentionRequest tiles{.tile_q = 128, .tile_kv = 128};
        const AttentionPrediction packed = plans_of("--lengths 500,500,500" + rest, "h200-sxm", tiles).plans.front().prediction,
                                  batch = plans_of("--batch 3 --q 500" + rest, "h200-sxm", tiles).plans.front().prediction;
        EXPECT_EQ(packed.tiles, batch.tiles);
        EXPECT_EQ(packed.blocks, batch.blocks);
        EXPECT_NEAR(*packed.time_us, *batch.time_us, 0.05 * *batch.time_us);
        // Half of the rows at half the length are half of the blocks, and of the bytes.
        const AttentionPrediction padded = plans_of("--batch 2 --q 2048 --heads 8 --dim 64").plans.front().prediction;
        EXPECT_LT(*plans_of("--lengths 2048,64 --heads 8 --dim 64").plans.front().prediction.dram_bytes, 0.6 * double(*padded.dram_bytes));
    }
}

TEST(AttentionFields, TensorsThatLieSomewhereGiveTheLayout) {
    const auto tensor = [](std::int64_t heads, std::int64_t rows, AttentionLayout layout) {
        AttentionProblem p;
        p.layout = layout;
        const AttentionPitch pitch = dense_pitch(layout, heads, rows, 64);
        return TensorInfo{"", "bf16", 16, {Extent::of(2), Extent::of(heads), Extent::of(rows), Extent::of(64)},
                          {pitch.batch, pitch.head, pitch.row, 1}};
    };
    for (const AttentionLayout layout : {AttentionLayout::bhsd, AttentionLayout::bshd}) {
        Given given;
        const std::vector<TensorInfo> inputs = {tensor(8, 100, layout), tensor(2, 300, layout), tensor(2, 300, layout)};
        add_attention_tensors(given, inputs);
        const AttentionProblem p = attention_problem(given);
        EXPECT_EQ(p.layout, layout);
        EXPECT_EQ(p.heads, 8);
        EXPECT_EQ(p.kv_heads, 2);
        EXPECT_EQ(p.keys, 300);
        EXPECT_THROW(add_attention_tensors(given, inputs), RequestError) << "said twice";
    }
    // Of unlike layouts, and of rows that are apart: views of a projection's result [batch, rows, (heads + 2 kv_heads) x dim].
    Given given;
    std::vector<TensorInfo> views = {tensor(8, 300, AttentionLayout::bshd), tensor(2, 300, AttentionLayout::bshd),
                                     tensor(2, 300, AttentionLayout::bhsd)};
    views[0].strides = {300 * 768, 64, 768, 1};
    add_attention_tensors(given, views);
    const AttentionProblem p = attention_problem(given);
    EXPECT_EQ(p.layout, AttentionLayout::bshd) << "O as Q";
    EXPECT_EQ(p.strides[0], (AttentionPitch{.row = 768, .head = 64, .batch = 300 * 768}));
    EXPECT_EQ(p.strides[2], dense_pitch(AttentionLayout::bhsd, 2, 300, 64));
    EXPECT_EQ(attention_problem(attention_given(p)), p);
    EXPECT_EQ(attention_problem(attention_given(problem_record(p))), p);
    const auto refused = [&](std::size_t axis, std::int64_t stride) {
        std::vector<TensorInfo> wrong = views;
        wrong[0].strides[axis] = stride;
        Given fresh;
        EXPECT_THROW(add_attention_tensors(fresh, wrong), RequestError) << axis << " " << stride;
    };
    refused(2, 772);  // no multiple of 16 bytes
    refused(2, 32);   // rows overlap
    refused(3, 2);    // elements of a row are apart
}

TEST(AttentionFields, TensorsBehindVAreCuSeqlensAndWhatAScoreReads) {
    const auto dense = [](std::string name, std::string type, int bits, const std::vector<std::int64_t>& extents) {
        TensorInfo t{.name = std::move(name), .type = std::move(type), .element_bits = bits, .extents = {}, .strides = {}};
        std::int64_t stride = 1;
        for (std::size_t axis = extents.size(); axis-- > 0; stride *= extents[axis]) {
            t.extents.insert(t.extents.begin(), Extent::of(extents[axis]));
            t.strides.insert(t.strides.begin(), stride);
        }
        return t;
    };
    Random random(7);
    for (int i = 0; i < 100; ++i) {
        const std::int64_t sequences = random.whole(1, 20), rows = random.whole(sequences, 500), heads = random.whole(1, 8);
        const bool packed = random.coin(), named = random.coin(), by_head = random.coin(), scored = random.coin();
        std::vector<TensorInfo> inputs(3, dense("", "bf16", 16, {packed ? 1 : sequences, heads, rows, 64}));
        Given given;
        if (packed) inputs.push_back(dense(named ? "cu_seqlens" : "", "int32", 32, {sequences + 1}));
        if (scored) {
            given.add("score", "s = s + slope * (j - i)");
            inputs.push_back(dense("slope", "fp32", 32, {by_head ? heads : 1}));
        }
        add_attention_tensors(given, inputs);
        const AttentionProblem p = attention_problem(given);
        const std::vector<TensorInfo> read = attention_tensors(p);
        ASSERT_EQ(read.size(), inputs.size() + 1);
        for (std::size_t t = 0; t < inputs.size(); ++t) {
            EXPECT_EQ(read[t].type, inputs[t].type);
            EXPECT_EQ(read[t].strides, inputs[t].strides) << t;
            for (std::size_t axis = 0; axis < read[t].extents.size(); ++axis)
                EXPECT_EQ(read[t].extents[axis].most, inputs[t].extents[axis].most) << t << " " << axis;
        }
        if (!packed) continue;
        EXPECT_EQ(std::int64_t(p.lengths.size()), sequences);
        EXPECT_LE(*std::ranges::max_element(p.lengths) - *std::ranges::min_element(p.lengths), 1) << "as alike as they can be";
        Given other;
        other.add("lengths", fmt::format("{},{}", rows, 1));
        EXPECT_THROW(add_attention_tensors(other, std::span(inputs).first(4)), RequestError) << "of other rows or sequences";
        inputs[2].extents[2] = Extent::of(rows + 1);
        EXPECT_THROW(add_attention_tensors(other = Given(), std::span(inputs).first(4)), RequestError);
    }
    // A cache, its lengths and its table in any order: Q of 5 batches, 40 pages of 32 keys, 6 of them a batch's.
    for (const bool table_first : {false, true}) {
        std::vector<TensorInfo> inputs{dense("", "bf16", 16, {5, 8, 2, 64}), dense("", "bf16", 16, {40, 2, 32, 64}), dense("", "bf16", 16, {40, 2, 32, 64})};
        inputs.push_back(dense("lengths", "int32", 32, {5}));
        inputs.push_back(dense("block_table", "int32", 32, {5, 6}));
        if (table_first) std::swap(inputs[3], inputs[4]);
        Given given;
        add_attention_tensors(given, inputs);
        const AttentionProblem p = attention_problem(given);
        EXPECT_TRUE(p.cached);
        EXPECT_EQ(p.batch, 5);
        EXPECT_EQ(p.queries, 2);
        EXPECT_EQ(p.keys, 6 * 32);
        EXPECT_EQ(p.page, 32);
        EXPECT_EQ(p.pages, 40);
        EXPECT_EQ(p.kv_heads, 2);
        const std::vector<TensorInfo> read = attention_tensors(p);
        EXPECT_EQ(read[1].extents[0].most, 40);
        EXPECT_EQ(read[3].name, "lengths");
        EXPECT_EQ(read[4].name, "block_table");
        EXPECT_EQ(attention_problem(attention_given(problem_record(p))), p);
        inputs.erase(inputs.begin() + (table_first ? 4 : 3));
        EXPECT_THROW(add_attention_tensors(given = Given(), inputs), RequestError) << "a table without lengths";
    }
    std::vector<TensorInfo> off(3, dense("", "bf16", 16, {2, 4, 64, 64}));
    off[1].offset = 4;
    Given given;
    EXPECT_THROW(add_attention_tensors(given, off), RequestError) << "K does not begin at a multiple of 16 bytes";
}

// Two heads of three rows of 64 elements, side by side in rows of 128 or one behind the other; rows and heads of one step lie on each other.
TEST(AttentionFields, RowsOfOLieApart) {
    const std::string_view rest = "--heads 2 --q 3 --dim 64 --o-strides ";
    const AttentionProblem beside = problem_of(std::string(rest) + "384,64,128");
    EXPECT_EQ(beside.strides[3], (AttentionPitch{.row = 128, .head = 64, .batch = 384}));
    EXPECT_EQ(attention_problem(attention_given(beside)), beside);
    EXPECT_EQ(attention_problem(attention_given(problem_record(beside))), beside);
    EXPECT_EQ(attention_tensors(beside).back().strides, (std::vector<std::int64_t>{384, 64, 128, 1}));
    problem_of(std::string(rest) + "64,192,64");  // one batch: any step of it
    EXPECT_THAT(refusal_of(std::string(rest) + "384,64,64"), HasSubstr("rows of O would overlap"));
    // Three rows of 64 take 192 elements: the next head begins no sooner.
    EXPECT_THAT(refusal_of(std::string(rest) + "384,184,64"), HasSubstr("a step of 184 is less than the 192"));
    EXPECT_THAT(refusal_of(std::string(rest) + "384,64,60"), HasSubstr("o_strides has 60"));
    EXPECT_THAT(refusal_of("--batch 2 --heads 2 --q 3 --dim 64 --o-strides 64,192,64"), HasSubstr("would overlap"));
}

// dim 128: O 64, scores of 176 keys 88, probabilities 44, 40 beside them where there is a mask: 236 of 240. 192 keys: 248.
TEST(AttentionWalls, RegistersByHand) {
    const AttentionProblem p = problem_of("--heads 8 --q 512 --dim 128 --mask causal");
    AttentionConfig c{.tile_q = 128, .tile_kv = 176, .stages = 2};
    EXPECT_EQ(registers_needed(p, c), 64 + 88 + 44 + 40);
    EXPECT_FALSE(wall_of(h200(), p, c));
    c.tile_kv = 192;
    const auto wall = wall_of(h200(), p, c);
    ASSERT_TRUE(wall);
    EXPECT_EQ(wall->reason, Reason::registers);
    EXPECT_EQ(wall->needed, 64 + 96 + 48 + 40);
    EXPECT_EQ(wall->available, 240);  // (65536 / 128 - 24) / 2 = 244, down to 8
    EXPECT_EQ(register_shares(h200(), {}, {.tile_q = 192}).consumer, 160);
    EXPECT_EQ(register_shares(h200(), {}, {.tile_q = 64}).consumer, 248);  // no more than a thread can have
    // Two CTAs of 256 threads: 65536 / 512 = 128 at launch, of two threads' 256 the producer keeps 40.
    EXPECT_EQ(register_shares(h200(), {}, {.tile_q = 64, .splits = 264, .ctas_per_sm = 2}).consumer, 216);
}

// Q 128 x 128 x 2 = 32768 B; K and V of 128 keys 65536 B a stage: 3 fit into 227 KiB, 4 do not.
TEST(AttentionWalls, SharedMemoryByHand) {
    const AttentionProblem p = problem_of("--heads 8 --q 512 --dim 128");
    AttentionConfig c{.tile_q = 128, .tile_kv = 128, .stages = 3};
    EXPECT_EQ(kernel_config(p, c).shared_bytes(), 32768 + 3 * 65536 + 2 * 7 * 8 + 8);
    EXPECT_EQ(stages_max(h200(), p, c), 3);
    EXPECT_FALSE(wall_of(h200(), p, c));
    c.stages = 4;
    const auto wall = wall_of(h200(), p, c);
    ASSERT_TRUE(wall);
    EXPECT_EQ(wall->reason, Reason::shared);
    // Where blocks are shared out the next tile's Q has a place too, and three tiles are told, 36 B each.
    c = {.tile_q = 64, .tile_kv = 128, .stages = 2, .schedule = Schedule::cooperative, .splits = 9};
    EXPECT_EQ(kernel_config(p, c).shared_bytes(), 2 * 16384 + 2 * 65536 + 2 * (2 + 4) * 8 + 3 * 36);
}

// 4096 FLOP a cycle: 2 x 128 x 128 x 256 / 4096 = 2048; 128 x 128 / 16 = 1024; so M38's ceiling is 1.5. Of dim 64 it is 2, of 256 1.25.
TEST(AttentionModel, UnitsByHand) {
    const AttentionConfig c{.tile_q = 128, .tile_kv = 128, .stages = 2};
    const auto block = [&](const char* line) { return block_cycles(h200(), problem_of(line), c); };
    const BlockCycles b = block("--heads 8 --q 512 --dim 128");
    EXPECT_EQ(b.tensor, 2048);
    EXPECT_EQ(b.exponential, 1024);
    EXPECT_DOUBLE_EQ(b.ceiling(), 1.5);
    EXPECT_DOUBLE_EQ(block("--heads 8 --q 512 --dim 64").ceiling(), 2);
    EXPECT_DOUBLE_EQ(block("--heads 8 --q 512 --dim 256").ceiling(), 1.25);
    EXPECT_GE(b.all, std::max(b.tensor, b.exponential));
}

// Whatever the configuration: no block is faster than its longest unit, no launch than its work at the highest clock, and DRAM moves
// no less than every tensor once.
TEST(AttentionModel, KeepsToWhatTheUnitsCanDo) {
    Random random(5);
    const AttentionHardware hw = h200();
    for (int i = 0; i < 60; ++i) {
        AttentionProblem p;
        p.heads = random.whole(1, 16), p.kv_heads = 1, p.batch = random.whole(1, 4);
        p.queries = random.whole(1, 3000), p.keys = random.whole(1, 3000);
        p.dim = 8 * random.whole(1, 32), p.dim_v = 8 * random.whole(1, 32);
        p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 3000);
        for_each_config({}, p, hw.sms, [&](AttentionConfig c) {
            if (wall_of(hw, p, c)) return;
            c.section_heads = section_heads(hw, p, c.tile_q);
            ASSERT_GE(c.section_heads, 1);
            ASSERT_LE(c.section_heads, p.heads_of_all());
            const AttentionTime t = attention_time(hw, p, c);
            EXPECT_GE(t.block.all, t.block.tensor);
            EXPECT_GE(t.block.all, t.block.exponential);
            EXPECT_GE(t.seconds, t.work.matrix_flops / (hw.flops_per_cycle * hw.sms * hw.top_hz) * 0.999);
            EXPECT_GE(t.work.matrix_flops, p.flops() * 0.999);
            EXPECT_GE(t.work.dram_bytes, double(p.compulsory_bytes()));
            EXPECT_LE(t.balance, 1 + 1e-9);
        });
    }
}

// Few queries a head: heads that share keys are one tile's rows, a query's heads side by side.
TEST(AttentionPlans, HeadsThatShareKeysAreRows) {
    const AttentionProblem p = problem_of("--batch 3 --heads 32 --kv-heads 8 --q 5 --kv 500 --dim 128 --mask causal --layout bshd");
    const AttentionProblem rows = heads_as_rows(p);
    EXPECT_EQ(rows.heads, 8);
    EXPECT_EQ(rows.queries, 20);
    EXPECT_EQ(rows.group, 4);
    EXPECT_EQ(pitch_of(rows, AttentionOperand::q), pitch_of(p, AttentionOperand::q));
    EXPECT_EQ(rows.compulsory_bytes(), p.compulsory_bytes());
    EXPECT_EQ(rows.flops(), p.flops());
    // Rows of a query see what it sees.
    for (int row = 0; row < 20; ++row) EXPECT_EQ(rows.extent().end_key(row), p.extent().end_key(row / 4));
    // The one query sees every key.
    EXPECT_EQ(heads_as_rows(problem_of("--heads 8 --q 1 --kv 500 --dim 128 --mask causal")).mask, AttentionMask::none);
    // Many queries, heads with keys of their own.
    for (const char* other : {"--heads 32 --kv-heads 8 --q 64 --kv 500 --dim 128", "--heads 8 --q 1 --kv 500 --dim 128"})
        EXPECT_EQ(heads_as_rows(problem_of(other)), problem_of(other)) << other;
}

// Shares have every block once, in order, none a block more than another; and a block is in the part that part_with() says.
TEST(AttentionPlans, SharesAreAllBlocksOnce) {
    Random random(4);
    for (int i = 0; i < 300; ++i) {
        const auto blocks = unsigned(random.whole(1, 3000)), parts = unsigned(random.whole(1, std::min<std::int64_t>(160, blocks)));
        unsigned next = 0, least = blocks, most = 0;
        for (unsigned part = 0; part < parts; ++part) {
            const BlockShare share = share_of(blocks, part, parts);
            EXPECT_EQ(share.begin, next);
            for (unsigned block = share.begin; block < share.end; ++block) ASSERT_EQ(part_with(block, blocks, parts), part);
            next = share.end;
            least = std::min(least, share.end - share.begin), most = std::max(most, share.end - share.begin);
        }
        EXPECT_EQ(next, blocks);
        EXPECT_GE(least, 1u);
        EXPECT_LE(most - least, 1u);
    }
}

// Of a cache the bytes are those of the lengths, whatever there is room for, and a kernel that shares blocks out is all there is.
TEST(AttentionPlans, CachesHaveLengths) {
    const AttentionProblem p = problem_of("--lengths 100,0,37 --kv 128 --heads 8 --kv-heads 2 --q 3 --dim 64 --page 16");
    EXPECT_TRUE(p.cached);
    EXPECT_EQ(p.batch, 3);
    EXPECT_EQ(p.pages, 3 * 8);
    // K and V: (100 + 0 + 37) keys of 2 heads, 64 elements of 2 bytes each.
    EXPECT_EQ(p.k_bytes() + p.v_bytes(), 2 * 137 * 2 * 64 * 2);
    // Both products of 3 queries, 8 heads and 137 keys.
    EXPECT_DOUBLE_EQ(p.flops(), 2.0 * 8 * 3 * 137 * 128);
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (const AttentionPlan& plan : std::get<AttentionPlans>(derive(machine, p, {.top = 4})).plans) {
        EXPECT_GT(plan.config.splits, 1);
        EXPECT_EQ(plan.config.tile_kv % 16, 0);
    }
    EXPECT_TRUE(std::holds_alternative<AttentionInfeasible>(derive(machine, p, {.splits = 1})));
    EXPECT_TRUE(std::holds_alternative<AttentionInfeasible>(derive(machine, problem_of("--lengths 100,9 --heads 8 --q 3 --dim 64 --page 48"), {.tile_kv = 64})));
}

// A cache is read by as many CTAs as its bytes need, all of them at once; of many queries nothing is split.
TEST(AttentionPlans, KeysAreSplitWhereTilesAreFew) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const auto first = [&](const std::string& text) { return std::get<AttentionPlans>(derive(machine, problem_of(text), {.top = 1})).plans.front(); };
    const AttentionPlan few = first("--heads 32 --kv-heads 8 --q 1 --kv 8192 --dim 128");
    EXPECT_GT(few.config.splits, 64);
    EXPECT_LE(few.config.splits, 132);
    EXPECT_LT(*few.prediction.time_us, 15);  // 79 in one piece; its bytes need 8
    EXPECT_EQ(first("--heads 32 --q 4096 --dim 128 --mask causal").config.splits, 1);
    EXPECT_TRUE(std::holds_alternative<AttentionInfeasible>(derive(machine, problem_of("--heads 8 --q 64 --kv 64 --dim 64"), {.tile_kv = 64, .splits = 9})));
}

// The CTA with most turns, and the one with most blocks, against counting them block by block.
TEST(AttentionPlans, TurnsAndBlocksOfASharesAreCounted) {
    Random random(8);
    for (int i = 0; i < 60; ++i) {
        AttentionProblem p;
        p.heads = p.kv_heads = random.whole(1, 5), p.queries = random.whole(1, 9), p.batch = random.whole(1, 20), p.dim = p.dim_v = 64;
        p.cached = true, p.keys = random.whole(1, 900);
        for (std::int64_t s = 0; s < p.batch; ++s) p.lengths.push_back(random.whole(0, p.keys));
        AttentionConfig c{.tile_q = 64, .tile_kv = 64, .splits = int(random.whole(2, 150))};
        std::vector<std::int64_t> tiles;  // of each block
        for (std::int64_t s = 0; s < p.batch; ++s)
            for (std::int64_t head = 0; head < p.heads; ++head)
                tiles.insert(tiles.end(), std::size_t(std::max<std::int64_t>(1, (p.lengths[std::size_t(s)] + 63) / 64)),
                             s * p.heads + head);
        const auto parts = unsigned(std::min<std::size_t>(tiles.size(), std::size_t(c.splits)));
        std::int64_t turns = 0, blocks = 0;
        for (unsigned part = 0; part < parts; ++part) {
            const BlockShare share = share_of(unsigned(tiles.size()), part, parts);
            turns = std::max(turns, tiles[share.end - 1] - tiles[share.begin] + 1);
            blocks = std::max(blocks, std::int64_t(share.end - share.begin));
        }
        EXPECT_EQ(most_turns(p, c), turns) << lengths_text(p);
        EXPECT_EQ(longest_share(p, c), blocks) << lengths_text(p);
        // Pieces of a tile's own: up to four blocks each, 256 keys, but for the last.
        c.batch_invariant = true;
        std::vector<std::int64_t> pieces;
        for (std::size_t first = 0; first < tiles.size();) {
            std::size_t end = first;
            while (end < tiles.size() && tiles[end] == tiles[first]) ++end;
            for (; first < end; first = std::min(end, first + 4)) pieces.push_back(std::int64_t(std::min(end - first, std::size_t(4))));
        }
        const auto of_own = unsigned(std::min<std::size_t>(pieces.size(), std::size_t(c.splits)));
        blocks = 0;
        for (unsigned part = 0; part < of_own; ++part) {
            const BlockShare share = share_of(unsigned(pieces.size()), part, of_own);
            blocks = std::max(blocks, std::accumulate(pieces.begin() + share.begin, pieces.begin() + share.end, std::int64_t{0}));
        }
        EXPECT_EQ(longest_share(p, c), blocks) << lengths_text(p);
    }
}

// Many tiles of few blocks: a tile's chain binds, and two CTAs an SM have two. One long tile a CTA has nothing to gain.
TEST(AttentionPlans, ShortTilesRunTwoCtasAnSm) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const auto planned = [&](const std::string& text, std::optional<int> ctas) {
        return std::get<AttentionPlans>(derive(machine, problem_of(text), {.ctas_per_sm = ctas, .top = 1})).plans.front();
    };
    const std::string shorts = "--batch 300 --heads 16 --q 1 --kv 100 --dim 64";
    const AttentionPlan two = planned(shorts, {});
    EXPECT_EQ(two.config.ctas_per_sm, 2);
    EXPECT_EQ(two.config.splits, 264);
    EXPECT_LT(*two.prediction.time_us, 0.7 * *planned(shorts, 1).prediction.time_us);
    EXPECT_EQ(planned("--heads 32 --kv-heads 8 --q 1 --kv 8192 --dim 128", {}).config.ctas_per_sm, 1);
    // 228 KiB less 1 KiB of each CTA: 113 KiB, of which two tiles' Q are 16 KiB, and a stage of 64 keys of 64 elements 16 KiB.
    const AttentionConfig c{.tile_q = 64, .tile_kv = 64, .stages = 2, .schedule = Schedule::cooperative, .splits = 264, .ctas_per_sm = 2};
    EXPECT_EQ(stages_max(h200(), problem_of(shorts), c), 6);
    EXPECT_TRUE(std::holds_alternative<AttentionInfeasible>(derive(machine, problem_of(shorts), {.splits = 1, .ctas_per_sm = 2})));
}

// Pieces have every block once, none but the last fewer than another, and are no more than a warp adds up.
TEST(AttentionPlans, PiecesAreATilesBlocksOnce) {
    Random random(6);
    for (int i = 0; i < 300; ++i) {
        const int blocks = int(random.whole(1, i % 2 ? 40 : 100000)), least = int(random.whole(1, 9)), pieces = pieces_of(blocks, least);
        EXPECT_LE(pieces, 128);
        // Room for more keys than there are is room for their pieces.
        EXPECT_LE(pieces, most_pieces_up_to(blocks + int(random.whole(0, 300)), least));
        int next = 5;
        for (int piece = 0; piece < pieces; ++piece) {
            const KeyBlocks of = piece_of({5, 5 + blocks}, piece, least);
            EXPECT_EQ(of.first, next);
            EXPECT_GE(of.count(), piece + 1 < pieces ? least : 1);
            next = of.end;
        }
        EXPECT_EQ(next, 5 + blocks);
    }
    EXPECT_EQ(pieces_of(128 * 4, 4), 128);
    EXPECT_EQ(blocks_of_piece(128 * 4 + 1, 4), 5);  // 103 pieces
    EXPECT_EQ(most_pieces_up_to(128 * 4 + 1, 4), 128);
}

// Whatever the batch, its lengths and their room: tiles and pieces are the same. What that costs is said, and it is of few queries alone.
TEST(AttentionPlans, BatchInvariantCutsFollowFromTheSequence) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const auto plans = [&](const std::string& text) {
        return std::get<AttentionPlans>(derive(machine, problem_of(text), {.batch_invariant = true, .top = 1}));
    };
    for (const std::string form :
         {"--heads 32 --kv-heads 8 --q 1 --dim 128", "--heads 8 --kv-heads 8 --q 3 --dim 256 --mask causal --page 16",
          "--heads 64 --kv-heads 1 --q 16 --dim 64 --page 48"}) {
        const AttentionPlans alone = plans("--lengths 700 " + form);
        const AttentionPlan& plan = alone.plans.front();
        EXPECT_TRUE(plan.config.batch_invariant);
        EXPECT_GT(plan.config.splits, 1);
        EXPECT_GE(kernel_config(plan.problem, plan.config).piece, 1);
        ASSERT_EQ(alone.notes.size(), 1u);
        EXPECT_THAT(alone.notes.front(), HasSubstr("without it"));
        for (const char* lengths : {"--lengths 0,700", "--lengths 700,9000,3 --kv 100000", "--lengths 64x[1..32000]"}) {
            const AttentionConfig other = plans(lengths + (" " + form)).plans.front().config;
            EXPECT_EQ(other.tile_q, plan.config.tile_q) << form << lengths;
            EXPECT_EQ(other.tile_kv, plan.config.tile_kv) << form << lengths;
        }
    }
    for (const char* many : {"--heads 8 --q 2048 --dim 128 --mask causal", "--lengths 128,512 --heads 8 --dim 128"}) {
        const auto outcome = derive(machine, problem_of(many), {.batch_invariant = true});
        ASSERT_TRUE(std::holds_alternative<AttentionInfeasible>(outcome)) << many;
        EXPECT_THAT(std::get<AttentionInfeasible>(outcome).message, HasSubstr("leave batch_invariant off"));
    }
    // One block in all is still a kernel that shares pieces out.
    EXPECT_GT(plans("--heads 1 --q 1 --kv 5 --dim 64").plans.front().config.splits, 1);
}

TEST(AttentionPlans, MoreSharedMemoryNeverGivesFewerStages) {
    const AttentionProblem p = problem_of("--heads 8 --q 512 --dim 128");
    double before = 0;
    for (int kib = 100; kib <= 400; kib += 20) {
        Machine machine = machine_by_id("h200-sxm");
        set_number(machine, "shared.per_cta=" + std::to_string(kib) + "KiB");
        std::vector<std::string> unknown;
        const double stages = stages_max(attention_hardware(machine, Type::bf16, unknown), p, {.tile_q = 128, .tile_kv = 64});
        EXPECT_GE(stages, before);
        before = stages;
    }
    EXPECT_GT(before, 5);
}

TEST(AttentionPlans, OtherMachinesArePlannedAndNotBuildable) {
    for (const char* id : {"a100-80-sxm", "b200", "rtx4090"}) {
        const AttentionPlans plans = plans_of("--heads 8 --q 2048 --dim 128", id);
        EXPECT_FALSE(plans.plans.front().buildable) << id;
        EXPECT_THAT(plans.plans.front().why_not, HasSubstr("sm_90")) << id;
    }
    for (const char* id : {"h100-sxm", "h200-sxm", "h20"}) EXPECT_TRUE(plans_of("--heads 8 --q 2048 --dim 128", id).plans.front().buildable);
    // H20 has a sixth of the matrix rate and all of the exponentials: its ceiling is M38's 1.125 at dim 128.
    EXPECT_NEAR(*plans_of("--heads 8 --q 2048 --dim 128", "h20").plans.front().prediction.overlap_ceiling, 1.08, 0.06);
}

TEST(AttentionPlans, WhatIsFixedIsKeptAndWhatCannotBeIsOneReason) {
    const AttentionPlans plans =
        plans_of("--heads 8 --q 2048 --dim 64", "h200-sxm", {.tile_q = 192, .tile_kv = 128, .schedule = Schedule::cooperative});
    for (const AttentionPlan& plan : plans.plans) {
        EXPECT_EQ(plan.config.tile_q, 192);
        EXPECT_EQ(plan.config.tile_kv, 128);
        EXPECT_EQ(plan.config.schedule, Schedule::cooperative);
    }
    const auto none = derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), problem_of("--heads 8 --q 64 --dim 256"),
                             {.tile_q = 192, .tile_kv = 256});
    ASSERT_TRUE(std::holds_alternative<AttentionInfeasible>(none));
    EXPECT_EQ(std::get<AttentionInfeasible>(none).reason, Reason::registers);
    EXPECT_EQ(std::get<AttentionInfeasible>(none).message.find('\n'), std::string::npos);
}

// For a terminal of any width: every line fits, and the ceiling of M38 stands there.
TEST(AttentionPlans, TheTextSaysTheCeilingAndKeepsToItsWidth) {
    const Operation& operation = attention_operation();
    const Problem problem = operation.problem(given_of(operation, "--heads 8 --q 2048 --dim 128 --mask causal"));
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const PlanSet set = operation.derive(machine, problem, operation.request(Given(), {.top = 4}));
    const auto explanations = explain(*machine, set, {Depth::all});
    for (const int width : {60, 80, 120}) {
        const std::string text = plan_text(set, {Depth::all}, explanations, {.color = false, .utf8 = false, .width = width});
        EXPECT_THAT(text, HasSubstr("overlap_ceiling = 1.500"));
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = text.find('\n', at);
            ASSERT_NE(end, text.npos);
            EXPECT_LE(end - at, std::size_t(width)) << text.substr(at, end - at);
            at = end + 1;
        }
    }
}

// The time that an unknown number leaves open is open; the plan stands.
TEST(AttentionPlans, AnUnknownRateLeavesNoTime) {
    Machine machine = machine_by_id("h200-sxm");
    set_number(machine, "rate.mufu=unknown");
    const auto outcome = derive(std::make_shared<const Machine>(machine), problem_of("--heads 8 --q 2048 --dim 128"));
    const auto& plans = std::get<AttentionPlans>(outcome);
    EXPECT_FALSE(plans.plans.front().prediction.time_us);
    EXPECT_THAT(plans.unknown, testing::Contains("rate.mufu"));
}

}  // namespace
}  // namespace rooftile
