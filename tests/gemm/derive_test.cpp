#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/variants.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {
namespace {


Plans plans(const Machine& machine, const GemmProblem& problem, const GemmRequest& request = {}) {
    auto result = derive(machine, problem, request);
    if (const auto* why = std::get_if<Infeasible>(&result)) throw std::runtime_error(why->message);
    return std::get<Plans>(std::move(result));
}

Infeasible refusal(const Machine& machine, const GemmProblem& problem, const GemmRequest& request = {}) {
    auto result = derive(machine, problem, request);
    if (!std::holds_alternative<Infeasible>(result)) throw std::runtime_error("a plan was found");
    return std::get<Infeasible>(std::move(result));
}

const Step& step(const GemmPlan& plan, const std::string& quantity) {
    for (const Step& s : plan.derivation)
        if (s.quantity == quantity) return s;
    throw std::runtime_error("no step " + quantity);
}

GemmRequest tile(int m, int n, int k) {
    GemmRequest r;
    r.tile_m = m;
    r.tile_n = n;
    r.tile_k = k;
    return r;
}

TEST(Derive, TheWorkedExample) {  // M7
    const Plans result =
        plans(machine_by_id("worked-example"), gemm_problem(4096, 4096, 4096), tile(128, 128, 32));
    const GemmPlan& plan = result.plans.front();
    EXPECT_EQ(*step(plan, "tile_flops").value, 1048576);
    EXPECT_EQ(*step(plan, "stage_bytes").value, 16384);
    EXPECT_EQ(*plan.prediction.arithmetic_intensity, 64);
    EXPECT_EQ(*step(plan, "intensity_critical").value, 50);
    EXPECT_EQ(*plan.prediction.tile_compute_cycles, 2098);  // ceil(1048576 / 500)
    EXPECT_EQ(*plan.prediction.stages_min, 2);              // ceil(500 / 2097.152) + 1
    EXPECT_EQ(*plan.resources.accumulator_registers, 64);   // 128 * 128 / 256
    EXPECT_EQ(*step(plan, "registers_per_thread").value, 104);
    // 256 KiB / 16 KiB = 16 blocks at one stage, 8 at two; 65536 / (104 * 256) = 2 by registers
    EXPECT_EQ(step(plan, "ctas_by_shared").limit,
              "16 blocks an SM at one stage, 8 at two; registers allow 2");
    EXPECT_NE(step(plan, "stages_for_full_rate").limit.find("ask for 3 stages"), std::string::npos);
    // The SM count is not given.
    EXPECT_FALSE(plan.prediction.time_us);
    EXPECT_FALSE(plan.prediction.waves);
    EXPECT_FALSE(plan.prediction.stages_for_full_rate);
    EXPECT_NE(std::find(result.unknown.begin(), result.unknown.end(), "sm.count"), result.unknown.end());
    EXPECT_FALSE(plan.buildable);
}

TEST(Derive, TheA100Exercise) {  // M36
    const Plans result =
        plans(machine_by_id("a100-exercise"), gemm_problem(4096, 4096, 4096, Type::fp16), tile(256, 128, 16));
    const GemmPlan& plan = result.plans.front();
    EXPECT_EQ(*plan.prediction.tile_compute_cycles, 512);      // 2 * 256 * 128 * 16 / 2048
    EXPECT_EQ(*step(plan, "load_l2_isolated").value, 459);     // 200 + 12288 / 47.41 = 459.2
    EXPECT_EQ(*step(plan, "load_dram_isolated").value, 1328);  // 290 + 12288 / 11.84 = 1327.8
    EXPECT_NE(step(plan, "load_dram_isolated").limit.find("count it twice"), std::string::npos);
    EXPECT_EQ(*step(plan, "steady_step_all_miss").value, 1038);
    EXPECT_NE(step(plan, "steady_step_all_miss").limit.find("compute 512, L2 259, DRAM 1038"),
              std::string::npos);
}

TEST(Derive, TheHopperTileOfTheMethod) {  // M12-M14
    GemmRequest request = tile(128, 256, 64);
    request.consumer_warpgroups = 2;
    const Machine h100 = machine_by_id("h100-sxm");
    const Plans result = plans(h100, gemm_problem(4096, 14336, 4096), request);
    for (const GemmPlan& plan : result.plans) {
        EXPECT_EQ(*plan.resources.accumulator_registers, 128);
        EXPECT_EQ(*plan.resources.stage_bytes, 49152);
        EXPECT_EQ(*plan.prediction.tile_compute_cycles, 1024);
        EXPECT_EQ(*plan.resources.stages_max, 4);
    }
    request.stages = 5;
    const Infeasible why = refusal(h100, gemm_problem(4096, 14336, 4096), request);
    EXPECT_EQ(why.reason, Reason::shared);
    EXPECT_NE(why.message.find("5 x 49152 = 245760 B"), std::string::npos) << why.message;
    EXPECT_NE(why.message.find("4 fit"), std::string::npos) << why.message;
}

TEST(Derive, OneChangedNumberIsFollowedToTheInteger) {
    Machine h100 = machine_by_id("h100-sxm");
    set_number(h100, "rate.wgmma.bf16.fp32=1000 FLOP/clk/SM");
    GemmRequest request = tile(128, 256, 64);
    const GemmPlan slow = plans(h100, gemm_problem(4096, 4096, 4096), request).plans.front();
    EXPECT_EQ(*slow.prediction.tile_compute_cycles, 4195);  // ceil(4194304 / 1000)

    h100 = machine_by_id("h100-sxm");
    set_number(h100, "shared.per_cta=182000 B");
    // (182000 - 33792) / 49168 = 3.01
    EXPECT_EQ(*plans(h100, gemm_problem(4096, 4096, 4096), request).plans.front().resources.stages_max, 3);

    h100 = machine_by_id("h100-sxm");
    set_number(h100, "dram.latency=2049 clk");
    EXPECT_EQ(*plans(h100, gemm_problem(4096, 4096, 4096), request).plans.front().prediction.stages_min,
              4);  // ceil(2.001) + 1
}

TEST(Derive, EightPlansAndEveryRejectionCounted) {
    const Plans result = plans(machine_by_id("h100-sxm"), gemm_problem(4096, 14336, 4096));
    ASSERT_EQ(result.plans.size(), 8u);
    EXPECT_GE(result.rejected.count(), 500);
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
        const GemmPlan& plan = result.plans[i];
        EXPECT_EQ(plan.rank, int(i) + 1);
        EXPECT_GE(plan.derivation.size(), 15u);
        EXPECT_TRUE(plan.buildable) << plan.why_not;
        if (i > 0) { EXPECT_GE(*plan.prediction.time_us, *result.plans[i - 1].prediction.time_us); }
        for (const Step& s : plan.derivation) {
            EXPECT_FALSE(s.formula.empty()) << s.quantity;
            EXPECT_FALSE(s.inputs.empty()) << s.quantity;
            EXPECT_FALSE(s.limit.empty()) << s.quantity;
            for (const Input& input : s.inputs)
                EXPECT_FALSE(input.source.empty()) << s.quantity << ' ' << input.name;
        }
    }
    // Candidates are counted once each: kept + rejected is the space, whatever `top` is.
    GemmRequest few;
    few.top = 3;
    const Plans less = plans(machine_by_id("h100-sxm"), gemm_problem(4096, 14336, 4096), few);
    EXPECT_EQ(less.rejected.count() + 3, result.rejected.count() + 8);
}

