#include "rooftile/machine/query.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "tests/machine/machine_text.hpp"

namespace rooftile {
namespace {

Machine machine(std::string_view body) { return parse_machine(with_head(body), "x.toml"); }
const Clock two_gigahertz{2e9};

TEST(Query, Latencies) {
    const Machine m = machine("l2.latency = \"200 clk\"\ndram.latency = \"400 ns\"");
    EXPECT_EQ(latency_cycles(m, "l2.latency"), Cycles(200));
    EXPECT_EQ(latency_cycles(m, "dram.latency"), std::nullopt);  // needs a clock
    EXPECT_DOUBLE_EQ(latency_cycles(m, "dram.latency", two_gigahertz)->value, 800);
    EXPECT_EQ(latency_cycles(m, "l1.latency", two_gigahertz), std::nullopt);
}

TEST(Query, BandwidthInEveryForm) {
    // 10 SMs at 2 GHz: 20 B/clk/SM = 200 B/clk = 400 GB/s.
    for (const char* form : {"20 B/clk/SM", "200 B/clk", "400 GB/s"}) {
        const Machine m = machine("sm.count = 10\nl2.bandwidth = \"" + std::string(form) + "\"");
        EXPECT_DOUBLE_EQ(bandwidth(m, "l2.bandwidth", two_gigahertz)->value, 400e9) << form;
        EXPECT_DOUBLE_EQ(l2_bandwidth(m, two_gigahertz)->value, 200) << form;
        EXPECT_DOUBLE_EQ(bytes_per_cycle_per_sm(m, "l2.bandwidth", two_gigahertz)->value, 20) << form;
    }
}

TEST(Query, WhatIsMissingIsEmpty) {
    const Machine per_sm = machine("dram.bandwidth = \"11.84 B/clk/SM\"");
    EXPECT_EQ(bytes_per_cycle_per_sm(per_sm, "dram.bandwidth"), BytesPerCycle(11.84));  // needs nothing else
    EXPECT_EQ(dram_bandwidth(per_sm, two_gigahertz), std::nullopt);                     // no SM count
    const Machine per_gpu = machine("dram.bandwidth = \"1 TB/s\"");
    EXPECT_EQ(dram_bandwidth(per_gpu), Bandwidth(1e12));
    EXPECT_EQ(bytes_per_cycle(per_gpu, "dram.bandwidth"), std::nullopt);                        // no clock
    EXPECT_EQ(bytes_per_cycle_per_sm(per_gpu, "dram.bandwidth", two_gigahertz), std::nullopt);  // no SM count
    EXPECT_EQ(l2_bandwidth(per_gpu, two_gigahertz), std::nullopt);
}

TEST(Query, OneSmsRateInSeconds) {
    const Machine m = machine("load.rate = \"90 GB/s/SM\"");
    EXPECT_DOUBLE_EQ(bytes_per_cycle_per_sm(m, "load.rate", two_gigahertz)->value, 45);
}

TEST(Query, RatesAndPeaks) {
    const Machine both = machine(
        "sm.count = 10\nrate.generic.bf16.fp32 = \"500 FLOP/clk/SM\"\n"
        "peak.generic.bf16.fp32 = \"50 TFLOP/s\"");
    EXPECT_EQ(flops_per_cycle_per_sm(both, rate_key("generic", "bf16", "fp32")), FlopsPerCycle(500));
    EXPECT_EQ(peak_flops(both, "generic", "bf16", "fp32"), FlopRate(50e12));  // stated, not 10 x 500 x clock
    const Machine rate = machine("sm.count = 10\nrate.generic.bf16.fp32 = \"500 FLOP/clk/SM\"");
    EXPECT_EQ(peak_flops(rate, "generic", "bf16", "fp32"), std::nullopt);
    EXPECT_DOUBLE_EQ(peak_flops(rate, "generic", "bf16", "fp32", two_gigahertz)->value, 10e12);
    const Machine whole = machine("sm.count = 10\nrate.generic.bf16.fp32 = \"10 TFLOP/s\"");
    EXPECT_EQ(flops_per_cycle_per_sm(whole, "rate.generic.bf16.fp32"), std::nullopt);
    EXPECT_DOUBLE_EQ(flops_per_cycle_per_sm(whole, "rate.generic.bf16.fp32", two_gigahertz)->value, 500);
    EXPECT_EQ(peak_flops(whole, "generic", "bf16", "fp32"), FlopRate(10e12));
}

TEST(Query, TheFastestInstructionIsKnownWhereAllRatesAre) {
    const auto b200 = fastest_instruction(machine_by_id("b200"), "bf16", "fp32");
    ASSERT_TRUE(b200);
    EXPECT_EQ(b200->family, "tcgen05");
    EXPECT_EQ(b200->rate.value, 8192);
    EXPECT_EQ(fastest_instruction(machine_by_id("h200-sxm"), "bf16", "fp32")->family, "wgmma");
    EXPECT_EQ(fastest_instruction(machine_by_id("a100-80-sxm"), "bf16", "fp32")->family, "mma_sync");
    Machine half_known = machine_by_id("b200");
    half_known.facts.erase("rate.tcgen05.bf16.fp32");
    EXPECT_FALSE(fastest_instruction(half_known, "bf16", "fp32"));
}

TEST(Query, MatrixClockFallsBack) {
    Machine m = machine_by_id("h100-sxm");
    EXPECT_EQ(matrix_clock(m, "bf16")->key, "clock.sustained.bf16");
    EXPECT_EQ(matrix_clock(m, "tf32")->key, "clock.tensor");
    set_number(m, "clock.tensor=unknown");
    EXPECT_EQ(matrix_clock(m, "tf32")->key, "clock.boost");
    EXPECT_EQ(matrix_clock(m, "tf32")->clock, Clock(1.98e9));
    set_number(m, "clock.boost=unknown");
    EXPECT_FALSE(matrix_clock(m, "tf32"));
}

TEST(CalibrationNote, SaysWhoseFittedNumbersAPlanTakes) {
    const std::string fitted = "uncalibrated: what is fitted to runs was fitted on h200-sxm";  // and what is borrowed behind it
    EXPECT_EQ(calibration_note(machine_by_id("h200-sxm")), "");
    EXPECT_EQ(calibration_note(machine_by_id("h100-sxm")), "");
    EXPECT_EQ(calibration_note(machine_by_id("h20")).substr(0, fitted.size()), fitted);
    EXPECT_NE(calibration_note(machine_by_id("h20")).find("borrowed, not measured on this GPU: dram.latency"), std::string::npos);
    // Of another architecture: kernels' own numbers alone.
    EXPECT_EQ(calibration_note(machine_by_id("a40")).substr(0, fitted.size()), fitted);
    // Of kernels on mma.sync one number is fitted, too.
    EXPECT_EQ(calibration_note(machine_by_id("a40"), "stream.").substr(0, fitted.size()), fitted);
    Machine without = machine_by_id("a40");
    std::erase_if(without.facts, [](const auto& fact) { return !fact.second.calibration.empty(); });
    EXPECT_EQ(calibration_note(without), "uncalibrated: no number of this machine was fitted to runs; borrowed, not measured on this GPU: dram.latency, l2.latency");
    EXPECT_EQ(calibration_note(machine_by_id("h20"), "stream.").substr(0, fitted.size()), fitted);
}

}  // namespace
}  // namespace rooftile
