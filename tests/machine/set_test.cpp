#include "rooftile/machine/set.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "rooftile/machine/query.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/machine/machine_text.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

Machine after(std::string_view assignment) {
    Machine machine = machine_by_id("h100-sxm");
    set_number(machine, assignment);
    return machine;
}

std::string says(std::string_view assignment) {
    return refusal([&] { after(assignment); });
}

TEST(SetNumber, AnyNumber) {
    EXPECT_EQ(after("sm.count=64").count("sm.count"), 64);
    EXPECT_EQ(after("l2.latency=200clk").number<Cycles>("l2.latency"), Cycles(200));
    EXPECT_EQ(after("clock.boost = 1.5 GHz").number<Clock>("clock.boost"), Clock(1.5e9));
    EXPECT_EQ(
        after("rate.wgmma.bf16.fp32=2048 FLOP/clk/SM").number<FlopsPerCycle>("rate.wgmma.bf16.fp32", Per::sm),
        FlopsPerCycle(2048));
    // Another form than the file's: the number is found under its new form only.
    const Machine per_second = after("l2.bandwidth=9.7 TB/s");
    EXPECT_EQ(per_second.number<Bandwidth>("l2.bandwidth"), Bandwidth(9.7e12));
    EXPECT_EQ(per_second.number<BytesPerCycle>("l2.bandwidth", Per::sm), std::nullopt);
    EXPECT_EQ(after("l2.size=1MiB").find("l2.size")->source, "--set");
    // A ratio needs no unit; it is written with its own.
    EXPECT_EQ(after("l2.coalesced=1.5").number<Ratio>("l2.coalesced"), Ratio(1.5));
    EXPECT_EQ(after("l2.coalesced=1.5").find("l2.coalesced")->text, "1.5 1");
}

double value_of(const Machine& machine, std::string_view key) { return machine.find(key)->value; }

Machine h200_after(const std::vector<std::string>& assignments) {
    Machine machine = machine_by_id("h200-sxm");
    set_numbers(machine, assignments);
    return machine;
}

// h200-sxm: dram.bandwidth 4.8 TB/s and 4.2 of it read; clock.boost 1.98 GHz, clock.tensor 1.83, bf16 sustains 1.33.
TEST(SetNumber, MeasuredNumbersKeepTheirShareOfTheRatedOne) {
    const Machine slow = after("dram.bandwidth=100 GB/s"), h100 = machine_by_id("h100-sxm");
    for (const char* key : {"dram.sustained_read", "dram.sustained_write", "dram.sustained_copy"})
        EXPECT_NEAR(value_of(slow, key) / value_of(h100, key), 0.1 / 3.35, 1e-9) << key;
    EXPECT_EQ(slow.find("dram.sustained_read")->source,
              "--set dram.bandwidth: 0.919 of dram.bandwidth, as before");

    const Machine half = h200_after({"dram.bandwidth=2.4 TB/s"});
    EXPECT_EQ(half.find("dram.sustained_read")->text, "2.1 TB/s");
    // 1200 B/clk x 1.98 GHz = 2.376 TB/s: the ratio is taken in one form.
    EXPECT_NEAR(value_of(h200_after({"dram.bandwidth=1200 B/clk"}), "dram.sustained_read"),
                4.2e12 * 2.376 / 4.8, 1e3);
    // The same number again changes nothing, not even a source.
    EXPECT_EQ(h200_after({"dram.bandwidth=4.8 TB/s"}).find("dram.sustained_read")->source,
              machine_by_id("h200-sxm").find("dram.sustained_read")->source);
}