// What TMA cannot take as it lies is packed: where its lines begin decides.
TEST(Derive, OperandsWhoseLinesLieOffSixteenBytesArePacked) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmRequest by_sm90;  // so few rows sm80_few_gemm reads in place
    by_sm90.kernel = find_gemm_kernel("sm90_gemm");
    const auto packed = [&](const GemmProblem& problem) {
        const GemmConfig c = plans(h100, problem, by_sm90).plans.front().config;
        return std::pair(c.pack_a, c.pack_b);
    };
    EXPECT_EQ(packed(gemm_problem(64, 64, 7)), std::pair(true, true));
    // k is not contiguous when A is m-major and B n-major.
    EXPECT_EQ(packed(gemm_problem(64, 64, 7, Type::bf16, Major::mn, Major::mn)), std::pair(false, false));
    EXPECT_EQ(packed(gemm_problem(63, 64, 7, Type::bf16, Major::mn, Major::mn)), std::pair(true, false));
    EXPECT_EQ(packed(gemm_problem(63, 64, 7, Type::bf16, Major::mn, Major::k)), std::pair(true, true));
    GemmProblem padded = gemm_problem(64, 64, 64);
    padded.lda = 68;
    EXPECT_EQ(packed(padded), std::pair(true, false));
    // Lines may be shorter than what lies between them: TMA reads zeros beyond their end.
    padded.k = 63, padded.lda = 64;
    EXPECT_EQ(packed(padded), std::pair(false, false));
    padded.a_offset = 8;
    EXPECT_EQ(packed(padded), std::pair(false, false));
    padded.a_offset = 9;
    EXPECT_EQ(packed(padded), std::pair(true, false));
}

TEST(Derive, PackingSaysWhatItCosts) {
    const Machine h100 = machine_by_id("h100-sxm");
    // A's 100 lines of 1000 elements, 1001 apart, lie 1024 apart in the workspace.
    GemmProblem problem = gemm_problem(100, 512, 1000);
    problem.lda = 1001;
    GemmRequest one_piece;
    one_piece.grid_split_k = 1;
    const GemmPlan packed = plans(h100, problem, one_piece).plans.front();
    EXPECT_EQ(packed.resources.workspace_bytes, 100 * 1024 * 2);
    EXPECT_EQ(step(packed, "pack_a").value, 1);
    EXPECT_NE(step(packed, "pack_a").limit.find("TMA cannot take it as it is"), std::string::npos);
    EXPECT_EQ(step(packed, "pack_b").value, 0);
    GemmProblem on_line = problem;  // as the packed lines lie
    on_line.lda = 1024;
    const GemmPlan plain = plans(h100, on_line, one_piece).plans.front();
    EXPECT_EQ(plain.resources.workspace_bytes, 0);
    // 100 * 1000 elements of 2 B are read and written: 400000 B by DRAM's copies, a launch, and one load's latency.
    const double us = 400000 / h100.number<Bandwidth>("dram.sustained_copy")->value * 1e6
                      + h100.number<Seconds>("launch.gap_stream")->value * 1e6;
    ASSERT_TRUE(packed.prediction.time_us && plain.prediction.time_us);
    const double more = *packed.prediction.time_us - *plain.prediction.time_us;
    EXPECT_GT(more, us);
    EXPECT_LT(more, us + 1);
    EXPECT_EQ(*packed.prediction.dram_bytes - *plain.prediction.dram_bytes, 400000);
    EXPECT_EQ(*packed.prediction.l2_bytes - *plain.prediction.l2_bytes, 400000);
    const Plan any = any_plan(packed);
    ASSERT_EQ(any.launches.size(), 2u);
    EXPECT_EQ(any.launches[0].kernel, "pack_operands");
    EXPECT_EQ(any.launches[1].kernel, "sm90_gemm");
    EXPECT_EQ(any.launches[1].workspace_bytes, 100 * 1024 * 2);
    EXPECT_EQ(any_plan(plain).launches.size(), 1u);
}

TEST(Derive, PackingCanBeAskedForAndRefused) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmRequest request;
    request.pack_b = true;
    const GemmConfig asked = plans(h100, gemm_problem(64, 64, 64), request).plans.front().config;
    EXPECT_FALSE(asked.pack_a);
    EXPECT_TRUE(asked.pack_b);
    EXPECT_EQ(fixed_to(asked).pack_b, true);
    request.pack_b = false;
    request.kernel = find_gemm_kernel("sm90_gemm");
    const auto outcome = derive(h100, gemm_problem(64, 64, 7), request);
    const auto* why = std::get_if<Infeasible>(&outcome);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->reason, Reason::alignment);
    EXPECT_NE(why->message.find("ldb = 7, b_offset = 0 with pack_b off"), std::string::npos) << why->message;
    EXPECT_GT(why->rejected.count(), 500);
    request.pack_b = true;
    request.kernel = find_gemm_kernel("sm80_gemm");
    EXPECT_TRUE(std::holds_alternative<Infeasible>(derive(h100, gemm_problem(64, 64, 7), request)));
}

TEST(Derive, OddNGoesByPredicatedStores) {
    const Plans result = plans(machine_by_id("h100-sxm"), gemm_problem(256, 1001, 512));
    EXPECT_FALSE(kernel_config(result.plans.front()).tma_store);
    GemmProblem padded = gemm_problem(256, 1001, 512);
    padded.ldc = 1008;  // TMA could address it, and would write columns 1001 ... 1007 too
    EXPECT_FALSE(kernel_config(plans(machine_by_id("h100-sxm"), padded).plans.front()).tma_store);
    EXPECT_TRUE(kernel_config(plans(machine_by_id("h100-sxm"), gemm_problem(256, 1000, 512)).plans.front())
                    .tma_store);
    GemmProblem off = gemm_problem(256, 1000, 512);
    off.c_offset = 4;
    EXPECT_FALSE(kernel_config(plans(machine_by_id("h100-sxm"), off).plans.front()).tma_store);
}

