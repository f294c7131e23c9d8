#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/gemm/device/figures.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/measure/copy_baseline.hpp"
#include "rooftile/measure/options.hpp"

namespace rooftile {
namespace {

Measurement row_of(std::int64_t m, std::int64_t n, std::int64_t k, Mode mode) {
    GemmPlan plan;
    plan.problem = gemm_problem(m, n, k);
    plan.config.kernel = find_gemm_kernel("sm90_gemm");
    return gemm_row(std::move(plan), mode);
}

/// Times first, as the measure station does.
void set_all(Measurement& row, const TimedResult& timed, const Roofs& roofs) {
    set_times(row, timed);
    set_figures(row, timed, roofs);
}

std::optional<double> best_us(const std::vector<Baseline>& baselines) { return baselines.at(1).time_us; }

TimedResult timed(double us, double mhz) {
    TimedResult t;
    t.time_us = {us, us * 0.99, us * 1.01, 0.98, 7};
    t.sm_clock_mhz = mhz;
    return t;
}

// A machine of 100 SMs x 4096 FLOP/clk: 409600 FLOP/clk, at 1500 MHz 614.4 TFLOP/s.
// 1000 x 1000 x 1000 in 4 us: 2e9 FLOP / 4e-6 s = 500 TFLOP/s = 0.8138 of it; 6e6 B / 4e-6 s = 1500 GB/s.
TEST(SetFigures, ByHand) {
    Measurement row = row_of(1000, 1000, 1000, Mode::sustained);
    set_all(row, timed(4, 1500), {409600.0, 3e12, 1500.0});
    EXPECT_NEAR(*row.tflops, 500, 1e-9);
    EXPECT_NEAR(*row.gbytes_per_s, 1500, 1e-9);
    EXPECT_NEAR(row.roof_fraction.value(), 500 / 614.4, 1e-12);
    EXPECT_EQ(row.samples, 7);
    EXPECT_NEAR(*row.time_us_low, 3.96, 1e-12);
    EXPECT_EQ(row.invalid, "");
}

TEST(SetFigures, NothingAboveTheTensorRoofIsAResult) {
    Measurement row = row_of(1000, 1000, 1000, Mode::sustained);
    const Roofs roofs{409600.0, std::nullopt, 1980.0};
    set_all(row, timed(3.235, 1500), roofs);  // 618.2 of 614.4: 1.0062
    EXPECT_THAT(row.invalid, testing::HasSubstr("above the roof: 618.2 TFLOP/s of 614.4 at the measured"));
    Measurement fine = row_of(1000, 1000, 1000, Mode::sustained);
    set_all(fine, timed(3.245, 1500), roofs);  // 616.3: 1.0031, within the clock's 0.5 %
    EXPECT_EQ(fine.invalid, "");
}

// At the boost clock nothing is allowed on top: 409600 x 1.98e9 = 811.0 TFLOP/s, 2e9 FLOP in 2.466 us.
TEST(SetFigures, WithoutAClockTheBoostClockIsTheRoof) {
    const Roofs roofs{409600.0, std::nullopt, 1980.0};
    TimedResult blind = timed(2.46, 0);  // 813.0
    blind.sm_clock_mhz.reset();
    Measurement row = row_of(1000, 1000, 1000, Mode::sustained);
    set_all(row, blind, roofs);
    EXPECT_THAT(row.invalid, testing::HasSubstr("813.0 TFLOP/s of 811.0 at the boost clock, 1980 MHz"));
    Measurement fine = row_of(1000, 1000, 1000, Mode::sustained);
    blind.time_us.median = 2.47;  // 809.7
    set_all(fine, blind, roofs);
    EXPECT_EQ(fine.invalid, "");
    EXPECT_FALSE(fine.roof_fraction);
    // A measured clock beyond boost, within its error, does not raise the roof.
    Measurement fast = row_of(1000, 1000, 1000, Mode::sustained);
    set_all(fast, timed(2.46, 1985), roofs);
    EXPECT_THAT(fast.invalid, testing::HasSubstr("at the boost clock"));
}

TEST(UncheckedRoofs, AreSaid) {
    TimedResult blind = timed(4, 0);
    blind.sm_clock_mhz.reset();
    EXPECT_THAT(unchecked_roofs(Mode::sustained, timed(4, 1500), {409600.0, std::nullopt, std::nullopt}),
                testing::IsEmpty());
    EXPECT_THAT(unchecked_roofs(Mode::sustained, blind, {409600.0, std::nullopt, 1980.0}),
                testing::IsEmpty());
    EXPECT_THAT(unchecked_roofs(Mode::sustained, blind, {409600.0, std::nullopt, std::nullopt}),
                testing::ElementsAre(testing::HasSubstr("neither the SM clock nor clock.boost")));
    EXPECT_THAT(unchecked_roofs(Mode::cold, timed(4, 1500), {}),
                testing::ElementsAre(testing::HasSubstr("tensor roof was not checked"),
                                     testing::HasSubstr("DRAM was not checked")));
}

TEST(Baselines, AboveTheRoofAreLeftOutWithANote) {
    const GemmProblem p = gemm_problem(1000, 1000, 1000);
    const Roofs roofs{409600.0, 3e12, 1980.0};
    TimedResult broken = timed(1, 1500);
    broken.failure = "not for this shape";
    std::vector<std::string> notes;
    const std::vector<TimedResult> timings = {timed(5, 1500), timed(3, 1500), timed(4, 1500), broken};
    const std::vector<Baseline> b = cublaslt_baselines(p, Mode::sustained, timings, roofs, notes);  // 3 us: 667 of 614.4
    EXPECT_EQ(b.at(0).time_us, 5.0);
    EXPECT_EQ(best_us(b), 4.0);
    EXPECT_EQ(b.at(1).name, "cuBLASLt best of 3");  // the fourth cannot run
    EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("algorithm 1 was left out: above the roof")));
}