TEST(SetNumber, ClocksFollowAndJoulesAreRestated) {
    const Machine h200 = machine_by_id("h200-sxm"), half = h200_after({"clock.boost=0.99 GHz"});
    EXPECT_EQ(half.find("clock.tensor")->text, "0.915 GHz");
    EXPECT_EQ(half.find("clock.sustained.bf16")->text, "0.665 GHz");
    EXPECT_EQ(half.find("clock.sustained.bf16")->source,
              "--set clock.boost: 0.727 of clock.tensor, as before");
    // Joules at the old sustained clock stay what they were: E (c / sustained)^1.5.
    for (const char* key : {"energy.flop.bf16", "energy.fill", "energy.shared_read", "energy.dram"})
        EXPECT_NEAR(value_of(half, key) * std::pow(2, 1.5) / value_of(h200, key), 1, 1e-9) << key;
    for (const char* key :
         {"power.sustained", "power.static", "l2.bandwidth", "rate.wgmma.bf16.fp32", "dram.sustained_read"})
        EXPECT_EQ(value_of(half, key), value_of(h200, key)) << key;
    EXPECT_NEAR(value_of(h200_after({"power.tdp=350 W"}), "power.sustained"), 345, 1e-9);
    EXPECT_EQ(value_of(h200_after({"sm.count=66"}), "cluster.sms_3"), 57);  // 58.5, in whole clusters
}

// What is given in seconds was fitted in cycles of the file's clock: it stays known under any other.
TEST(SetNumber, TheClockThatNumbersWereFittedWithStays) {
    const Machine h200 = machine_by_id("h200-sxm");
    EXPECT_EQ(fitted_clock(h200, "bf16")->value, 1.33e9);
    EXPECT_EQ(h200_after({"clock.sustained.bf16=1330 MHz", "dram.bandwidth=4.8 TB/s"}).hash(), h200.hash());
    Machine faster = h200_after({"clock.sustained.bf16=1.5 GHz"});
    EXPECT_EQ(matrix_clock(faster, "bf16")->clock.value, 1.5e9);
    EXPECT_EQ(faster.find("clock.fitted.bf16")->source, "clock.sustained.bf16 before --set");
    EXPECT_FALSE(faster.find("clock.fitted.fp8"));
    set_number(faster, "clock.boost=4 GHz");
    EXPECT_EQ(fitted_clock(faster, "bf16")->value, 1.33e9);
    EXPECT_EQ(fitted_clock(faster, "fp8")->value, 1.41e9);
    EXPECT_EQ(fitted_clock(faster, "tf32")->value, 1.83e9);  // that of clock.tensor: it has none of its own
    EXPECT_EQ(fitted_clock(h200_after({"clock.sustained.bf16=unknown"}), "bf16")->value, 1.33e9);
}

TEST(SetNumber, WhatIsSetItselfStaysWhateverTheOrder) {
    std::vector<std::string> settings{
        "dram.bandwidth=2.4 TB/s", "dram.sustained_read=2 TB/s",   "clock.boost=1 GHz",
        "clock.tensor=0.9 GHz",    "clock.sustained.fp16=0.8 GHz", "power.sustained=400 W",
        "power.tdp=500 W"};
    std::sort(settings.begin(), settings.end());
    const Machine first = h200_after(settings);
    EXPECT_EQ(value_of(first, "dram.sustained_read"), 2e12);
    EXPECT_EQ(value_of(first, "clock.sustained.fp16"), 0.8e9);
    EXPECT_NEAR(value_of(first, "clock.sustained.bf16"), 1.33e9 * 0.9 / 1.83, 1);
    EXPECT_EQ(value_of(first, "power.sustained"), 400);
    for (int round = 0; round < 20; ++round) {
        std::next_permutation(settings.begin(), settings.end());
        EXPECT_EQ(h200_after(settings).hash(), first.hash());
    }
}

TEST(SetNumber, RateAndPeakAreTwoWordsForOneThing) {
    const Machine h200 = machine_by_id("h200-sxm");
    const char *rate = "rate.wgmma.bf16.fp32", *peak = "peak.wgmma.bf16.fp32";
    // 132 SMs x 4096 FLOP/clk/SM x 1.83 GHz = 989.4 TFLOP/s
    const Machine half = h200_after({std::string(peak) + "=494.7 TFLOP/s"});
    EXPECT_NEAR(value_of(half, rate), 2048, 1);
    Machine stated = half;
    set_number(stated, std::string(rate) + "=1024 FLOP/clk/SM");
    EXPECT_NEAR(value_of(stated, peak), 494.7e12 / 2, 1e12);
    const Machine both =
        h200_after({std::string(rate) + "=1024 FLOP/clk/SM", std::string(peak) + "=500 TFLOP/s"});
    EXPECT_EQ(value_of(both, rate), 1024);
    EXPECT_EQ(value_of(both, peak), 500e12);
    // FLOP/s are stated at a clock.
    Machine h20 = machine_by_id("h20");
    set_number(h20, "clock.boost=0.99 GHz");
    EXPECT_NEAR(value_of(h20, "rate.fma.fp64.fp64"), 0.5e12, 1);
}