TEST(Derive, OlderAndNewerGpus) {
    EXPECT_EQ(refusal(machine_by_id("v100-sxm2"), gemm_problem(4096, 4096, 4096)).reason,
              Reason::instruction);
    const Plans v100 = plans(machine_by_id("v100-sxm2"), gemm_problem(4096, 4096, 4096, Type::fp16));
    EXPECT_FALSE(v100.plans.front().buildable);
    EXPECT_LE(v100.plans.front().config.stages, 2);
    ASSERT_FALSE(v100.notes.empty());
    EXPECT_NE(v100.notes[0].find("cp.async is infeasible"), std::string::npos);

    const Plans a100 = plans(machine_by_id("a100-80-sxm"), gemm_problem(4096, 4096, 4096));
    EXPECT_EQ(a100.plans.front().config.kernel->name(), "sm80_gemm");
    EXPECT_TRUE(a100.plans.front().buildable);
    EXPECT_TRUE(a100.plans.front().why_not.empty());

    const Plans b200 = plans(machine_by_id("b200"), gemm_problem(4096, 4096, 4096));
    ASSERT_FALSE(b200.notes.empty());
    // 148 SMs x 8192 FLOP x 1.855 GHz are the published 2250 TFLOP/s; mma.sync has 2048 FLOP, a quarter.
    EXPECT_EQ(b200.notes[0], "tcgen05 is not modelled yet: planned at the rate of mma.sync, 25.0 % of the tensor peak: "
                             "2048 of tcgen05's 8192 FLOP/clk/SM");
    EXPECT_NEAR(b200.tensor_peak.value() / 2250e12, 1, 0.02);
    EXPECT_FALSE(a100.tensor_peak);
    GemmRequest sm80;
    sm80.kernel = find_gemm_kernel("sm80_gemm");
    const Plans hopper = std::get<Plans>(derive(machine_by_id("h200-sxm"), gemm_problem(4096, 4096, 4096), sm80));
    EXPECT_NE(hopper.notes[0].find("mma.sync reaches 62.9 % of the tensor peak"), std::string::npos) << hopper.notes[0];
    EXPECT_NEAR(hopper.tensor_peak.value() / 989.4e12, 1, 0.02);
    for (const std::string& id : machine_ids())
        EXPECT_NO_THROW(plans(machine_by_id(id), gemm_problem(1000, 1000, 1000, Type::fp16))) << id;
}

TEST(Derive, FixedValuesAreKept) {
    GemmRequest request;
    request.schedule = Schedule::pingpong;
    request.cluster_m = 1;
    request.cluster_n = 2;
    request.order = Order::serpentine;
    request.group = 5;
    request.stages = 3;
    for (const GemmPlan& plan :
         plans(machine_by_id("h100-sxm"), gemm_problem(4096, 4096, 4096), request).plans) {
        EXPECT_EQ(plan.config.schedule, Schedule::pingpong);
        EXPECT_EQ(plan.config.cluster_n, 2);
        EXPECT_EQ(plan.config.order, Order::serpentine);
        EXPECT_EQ(plan.config.group, 5);
        EXPECT_EQ(plan.config.stages, 3);
    }
    request = {};
    request.order = Order::hilbert;
    for (const bool simulate : {true, false}) {
        request.simulate = simulate;
        const GemmPlan curve =
            plans(machine_by_id("h100-sxm"), gemm_problem(4096, 4096, 4096), request).plans.front();
        EXPECT_EQ(curve.config.order, Order::hilbert);
        EXPECT_TRUE(curve.buildable);
        EXPECT_EQ(curve.prediction.time_us.has_value(), simulate) << "its traffic has no closed form";
    }
}

// 128x256 on two warpgroups: 128 sums, 64 registers of the last tile, 32 others, of 232.
TEST(Derive, AnEpilogueIsOverlappedWhereRegistersAllow) {
    const Machine h100 = machine_by_id("h100-sxm");
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256, request.consumer_warpgroups = 2;
    request.schedule = Schedule::cooperative;
    request.split_k = 1;
    const GemmPlan on = plans(h100, problem, request).plans.front();
    EXPECT_TRUE(on.config.overlapped_epilogue);
    EXPECT_TRUE(kernel_config(on).overlapped_epilogue);
    EXPECT_EQ(step(on, "overlapped_epilogue").value, 1);
    EXPECT_NE(step(on, "overlapped_epilogue").limit.find("128 + 64 + 32 <= 2"), std::string::npos);

    request.overlapped_epilogue = false;
    const GemmPlan off = plans(h100, problem, request).plans.front();
    EXPECT_FALSE(off.config.overlapped_epilogue);
    EXPECT_FALSE(kernel_config(off).overlapped_epilogue);
    EXPECT_NE(step(off, "overlapped_epilogue").limit.find("it would fit"), std::string::npos);

    request.overlapped_epilogue = true;
    request.tile_m = 256, request.tile_n = 192;  // 192 sums and 96 kept
    EXPECT_EQ(refusal(h100, problem, request).reason, Reason::registers);
    request.tile_m = 64, request.tile_n = 256;
    request.schedule = Schedule::pingpong;
    EXPECT_NE(refusal(h100, problem, request).message.find("pingpong"), std::string::npos);
}

// 257 rows are two tiles of 136 or 144 on wgmma's n; on its m five of 64 or three of 128, all but full or not.
TEST(Derive, AAndBAreSwappedWhereThatFitsTheRows) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem problem = gemm_problem(257, 3840, 7424);
    const GemmPlan swapped = plans(h200, problem).plans.front();
    EXPECT_TRUE(swapped.config.swap_ab);
    EXPECT_LE(2 * swapped.config.tile_m - 257, 31);
    EXPECT_EQ(swapped.config.tile_n % 64, 0);
    EXPECT_EQ(swapped.config.epilogue_tile_n, 64);
    EXPECT_TRUE(kernel_config(swapped).swap_ab);
    EXPECT_EQ(step(swapped, "swap_ab").value, 1);

    GemmRequest request;
    request.swap_ab = false;
    const GemmPlan upright = plans(h200, problem, request).plans.front();
    EXPECT_FALSE(upright.config.swap_ab);
    EXPECT_GT(*upright.prediction.time_us, 1.05 * *swapped.prediction.time_us);
    EXPECT_EQ(step(upright, "swap_ab").formula, "fixed by the request");
    EXPECT_NE(step(upright, "swap_ab").limit.find("the other way the best plan takes"), std::string::npos);

    // What is the same either way is not swapped.
    EXPECT_FALSE(plans(h200, gemm_problem(4096, 4096, 4096)).plans.front().config.swap_ab);

    request.swap_ab = true;
    request.tile_m = 130;
    EXPECT_EQ(refusal(h200, problem, request).message.find("multiple of 8") == std::string::npos, false);
    request.tile_m = 136, request.tile_n = 96;
    EXPECT_NE(refusal(h200, problem, request).message.find("64 columns a wgmma"), std::string::npos);
    request.tile_n = 128, request.split_k = 2;  // 68 rows each
    EXPECT_NE(refusal(h200, problem, request).message.find("its share of the rows"), std::string::npos);
    request.split_k = 1, request.cluster_m = 1, request.cluster_n = 2;
    EXPECT_NE(refusal(h200, problem, request).message.find("loads its slice"), std::string::npos);
    request.cluster_n = 1, request.epilogue_tile_n = 32;
    EXPECT_NE(refusal(h200, problem, request).message.find("the columns of one wgmma"), std::string::npos);
    request = {};
    request.swap_ab = true;
    EXPECT_NE(refusal(machine_by_id("a100-80-sxm"), problem, request).message.find("swap_ab"),
              std::string::npos);
}

