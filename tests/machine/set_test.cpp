#include "rooftile/machine/set.hpp"

#include <gmock/gmock.h>

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