TEST(SetNumber, UnknownRemoves) {
    EXPECT_EQ(after("dram.latency=unknown").find("dram.latency"), nullptr);
    const Machine machine = after("wgmma=unknown");
    EXPECT_FALSE(machine.has("wgmma") || machine.lacks("wgmma"));
}

TEST(SetNumber, Features) {
    EXPECT_TRUE(after("wgmma=false").lacks("wgmma"));
    EXPECT_TRUE(after("features.tcgen05=true").has("tcgen05"));
    EXPECT_THAT(says("wgmma=1"), HasSubstr("accepted: true, false or unknown"));
}

TEST(SetNumber, Refusals) {
    EXPECT_EQ(says("l2.latency"),
              "--set \"l2.latency\": accepted is KEY=VALUE, as in --set l2.latency=200clk");
    EXPECT_EQ(says("l2.latencie=200clk"),
              "--set l2.latencie = \"200clk\": unknown key; did you mean \"l2.latency\"?");
    EXPECT_THAT(says("dram.bandwidth=1000"), HasSubstr("no unit; accepted: B/s, B/clk or B/clk/SM"));
    EXPECT_THAT(says("dram.bandwidth="), HasSubstr("empty"));
    EXPECT_THAT(says("=3"), HasSubstr("unknown key"));
    EXPECT_THAT(says(""), HasSubstr("KEY=VALUE"));
    EXPECT_THAT(says("l2=3"), HasSubstr("beginning of keys"));
    EXPECT_THAT(says("rate.*.*.*=3 FLOP/s"), HasSubstr("no instruction family"));
    EXPECT_THAT(says("sm.count=-3"), HasSubstr("negative"));
    EXPECT_THAT(says("sm.count=nan"), HasSubstr("not a decimal number"));
    EXPECT_THAT(says("sm.count=1e30"), HasSubstr("out of range"));
    EXPECT_THAT(says("id=x"), HasSubstr("unknown key"));
    EXPECT_THAT(says("a\nb=\x1b[31m"), HasSubstr("a?b = \"?[31m\""));
    EXPECT_THAT(says(std::string(5000, 'k') + "=" + std::string(5000, 'v')), HasSubstr("kkk..."));
}

TEST(SetNumber, ARefusalChangesNothing) {
    Machine machine = machine_by_id("h100-sxm");
    const std::string before = machine.hash();
    EXPECT_THROW(set_number(machine, "sm.count=0"), RequestError);
    EXPECT_EQ(machine.hash(), before);
}

TEST(SetFact, TakesTheCallersSource) {
    Machine machine;
    set_fact(machine, "sm.count", "132", "driver");
    EXPECT_EQ(machine.count("sm.count"), 132);
    EXPECT_EQ(machine.find("sm.count")->source, "driver");
}

TEST(Hash, ChangesWithWhatCanChangeAPlan) {
    const Machine machine = machine_by_id("h100-sxm");
    EXPECT_EQ(machine.hash().size(), 32u);
    EXPECT_EQ(machine.hash(), machine_by_id("h100-sxm").hash());
    for (const auto& [key, fact] : machine.facts) {
        Machine other = machine;
        other.facts.at(key).value *= 1.001;
        EXPECT_NE(other.hash(), machine.hash()) << key;
        other = machine;
        other.facts.erase(key);
        EXPECT_NE(other.hash(), machine.hash()) << key;
    }
    EXPECT_NE(after("wgmma=false").hash(), machine.hash());
    EXPECT_NE(after("wgmma=unknown").hash(), after("wgmma=false").hash());
    // The same number in other words, from elsewhere, is the same machine.
    EXPECT_EQ(after("dram.bandwidth=3350 GB/s").hash(), machine.hash());
    EXPECT_NE(after("dram.bandwidth=3351 GB/s").hash(), machine.hash());
}

}  // namespace
}  // namespace rooftile