TEST(Derive, RowsThatBeginAmidASectorAreNamed) {
    const Machine h200 = machine_by_id("h200-sxm");
    GemmProblem problem = gemm_problem(500, 900, 1000);  // 2000 B: 62.5 sectors
    const std::vector<std::string> said = plans(h200, problem).notes;
    ASSERT_EQ(said.size(), 2u);
    EXPECT_TRUE(said[0].starts_with("lda = 1000 is no multiple of 16 elements")) << said[0];
    EXPECT_TRUE(said[1].ends_with("pad it to 1008")) << said[1];
    EXPECT_EQ(plans(h200, gemm_problem(64, 900, 1000)).notes.size(), 1u);  // A is read once
    problem.lda = problem.ldb = 1008;
    EXPECT_TRUE(plans(h200, problem).notes.empty());
}

// An SM of the H100 has 232448 B for a CTA. Three stages of 256x208 are 178176 B, their barriers 48; epilogue tiles of
// 32 x 208 for two warpgroups, two in flight, 53248: they fit. Five of 128x208 are 215040 B: beside them
// only epilogue tiles of 16 columns do, 8192 B.
TEST(Derive, EpilogueTilesAreWideWhereTheyTakeNoStage) {
    const Machine h100 = machine_by_id("h100-sxm");
    const GemmProblem problem = gemm_problem(8192, 8192, 8192);
    GemmRequest request;
    request.tile_m = 256, request.tile_n = 208, request.schedule = Schedule::cooperative;
    request.split_k = 1;
    const GemmPlan wide = plans(h100, problem, request).plans.front();
    EXPECT_EQ(wide.config.epilogue_tile_n, 208);
    EXPECT_EQ(wide.config.stages, 3);
    EXPECT_EQ(*wide.resources.shared_bytes, 178176 + 48 + 53248);
    EXPECT_EQ(kernel_config(wide).epilogue_columns(), 208);
    EXPECT_EQ(step(wide, "epilogue_tile_n").value, 208);
    request.epilogue_tile_n = 16;
    const GemmPlan narrow = plans(h100, problem, request).plans.front();
    EXPECT_EQ(narrow.config.epilogue_tile_n, 16);
    EXPECT_GT(*narrow.prediction.time_us, *wide.prediction.time_us);
    request.epilogue_tile_n = 104;  // six and a half sectors
    EXPECT_EQ(refusal(h100, problem, request).reason, Reason::instruction);
    request.epilogue_tile_n.reset();
    request.tile_m = 128, request.schedule = Schedule::pingpong;
    const GemmPlan deep = plans(h100, problem, request).plans.front();
    // Fewer stores of one tile, or one stage more: whichever is predicted faster.
    for (const int columns : {16, 208}) {
        GemmRequest fixed = request;
        fixed.epilogue_tile_n = columns;
        EXPECT_GE(*plans(h100, problem, fixed).plans.front().prediction.time_us, *deep.prediction.time_us);
    }
    // What cannot leave by TMA has no epilogue tiles.
    request.schedule = Schedule::cooperative, request.consumer_warpgroups = 2;
    EXPECT_EQ(plans(h100, gemm_problem(512, 511, 512)).plans.front().config.epilogue_tile_n, 0);
    GemmRequest wide_only;
    wide_only.epilogue_tile_n = 64;
    EXPECT_EQ(refusal(h100, gemm_problem(512, 511, 512), wide_only).reason, Reason::alignment);
}

TEST(Derive, L2DropsFirstWhatTheRequestSaysAndElseNothing) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256;
    request.cluster_m = request.cluster_n = 1;
    // 3 x 32 MiB exceed 50 MiB; 32 rows and 16 columns of tiles. Then 16 rows: one row of tiles reads B once.
    for (std::int64_t m : {4096, 16}) {
        const GemmPlan plan = plans(h100, gemm_problem(m, 4096, 4096), request).plans.front();
        EXPECT_EQ(plan.config.evict_first, (EvictFirst{})) << m;
        EXPECT_EQ(step(plan, "evict_first").value, 0);
        EXPECT_NE(step(plan, "evict_first").formula.find("docs/facts.md 23"), std::string::npos);
        EXPECT_FALSE(kernel_config(plan).load_policy);
        EXPECT_FALSE(kernel_config(plan).store_policy);
    }
    request.evict_first = EvictFirst{false, true, true};
    const GemmPlan both = plans(h100, gemm_problem(4096, 4096, 4096), request).plans.front();
    EXPECT_EQ(both.config.evict_first, (EvictFirst{.b = true, .c = true}));
    EXPECT_EQ(step(both, "evict_first").value, 2);
    EXPECT_EQ(step(both, "evict_first").formula, "fixed by the request");
    EXPECT_TRUE(kernel_config(both).load_policy);
    EXPECT_TRUE(kernel_config(both).store_policy);

    // Predicated stores take no hint, and the plan says so.
    const GemmPlan odd = plans(h100, gemm_problem(4096, 4099, 4096), request).plans.front();
    EXPECT_EQ(odd.config.evict_first, (EvictFirst{.b = true}));
    EXPECT_FALSE(kernel_config(odd).store_policy);
    EXPECT_NE(step(odd, "evict_first").limit.find("stores without TMA"), std::string::npos);

    request.evict_first = EvictFirst{};
    const GemmPlan none = plans(h100, gemm_problem(4096, 4096, 4096), request).plans.front();
    EXPECT_EQ(none.config.evict_first, (EvictFirst{}));
    EXPECT_EQ(step(none, "evict_first").formula, "fixed by the request");
}

TEST(Derive, ProgrammaticLaunchIsAnOption) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmRequest request;
    EXPECT_TRUE(plans(h100, gemm_problem(512, 512, 512), request).plans.front().config.programmatic_launch);
    request.programmatic_launch = false;
    const GemmPlan plan = plans(h100, gemm_problem(512, 512, 512), request).plans.front();
    EXPECT_FALSE(plan.config.programmatic_launch);
    EXPECT_EQ(step(plan, "programmatic_launch").formula, "fixed by the request");
}

Machine changed(const char* id, std::initializer_list<const char*> settings) {
    Machine machine = machine_by_id(id);
    for (const char* setting : settings) set_number(machine, setting);
    return machine;
}

// Without a power limit, which would leave a longer launch a higher clock, the launch is all that differs.
TEST(Derive, APlainLaunchTakesWhatAProgrammaticOneSaves) {
    const Machine h200 = changed("h200-sxm", {"launch.programmatic_saving=0.75 us", "power.sustained=unknown"});
    const GemmProblem problem = gemm_problem(16, 4096, 4096);
    GemmRequest request;
    const GemmPlan on = plans(h200, problem, request).plans.front();
    request.programmatic_launch = false;
    const GemmPlan off = plans(h200, problem, request).plans.front();
    EXPECT_EQ(off.config.tile_n, on.config.tile_n);
    EXPECT_NEAR(*off.prediction.time_us - *on.prediction.time_us, 0.75, 1e-6);
    EXPECT_EQ(step(off, "time_us").inputs.back().name, "launch.programmatic_saving");
    // A finished plan is timed as it is launched.
    GemmPlan relaunched = on;
    relaunched.config.programmatic_launch = false;
    EXPECT_NEAR(1e6 * evaluate_plan(h200, relaunched)->time.seconds, *off.prediction.time_us, 1e-6);
    EXPECT_NEAR(1e6 * evaluate_plan(h200, on)->time.seconds, *on.prediction.time_us, 1e-6);

    const Plans unknown = plans(changed("h200-sxm", {"launch.programmatic_saving=unknown", "power.sustained=unknown"}), problem, request);
    EXPECT_NEAR(*unknown.plans.front().prediction.time_us, *on.prediction.time_us, 1e-6);
    EXPECT_NE(unknown.notes.back().find("launch.programmatic_saving is unknown"), std::string::npos);
}