TEST(Baselines, WhatWasDroppedIsNotTheBest) {
    const GemmProblem p = gemm_problem(1000, 1000, 1000);
    std::vector<std::string> notes;
    std::vector<TimedResult> timings = {timed(5, 1500), timed(3.9, 1500), timed(4, 1500)};
    timings[1].dropped = true;  // clearly slower than the fastest in the rounds that it was in
    EXPECT_EQ(best_us(cublaslt_baselines(p, Mode::sustained, timings, {}, notes)), 4.0);
    EXPECT_EQ(best_algorithm(p, Mode::sustained, timings, {}), 2u);
    timings[2].failure = "not for this shape";
    EXPECT_EQ(best_algorithm(p, Mode::sustained, timings, {}), 0u);
    timings[0].dropped = true;  // the library's own first choice has its time all the same
    EXPECT_FALSE(best_algorithm(p, Mode::sustained, timings, {}));
    EXPECT_EQ(cublaslt_baselines(p, Mode::sustained, timings, {}, notes).at(0).time_us, 5.0);
    EXPECT_FALSE(best_algorithm(p, Mode::sustained, {}, {}));
}

// A clock that falls by a third over the rounds is in both: 10/10, 13/12.5, 15.6/15. Medians would say
// 13/12.5 with an interval from 10/15 to 15.6/10.
TEST(PairedRatio, ComparesWithinRounds) {
    TimedResult theirs, ours;
    theirs.rounds = {{0, 10}, {1, 13}, {2, 15.6}, {3, 99}};
    ours.rounds = {{0, 10}, {1, 12.5}, {2, 15}};
    const auto ratio = paired_ratio(theirs, ours);
    ASSERT_TRUE(ratio);
    EXPECT_EQ(ratio->samples, 3);
    EXPECT_NEAR(ratio->median, 1.04, 1e-12);
    EXPECT_NEAR(ratio->low, 1.0, 1e-12);
    EXPECT_NEAR(ratio->high, 1.04, 1e-12);
    ours.rounds = {{7, 5}};
    EXPECT_FALSE(paired_ratio(theirs, ours));
    EXPECT_FALSE(paired_ratio({}, {}));
}

// 3e6 B read and as many written: 2 us is 3000 GB/s both ways; when cold only what is read must be DRAM's.
TEST(Baselines, ACopyAboveTheRoofIsLeftOutWithANote) {
    const Roofs roofs{std::nullopt, 3e12, std::nullopt};
    std::vector<std::string> notes;
    EXPECT_EQ(copy_time(3000000, Mode::sustained, timed(2.01, 1500), roofs.dram_bytes_per_s, notes), 2.01);
    EXPECT_EQ(copy_time(3000000, Mode::cold, timed(1.5, 1500), roofs.dram_bytes_per_s, notes), 1.5);
    EXPECT_THAT(notes, testing::IsEmpty());
    EXPECT_FALSE(copy_time(3000000, Mode::sustained, timed(1.9, 1500), roofs.dram_bytes_per_s, notes));
    EXPECT_FALSE(copy_time(3000000, Mode::cold, timed(0.9, 1500), roofs.dram_bytes_per_s, notes));
    EXPECT_EQ(notes.size(), 2u);
}

