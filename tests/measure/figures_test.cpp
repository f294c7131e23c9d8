#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/measure/measure.hpp"

namespace rooftile {
namespace {

Measurement row_of(std::int64_t m, std::int64_t n, std::int64_t k, Mode mode) {
    Measurement row;
    row.plan.problem = gemm_problem(m, n, k);
    row.plan.config.kernel = GemmKernel::sm90_gemm;
    row.mode = mode;
    return row;
}

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
    set_figures(row, timed(4, 1500), {409600.0, 3e12});
    EXPECT_NEAR(row.tflops, 500, 1e-9);
    EXPECT_NEAR(row.gbytes_per_s, 1500, 1e-9);
    EXPECT_NEAR(row.roof_fraction.value(), 500 / 614.4, 1e-12);
    EXPECT_EQ(row.samples, 7);
    EXPECT_NEAR(row.time_us_low, 3.96, 1e-12);
    EXPECT_EQ(row.invalid, "");
}

TEST(SetFigures, NothingAboveTheTensorRoofIsAResult) {
    Measurement row = row_of(1000, 1000, 1000, Mode::sustained);
    set_figures(row, timed(3.19, 1500), {409600.0, std::nullopt});  // 627 of 614.4: 1.0205
    EXPECT_THAT(row.invalid, testing::HasSubstr("above the roof: 627.0 TFLOP/s of 614.4"));
    Measurement fine = row_of(1000, 1000, 1000, Mode::sustained);
    set_figures(fine, timed(3.2, 1500), {409600.0, std::nullopt});  // 625: 1.0173, within 2 %
    EXPECT_EQ(fine.invalid, "");
}

// A and B of 64 x 8192 x 8192: 64 x 8192 x 2 + 8192 x 8192 x 2 = 135266304 B; in 40 us that is 3382 GB/s.
TEST(SetFigures, NothingAboveTheDramRoofIsAResultWhenCold) {
    Measurement cold = row_of(64, 8192, 8192, Mode::cold), warm = row_of(64, 8192, 8192, Mode::sustained);
    const Roofs roofs{std::nullopt, 3.0e12};
    set_figures(cold, timed(40, 1500), roofs);
    EXPECT_THAT(cold.invalid, testing::HasSubstr("A and B at 3382 GB/s of DRAM's 3000"));
    set_figures(warm, timed(40, 1500), roofs);
    EXPECT_EQ(warm.invalid, "");
    Measurement slower = row_of(64, 8192, 8192, Mode::cold);
    set_figures(slower, timed(45, 1500), roofs);  // 3006
    EXPECT_EQ(slower.invalid, "");
}

TEST(SetFigures, UnknownRoofsRefuseNothing) {
    Measurement row = row_of(1000, 1000, 1000, Mode::cold);
    set_figures(row, timed(0.001, 1500), {});
    EXPECT_EQ(row.invalid, "");
    EXPECT_FALSE(row.roof_fraction);
}

TEST(Roofs, ComeFromTheMachinesNumbers) {
    Machine machine;
    machine.facts["rate.wgmma.bf16.fp32"] = {4096, FlopsPerCycle::dimension, Per::sm, "", ""};
    machine.facts["dram.bandwidth"] = {3e12, Bandwidth::dimension, Per::gpu, "", ""};
    const Roofs roofs = roofs_of(&machine, row_of(8, 8, 8, Mode::cold).plan, 100);
    EXPECT_EQ(roofs.flops_per_cycle, 409600.0);
    EXPECT_EQ(roofs.dram_bytes_per_s, 3e12);
    EXPECT_FALSE(roofs_of(nullptr, {}, 100).flops_per_cycle);
}

TEST(FreshSeed, FitsJson) {
    EXPECT_LT(fresh_seed(), std::uint64_t{1} << 53);
    EXPECT_NE(fresh_seed(), fresh_seed());
}

}  // namespace
}  // namespace rooftile