// 1.41 us of launch, of which A's way from L2 is left: 271 and, by TMA, 105 more cycles. Of a B of 2 * 64 * 64 B the way is shorter than the
// launch: 690 and 105 cycles from DRAM and 2 ns of bytes; 690 - 271 cycles and these are saved.
TEST(Derive, EarlyWeightsSaveTheLaunchButForAsWay) {
    const Machine h200 = changed("h200-sxm", {"launch.gap_stream=1.41 us", "dram.latency=690 clk", "l2.latency=271 clk",
                                              "tma.latency_extra=105 clk", "power.sustained=unknown"});
    const GemmProblem problem = gemm_problem(16, 4096, 4096);
    GemmRequest request;
    const GemmPlan without = plans(h200, problem, request).plans.front();
    EXPECT_FALSE(without.config.early_weights);
    EXPECT_TRUE(std::ranges::none_of(without.derivation, [](const Step& s) { return s.quantity == "early_saving"; }));
    request.early_weights = true;
    const GemmPlan early = plans(h200, problem, request).plans.front();
    EXPECT_TRUE(early.config.early_weights && early.config.programmatic_launch);
    EXPECT_TRUE(kernel_config(early).early_weights);
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(h200, "wgmma", Type::bf16, unknown);
    const double saved = 1.41 - (271 + 105) / hw.clock_hz * 1e6;
    EXPECT_NEAR(*without.prediction.time_us - *early.prediction.time_us, saved, 1e-6);
    EXPECT_NEAR(*step(early, "early_saving").value, saved, 1e-9);
    const GemmPlan small = plans(h200, gemm_problem(16, 64, 64), request).plans.front();
    EXPECT_NEAR(*step(small, "early_saving").value, ((690 - 271) / hw.clock_hz + 2 * 64 * 64 / hw.dram_bandwidth) * 1e6, 1e-9);
    EXPECT_EQ(step(early, "time_us").inputs.back().name, "early_saving");
    EXPECT_NEAR(1e6 * evaluate_plan(h200, early)->time.seconds, *early.prediction.time_us, 1e-6);
    // What a document records makes it again.
    EXPECT_EQ(plans(h200, problem, fixed_to(early.config)).plans.front().config, early.config);
    // Without those numbers nothing is saved, and the plan is the same.
    const GemmPlan untold = plans(changed("h200-sxm", {"l2.latency=unknown", "power.sustained=unknown"}), problem, request).plans.front();
    EXPECT_TRUE(untold.config.early_weights);
    EXPECT_EQ(step(untold, "early_saving").value, 0);
}

TEST(Derive, EarlyWeightsAreRefusedWhereBIsNotThereBefore) {
    const Machine h200 = machine_by_id("h200-sxm");
    const auto why = [](const Machine& machine, const GemmProblem& problem, GemmRequest request) {
        request.early_weights = true;
        const auto outcome = derive(machine, problem, request);
        const auto* none = std::get_if<Infeasible>(&outcome);
        return none ? none->message : std::string();
    };
    const GemmProblem problem = gemm_problem(16, 4096, 4096);
    EXPECT_EQ(why(h200, problem, {}), "");
    GemmRequest request;
    request.programmatic_launch = false;
    EXPECT_THAT(why(h200, problem, request), testing::HasSubstr("early_weights with pdl off"));
    request = {};
    request.pack_b = true;
    EXPECT_THAT(why(h200, problem, request), testing::HasSubstr("B is packed by the launch in front"));
    GemmProblem off = problem;
    off.ldb = 4097;
    request = {};
    request.kernel = find_gemm_kernel("sm90_gemm");
    EXPECT_THAT(why(h200, off, request), testing::HasSubstr("B is packed by the launch in front"));
    EXPECT_EQ(why(h200, off, {}), "");  // sm80_few_gemm reads it as it lies
    GemmProblem batch = problem;
    batch.batch = 4, batch.a_stride = dense_stride(batch, 'a'), batch.b_stride = dense_stride(batch, 'b');
    batch.c_stride = dense_stride(batch, 'c');
    request = {};
    EXPECT_EQ(why(h200, batch, request), "");
    request.dynamic_scheduler = true;
    EXPECT_THAT(why(h200, batch, request), testing::HasSubstr("early_weights: with dynamic_scheduler"));
    // Where no kernel begins before the one in front has ended.
    EXPECT_THAT(why(machine_by_id("a100-80-sxm"), problem, {}), testing::HasSubstr("early_weights = on"));
    request = {};
    request.kernel = find_gemm_kernel("sm80_few_gemm");
    EXPECT_THAT(why(machine_by_id("a100-80-sxm"), problem, request),
                testing::HasSubstr("no kernel of a100-80-sxm begins before the one in front"));
    // Lines off 128 B, which would be copied where nobody asks: B is not.
    const GemmProblem lines = gemm_problem(4096, 4104, 4104);
    request = {};
    request.early_weights = true;
    EXPECT_FALSE(plans(h200, lines, request).plans.front().config.pack_b);
}

TEST(Derive, WithoutRegistersNothingIsBuildable) {
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    for (const char* key : {"sm.registers=unknown", "sm.max_registers_per_thread=unknown"}) {
        const Plans result = plans(changed("h100-sxm", {key}), problem);
        EXPECT_FALSE(result.plans.front().buildable) << key;
        EXPECT_NE(
            std::find(result.unchecked_constraints.begin(), result.unchecked_constraints.end(), "registers"),
            result.unchecked_constraints.end());
    }
    for (const char* few : {"sm.registers=1", "sm.registers=4096"})
        EXPECT_TRUE(std::holds_alternative<Infeasible>(derive(changed("h100-sxm", {few}), problem))) << few;
    // More registers than an instruction can name are no use.
    const Plans many =
        plans(changed("h100-sxm", {"sm.registers=131072", "sm.max_registers_per_thread=1024"}), problem);
    for (const GemmPlan& plan : many.plans) EXPECT_LE(plan.resources.consumer_registers.value_or(0), 255);
}

TEST(Derive, AnUnknownTermLeavesTheTimeUnknown) {
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    for (const char* key : {"rate.wgmma.bf16.fp32=unknown", "l2.bandwidth=unknown",
                            "shared.bandwidth=unknown", "dram.latency=unknown", "sm.count=unknown"}) {
        const Plans result = plans(changed("h100-sxm", {key}), problem);
        EXPECT_FALSE(result.plans.front().prediction.time_us) << key;
        EXPECT_FALSE(result.plans.front().prediction.tflops) << key;
        EXPECT_FALSE(result.plans.front().prediction.bound) << key;
        EXPECT_FALSE(result.unknown.empty());
    }
    const Plans launch = plans(changed("h100-sxm", {"launch.gap_stream=unknown"}), problem);
    EXPECT_TRUE(launch.plans.front().prediction.time_us);
    EXPECT_EQ(launch.notes.size(), 1u);
}