// A and B of 64 x 8192 x 8192: 64 x 8192 x 2 + 8192 x 8192 x 2 = 135266304 B; in 40 us that is 3382 GB/s.
TEST(SetFigures, NothingAboveTheDramRoofIsAResultWhenCold) {
    Measurement cold = row_of(64, 8192, 8192, Mode::cold), warm = row_of(64, 8192, 8192, Mode::sustained);
    const Roofs roofs{std::nullopt, 3.0e12, std::nullopt};
    set_all(cold, timed(40, 1500), roofs);
    EXPECT_THAT(cold.invalid, testing::HasSubstr("A and B at 3382 GB/s of DRAM's 3000"));
    set_all(warm, timed(40, 1500), roofs);
    EXPECT_EQ(warm.invalid, "");
    Measurement slower = row_of(64, 8192, 8192, Mode::cold);
    set_all(slower, timed(45.1, 1500), roofs);  // 2999
    EXPECT_EQ(slower.invalid, "");
}

TEST(SetFigures, UnknownRoofsRefuseNothing) {
    Measurement row = row_of(1000, 1000, 1000, Mode::cold);
    set_all(row, timed(0.001, 1500), {});
    EXPECT_EQ(row.invalid, "");
    EXPECT_FALSE(row.roof_fraction);
}

TEST(Roofs, ComeFromTheMachinesNumbers) {
    Machine machine;
    machine.facts["rate.wgmma.bf16.fp32"] = {4096, FlopsPerCycle::dimension, Per::sm, "", ""};
    machine.facts["dram.bandwidth"] = {3e12, Bandwidth::dimension, Per::gpu, "", ""};
    machine.facts["clock.boost"] = {1.98e9, Clock::dimension, Per::gpu, "", ""};
    const Roofs roofs = roofs_of(&machine, gemm_plan(row_of(8, 8, 8, Mode::cold)), 100);
    EXPECT_EQ(roofs.flops_per_cycle, 409600.0);
    EXPECT_EQ(roofs.dram_bytes_per_s, 3e12);
    EXPECT_NEAR(roofs.boost_clock_mhz.value(), 1980, 1e-9);
    EXPECT_FALSE(roofs_of(nullptr, {}, 100).flops_per_cycle);
}

// Hopper as its mma.sync and wgmma see it, 132 SMs: 2576 x 132 = 340032 and 4096 x 132 = 540672 FLOP/clk.
// 1000 x 1000 x 1000 in 2.9 us: 2e9 / 2.9e-6 = 690 TFLOP/s, of 340032 x 1.5e9 = 510 and 540672 x 1.5e9 = 811.
TEST(Roofs, ABaselineIsHeldAgainstTheFastestInstruction) {
    Machine machine;
    machine.features["wgmma"] = machine.features["mma_sync"] = true;
    machine.facts["rate.mma_sync.bf16.fp32"] = {2576, FlopsPerCycle::dimension, Per::sm, "", ""};
    machine.facts["rate.wgmma.bf16.fp32"] = {4096, FlopsPerCycle::dimension, Per::sm, "", ""};
    machine.facts["dram.bandwidth"] = {3e12, Bandwidth::dimension, Per::gpu, "", ""};
    GemmPlan plan = gemm_plan(row_of(1000, 1000, 1000, Mode::sustained));
    plan.config.kernel = find_gemm_kernel("sm80_gemm");
    Measurement row = gemm_row(plan);
    const Roofs ours = roofs_of(&machine, plan, 132), theirs = baseline_roofs_of(&machine, plan.problem, 132);
    EXPECT_EQ(ours.flops_per_cycle, 340032.0);
    EXPECT_EQ(theirs.flops_per_cycle, 540672.0);
    EXPECT_EQ(theirs.dram_bytes_per_s, 3e12);

    std::vector<std::string> notes;
    const std::vector<TimedResult> timings = {timed(2.9, 1500)};
    EXPECT_EQ(best_us(cublaslt_baselines(plan.problem, Mode::sustained, timings, theirs, notes)), 2.9);
    EXPECT_THAT(notes, testing::IsEmpty());
    set_all(row, timings[0], ours);
    EXPECT_THAT(row.invalid, testing::HasSubstr("above the roof: 689.7 TFLOP/s of 510.0"));
}

TEST(Roofs, AnInstructionOfUnknownRateLeavesABaselineWithoutTensorRoof) {
    Machine machine;
    machine.facts["rate.mma_sync.bf16.fp32"] = {2048, FlopsPerCycle::dimension, Per::sm, "", ""};
    EXPECT_EQ(baseline_roofs_of(&machine, gemm_problem(8, 8, 8), 100).flops_per_cycle, 204800.0);
    machine.features["tcgen05"] = true;
    EXPECT_FALSE(baseline_roofs_of(&machine, gemm_problem(8, 8, 8), 100).flops_per_cycle);
    EXPECT_FALSE(baseline_roofs_of(nullptr, gemm_problem(8, 8, 8), 100).flops_per_cycle);
}

TEST(FreshSeed, FitsJson) {
    EXPECT_LT(fresh_seed(), std::uint64_t{1} << 53);
    EXPECT_NE(fresh_seed(), fresh_seed());
}

}  // namespace
}  // namespace rooftile