// The schedulers' lanes bound what an expression and promoted sums take; nothing else of a product asks for them.
TEST(Derive, UnknownLanesAreToldWhereTheyAreWanted) {
    const auto told = [](const Plans& p) { return std::find(p.unknown.begin(), p.unknown.end(), "sm.partitions") != p.unknown.end(); };
    GemmProblem gelu = gemm_problem(4096, 4096, 4096);
    gelu.epilogue = product_epilogue(gelu.m, gelu.n, gelu.c_type, 1, 0, "d = gelu(acc)", {});
    GemmProblem promoted = gemm_problem(4096, 4096, 4096, Type::fp8_e4m3);
    promoted.c_type = Type::bf16;
    promoted.accumulation = Accumulation::promoted;
    check(promoted);
    for (const auto& [id, problem] : {std::pair{"h100-sxm", gelu}, {"a100-80-sxm", gelu}, {"h100-sxm", promoted}}) {
        const Plans known = plans(machine_by_id(id), problem), unknown = plans(changed(id, {"sm.partitions=unknown"}), problem);
        EXPECT_TRUE(known.plans.front().prediction.time_us) << id;
        EXPECT_FALSE(told(known)) << id;
        EXPECT_TRUE(told(unknown)) << id;
        for (const GemmPlan& plan : unknown.plans) EXPECT_FALSE(plan.prediction.time_us) << id;
    }
    const Plans bare = plans(changed("h100-sxm", {"sm.partitions=unknown"}), gemm_problem(4096, 4096, 4096));
    EXPECT_TRUE(bare.plans.front().prediction.time_us);
    EXPECT_FALSE(told(bare));
}

TEST(Derive, AllStagesThatFitAreTaken) {
    GemmRequest request = tile(64, 16, 64);
    request.consumer_warpgroups = 1;
    request.ctas_per_sm = 1;
    const GemmPlan plan =
        plans(machine_by_id("h100-sxm"), gemm_problem(4096, 4096, 4096), request).plans.front();
    EXPECT_EQ(plan.config.stages, *plan.resources.stages_max);
    EXPECT_GE(plan.config.stages, *step(plan, "stages_needed").value);
}

TEST(Derive, FixedValuesThatNothingTakesAreRefused) {
    const Machine h100 = machine_by_id("h100-sxm");
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    const auto wrong = [&](auto set) {
        GemmRequest request;
        set(request);
        EXPECT_THROW(derive(h100, problem, request), RequestError);
    };
    wrong([](GemmRequest& r) { r.stages = 1; });
    wrong([](GemmRequest& r) { r.tile_m = 65536; });
    wrong([](GemmRequest& r) { r.tile_k = 0; });
    wrong([](GemmRequest& r) { r.cluster_m = 0; });
    wrong([](GemmRequest& r) { r.group = 0; });
    wrong([](GemmRequest& r) {
        r.order = Order::row;
        r.group = 4;
    });
    const auto reason = [&](auto set) {
        GemmRequest request;
        set(request);
        const Infeasible why = refusal(h100, problem, request);
        EXPECT_GT(why.rejected.count(), 0) << why.message;
        return why.message;
    };
    EXPECT_NE(reason([](GemmRequest& r) { r.consumer_warpgroups = 7; }), "");
    EXPECT_NE(reason([](GemmRequest& r) { r.ctas_per_sm = 9; }), "");
    EXPECT_NE(reason([](GemmRequest& r) { r.tile_n = 24; }).find("tile_n = 24 must be a multiple of 16"),
              std::string::npos);
    EXPECT_NE(reason([](GemmRequest& r) { r.cluster_m = 4; }).find("a cluster of 4 CTAs"), std::string::npos);
    EXPECT_NE(reason([](GemmRequest& r) {
                  r.tile_m = 192;
                  r.tile_n = 256;
                  r.consumer_warpgroups = 3;
              }).find("160 registers a thread at entry, and so many threads leave 128"),
              std::string::npos);
}

TEST(Derive, KIsPartedWhereTilesLeaveSmsIdle) {  // M29
    const Machine h200 = machine_by_id("h200-sxm");
    for (const GemmProblem& few : {gemm_problem(128, 4096, 14336), gemm_problem(256, 256, 8192)}) {
        GemmRequest one_piece;
        one_piece.grid_split_k = 1;
        const GemmPlan plan = plans(h200, few, one_piece).plans.front();
        EXPECT_GT(plan.config.split_k, 1);
        GemmRequest whole = one_piece;
        whole.split_k = 1;
        EXPECT_GT(*plans(h200, few, whole).plans.front().prediction.time_us, *plan.prediction.time_us);
        EXPECT_EQ(*step(plan, "split_k").value, plan.config.split_k);
        EXPECT_NE(step(plan, "split_k").limit.find("the best plan with split_k = 1 takes"),
                  std::string::npos);
        EXPECT_GT(*step(plan, "exchange_cycles").value, 0);
    }
    for (const GemmPlan& plan : plans(h200, gemm_problem(8192, 8192, 8192)).plans)
        EXPECT_EQ(plan.config.split_k, 1);
    // 256 = 4 tiles of 64 a side; K has 2 steps: no more than 2 parts are worth a look.
    for (const GemmPlan& plan : plans(h200, gemm_problem(256, 256, 128)).plans)
        EXPECT_LE(plan.config.split_k, 2);
}

TEST(Derive, KIsCutInPiecesWhereAClusterIsNotEnough) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem narrow = gemm_problem(294, 144, 30264);
    const GemmPlan plan = plans(h200, narrow).plans.front();
    EXPECT_GT(plan.config.grid_split_k, 1);
    EXPECT_EQ(plan.prediction.waves, 1);
    EXPECT_TRUE(kernel_config(plan).in_pieces);
    GemmRequest one_piece;
    one_piece.grid_split_k = 1;
    EXPECT_GT(*plans(h200, narrow, one_piece).plans.front().prediction.time_us, 1.2 * *plan.prediction.time_us);
    EXPECT_EQ(*step(plan, "grid_split_k").value, plan.config.grid_split_k);
    EXPECT_NE(step(plan, "grid_split_k").limit.find("the best plan with grid_split_k = 1 takes"),
              std::string::npos);
    // Counters and sums of whole cluster tiles, which the launch finds and leaves zeroed.
    const GemmConfig& c = plan.config;
    const std::int64_t rows = ceil_div(narrow.m, std::int64_t{c.tile_m} * c.cluster_m) * c.cluster_m,
                       columns = ceil_div(narrow.n, std::int64_t{c.tile_n} * c.cluster_n) * c.cluster_n,
                       counters = rows * columns * c.split_k * c.consumer_warpgroups * 4;
    EXPECT_EQ(plan.resources.workspace_bytes,
              ceil_div(counters, std::int64_t{128}) * 128 + rows * columns * c.tile_m * c.tile_n * 4 * c.grid_split_k);
    const Plan any = any_plan(plan);
    ASSERT_EQ(any.launches.size(), 1u);
    EXPECT_EQ(any.launches[0].before, WorkspaceState::zeroed);
    EXPECT_EQ(any.launches[0].after, WorkspaceState::zeroed);
}

TEST(Derive, PiecesOfKThatCannotBeAreRefused) {
    const Machine h200 = machine_by_id("h200-sxm");
    const auto message = [&](const GemmProblem& problem, int pieces, auto fix) {
        GemmRequest request;
        request.grid_split_k = pieces;
        fix(request);
        return refusal(h200, problem, request).message;
    };
    const auto nothing = [](GemmRequest&) {};
    EXPECT_NE(message(gemm_problem(128, 128, 640), 11, nothing).find("grid_split_k = 11: K has 10 steps of 64 for 11 parts"), std::string::npos);
    EXPECT_NE(message(gemm_problem(4096, 4096, 4096), 2, nothing).find("512 CTAs are more than 132 SMs"), std::string::npos);
    EXPECT_NE(message(gemm_problem(128, 128, 4096), 4, [](GemmRequest& r) { r.schedule = Schedule::pingpong; }).find("take cooperative"),
              std::string::npos);
    EXPECT_NE(message(gemm_problem(128, 128, 4096), 4, [](GemmRequest& r) { r.ctas_per_sm = 2; }).find("one CTA an SM"), std::string::npos);
    GemmRequest request;
    request.grid_split_k = 2;
    EXPECT_NE(refusal(machine_by_id("a100-80-sxm"), gemm_problem(128, 128, 4096), request).message.find("grid_split_k"), std::string::npos);
}

TEST(Derive, PartsOfKAreKeptWhereTheyAreFixed) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmRequest request = tile(128, 256, 64);
    for (int split_k : {1, 2, 4, 8}) {
        request.split_k = split_k;
        for (std::int64_t k : {8, 4096})  // 8: only the first part has work
            for (const GemmPlan& plan : plans(h100, gemm_problem(4096, 4096, k), request).plans) {
                EXPECT_EQ(plan.config.split_k, split_k);
                EXPECT_EQ(kernel_config(plan).split_k, split_k);
                EXPECT_EQ(kernel_config(plan).shared_bytes(), *plan.resources.shared_bytes);
                EXPECT_GE(plan.config.stages * *plan.resources.stage_bytes,
                          kernel_config(plan).exchange_bytes());
            }
    }
}

TEST(Derive, WhereKCannotBePartedOneLineSaysWhy) {
    const Machine h100 = machine_by_id("h100-sxm");
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    const auto message = [&](const Machine& machine, GemmRequest request, int split_k) {
        request.split_k = split_k;
        const Infeasible why = refusal(machine, problem, request);
        EXPECT_GT(why.rejected.count(), 0) << why.message;
        EXPECT_EQ(why.message.find('\n'), std::string::npos);
        return why.message;
    };
    const auto has = [](const std::string& text, const char* part) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    has(message(h100, tile(128, 240, 64), 4), "tile_n = 240 must be a multiple of 32");
    GemmRequest request = tile(128, 128, 64);
    request.schedule = Schedule::pingpong;
    has(message(h100, request, 2), "take cooperative");
    has(message(h100, {}, 16), "a cluster of 16 CTAs; the machine takes 8");
    request = tile(128, 128, 64);
    request.cluster_n = 2;
    has(message(h100, request, 8), "a cluster of 16 CTAs; the machine takes 8");
    request = tile(256, 128, 64);  // 131072 B of sums, 49152 B a stage
    request.stages = 2;
    has(message(h100, request, 2),
        "3 stages hold the sums that parts of K exchange, 2 fit or were asked for");
    request = tile(256, 208, 64);  // 212992 B of sums, 59392 B a stage: four stages, and three fit
    request.cluster_m = 1;
    has(message(h100, request, 2), "3 fit, and the sums that parts of K exchange take 4");
    has(message(machine_by_id("a100-80-sxm"), {}, 2), "split_k = 2 takes clusters");
    has(message(changed("h100-sxm", {"features.cluster=false"}), {}, 2), "cluster of 2 CTAs");
}

TEST(Derive, TakesTheKernelThatIsAskedFor) {
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    const auto asked = [&](const char* machine, const char* kernel) {
        GemmRequest request;
        request.kernel = find_gemm_kernel(kernel);
        return derive(machine_by_id(machine), problem, request);
    };
    EXPECT_EQ(std::get<Plans>(asked("h100-sxm", "sm80_gemm")).plans.front().config.kernel->name(), "sm80_gemm");
    EXPECT_EQ(std::get<Infeasible>(asked("a100-80-sxm", "sm90_gemm")).message,
              "sm90_gemm needs wgmma, tma, setmaxnreg, which a100-80-sxm does not have; sm80_gemm runs there");
    EXPECT_EQ(find_gemm_kernel("sm70_gemm"), nullptr);
}

TEST(Derive, FeaturesDecide) {
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    for (const char* off : {"features.tma=false", "features.setmaxnreg=false"})
        EXPECT_EQ(plans(changed("h100-sxm", {off}), problem).plans.front().config.kernel->name(),
                  "sm80_gemm")
            << off;
    for (const GemmPlan& plan : plans(changed("h100-sxm", {"features.cluster=false"}), problem).plans)
        EXPECT_EQ(plan.config.cluster_m * plan.config.cluster_n, 1);
    for (const GemmPlan& plan :
         plans(changed("h100-sxm", {"sm.max_ctas=1"}), gemm_problem(64, 512, 512)).plans)
        EXPECT_EQ(plan.config.ctas_per_sm, 1);
}

TEST(Derive, WithoutAsyncCopyResidentCtasCoverTheLatency) {  // M6
    const Machine v100 = machine_by_id("v100-sxm2");
    for (const GemmPlan& plan : plans(v100, gemm_problem(8, 8, 2624, Type::fp16)).plans)
        EXPECT_GE(*plan.prediction.tile_compute_cycles * plan.config.ctas_per_sm,
                  v100.number<Cycles>("dram.latency")->value);
}

TEST(Derive, SplitOfRegisters) {
    // 384 threads: 65536 / 384 = 170 -> 168 at launch, 504 for three warpgroups: 40 + 2 * 232
    const RegisterSplit two = RegisterSplits(65536, 255, 2, 1).for_need(160);
    EXPECT_EQ(two.launch, 168);
    EXPECT_EQ(two.producer, 40);
    EXPECT_EQ(two.consumer, 232);
    // 208 accumulators + 32 need 240: 24 + 2 * 240
    EXPECT_EQ(RegisterSplits(65536, 255, 2, 1).for_need(240).producer, 24);
    EXPECT_EQ(RegisterSplits(65536, 255, 2, 1).for_need(240).consumer, 240);
    // 512 threads: 128 each, 512 for four: 56 + 3 * 152, or 32 + 3 * 160
    EXPECT_EQ(RegisterSplits(65536, 255, 3, 1).for_need(152).producer, 56);
    EXPECT_EQ(RegisterSplits(65536, 255, 3, 1).for_need(160).producer, 32);
    // 256 threads: a thread can have 255 at launch, nothing is moved
    EXPECT_EQ(RegisterSplits(65536, 255, 1, 1).for_need(160).consumer, 0);
    EXPECT_EQ(RegisterSplits(65536, 255, 1, 2).for_need(160).consumer,
              216);  // 128 each, 256 for two: 40 + 216
}

// Whatever the problem: plans obey the machine, and more shared memory never gives fewer stages.
RC_GTEST_PROP(DeriveProperties, PlansObeyTheMachine, ()) {
    static const Machine h100 = machine_by_id("h100-sxm");
    const auto extent = [] { return 8 * *rc::gen::inRange<std::int64_t>(1, 2000); };
    const GemmProblem problem =
        gemm_problem(extent(), extent(), extent(), *rc::gen::element(Type::bf16, Type::fp16),
                     *rc::gen::element(Major::k, Major::mn), *rc::gen::element(Major::k, Major::mn));
    for (const GemmPlan& plan : plans(h100, problem).plans) {
        const Sm90GemmConfig config = kernel_config(plan);
        RC_ASSERT(config.shared_bytes() == *plan.resources.shared_bytes);
        RC_ASSERT(config.shared_bytes() <= 232448);
        RC_ASSERT((config.shared_bytes() + 1024) * config.ctas_per_sm <= 233472);
        RC_ASSERT(config.threads() * config.ctas_per_sm <= 2048);
        const int registers =
            config.consumer_registers
                ? 128 * (config.producer_registers + config.consumer_warpgroups * config.consumer_registers)
                : 255 * config.threads();
        RC_ASSERT(registers * config.ctas_per_sm <= 65536);
        RC_ASSERT(*plan.prediction.dram_bytes >= *plan.prediction.dram_lower_bound_bytes);
        RC_ASSERT(*plan.prediction.l2_bytes >= *plan.prediction.l2_lower_bound_bytes);
        RC_ASSERT(*plan.prediction.shared_traffic_bytes >= *plan.prediction.shared_lower_bound_bytes);
        RC_ASSERT(*plan.prediction.l2_bytes >= *plan.prediction.moved_bytes);
        RC_ASSERT(*plan.prediction.dram_bytes >= *plan.prediction.moved_bytes);
        RC_ASSERT(*plan.prediction.tflops < 132 * 4096 * 1.98e9 / 1e12);
    }
}

/// What an epilogue reads, and scales of blocks, come from DRAM as A and B do.
TEST(Derive, MovesWhatIsReadBesideAAndB) {
    const Machine machine = machine_by_id("h100-sxm");
    const auto holds = [&](const GemmProblem& p, std::int64_t beside) {
        const GemmPlan plan = plans(machine, p).plans.front();
        const GemmProblem bare = [&] { GemmProblem q = p; q.epilogue = {}; return q; }();
        EXPECT_EQ(p.beside_bytes(), double(beside));
        EXPECT_GE(double(*plan.prediction.dram_bytes), p.compulsory_bytes().value);
        EXPECT_GE(*plan.prediction.dram_bytes, *plan.prediction.dram_lower_bound_bytes);
        EXPECT_GE(*plan.prediction.l2_bytes, *plan.prediction.l2_lower_bound_bytes);
        EXPECT_GE(*plan.prediction.dram_lower_bound_bytes, *plans(machine, bare).plans.front().prediction.dram_lower_bound_bytes + beside);
        EXPECT_GE(*plan.prediction.time_us * 1e-6, p.compulsory_bytes().value / machine.find("dram.bandwidth")->value);
    };
    GemmProblem flat = gemm_problem(16384, 16384, 64);
    flat.epilogue = product_epilogue(flat.m, flat.n, flat.c_type, 1, 0, "d = acc + c", {"c:bf16[M,N]"});
    holds(flat, 16384LL * 16384 * 2);
    GemmProblem scaled = gemm_problem(8192, 8192, 8192, Type::fp8_e4m3);
    scaled.c_type = Type::bf16;
    scaled.epilogue = product_epilogue(scaled.m, scaled.n, scaled.c_type, 1, 0, "", {}, Scales::block);
    holds(scaled, 4 * (64 * 8192 + 64 * 64));
    GemmProblem batch = gemm_problem(4096, 4096, 256);
    batch.batch = 8, batch.a_stride = 4096 * 256, batch.b_stride = 4096 * 256, batch.c_stride = 4096 * 4096;
    batch.epilogue = product_epilogue(batch.m, batch.n, batch.c_type, 1, 0, "d = relu(acc + r)", {"r:bf16[B,M,N]"}, Scales::none, 8);
    holds(batch, 8LL * 4096 * 4096 * 2);
}

RC_GTEST_PROP(DeriveProperties, MoreSharedMemoryNeverGivesFewerStages, ()) {
    Machine small = machine_by_id("h100-sxm"), large = small;
    const int bytes = *rc::gen::inRange(60000, 230000), more = *rc::gen::inRange(0, 100000);
    set_number(small, "shared.per_cta=" + std::to_string(bytes) + " B");
    set_number(large, "shared.per_cta=" + std::to_string(bytes + more) + " B");
    GemmRequest request = tile(64, 16 * *rc::gen::inRange(1, 8), 64);
    request.ctas_per_sm = 1;
    request.consumer_warpgroups = 1;
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    const auto few = derive(small, problem, request);
    if (std::holds_alternative<Infeasible>(few)) return;  // then any number of stages is no fewer
    RC_ASSERT(*std::get<Plans>(few).plans.front().resources.stages_max
              <= *plans(large, problem, request).plans.front().resources.stages_max);
}

/// 16 B past a line, and A is small and read by every column of tiles: a copy of it costs less than L2 takes longer for its rows.
TEST(Packing, IsChosenWhereRowsOffTheLineCostMore) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem p = gemm_problem(431, 17600, 9352);
    const auto first = [&](const Machine& machine, std::optional<bool> pack_a, std::optional<bool> pack_b) {
        GemmRequest request;
        request.pack_a = pack_a, request.pack_b = pack_b;
        return std::get<Plans>(derive(machine, p, request)).plans.front();
    };
    const GemmPlan chosen = first(h200, {}, {});
    EXPECT_TRUE(chosen.config.pack_a);
    EXPECT_FALSE(chosen.config.pack_b);
    EXPECT_GT(chosen.resources.workspace_bytes, 0);
    EXPECT_LT(*chosen.prediction.time_us, *first(h200, false, {}).prediction.time_us);
    EXPECT_LE(*chosen.prediction.time_us, *first(h200, true, true).prediction.time_us);
    EXPECT_EQ(first(h200, false, {}).config.pack_a, false);
    EXPECT_EQ(*chosen.prediction.time_us, *first(h200, true, {}).prediction.time_us);
    Machine unknown = h200;  // as on the line: no copy is worth its time
    for (const char* key : {"tma.off_line_16", "tma.off_line_shared_16"}) EXPECT_EQ(unknown.facts.erase(key), 1u);
    EXPECT_FALSE(first(unknown, {}, {}).config.pack_a);
    // On the line there is nothing to choose.
    const auto on_line = std::get<Plans>(derive(h200, gemm_problem(431, 17600, 9344)));
    for (const GemmPlan& plan : on_line.plans) EXPECT_FALSE(plan.config.pack_a || plan.config.pack_b);
}

}  // namespace
}  // namespace rooftile
