#include "rooftile/machine/reader.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

using Keys = std::vector<std::string>;

TEST(MachineReader, ConvertsToTheUnitsOfFormulas) {
    Machine machine = machine_by_id("h200-sxm");
    machine.facts["l2.latency"] = {.value = 1e-7, .dimension = Seconds::dimension, .text = {}, .source = {}};
    Keys unknown;
    const MachineReader read(machine, Clock{2e9}, &unknown);
    EXPECT_EQ(read.clock(), 2e9);
    EXPECT_EQ(read.count("sm.count"), 132);
    EXPECT_DOUBLE_EQ(read.cycles("l2.latency"), 200);
    EXPECT_DOUBLE_EQ(read.bandwidth("l2.bandwidth") / 132 / 2e9, read.bandwidth_per_sm("l2.bandwidth"));
    EXPECT_EQ(unknown, Keys{});
}

TEST(MachineReader, NamesWhatIsMissedOnce) {
    const Machine none;
    Keys unknown;
    const MachineReader read(none, {}, &unknown), optional(none, {});
    EXPECT_TRUE(std::isnan(read.count("sm.count")));
    EXPECT_TRUE(std::isnan(read.count("sm.count")));
    EXPECT_TRUE(std::isnan(optional.number<Bytes>("l2.size")));
    EXPECT_EQ(unknown, Keys{"sm.count"});
}

// A latency in seconds is known: without a clock what is missing is the clock.
TEST(MachineReader, MissesTheClockNotWhatItConverts) {
    Machine machine;
    machine.facts["l2.latency"] = {.value = 1e-7, .dimension = Seconds::dimension, .text = {}, .source = {}};
    Keys unknown;
    const MachineReader read(machine, {}, &unknown);
    EXPECT_TRUE(std::isnan(read.cycles("l2.latency")));
    EXPECT_TRUE(std::isnan(read.clock()));
    EXPECT_EQ(unknown, Keys{"clock.boost"});
}

TEST(MachineReader, TakesTheFirstKeyThatIsKnown) {
    Machine machine = machine_by_id("h200-sxm");
    const MachineReader read(machine, {});
    EXPECT_EQ(read.first_known({"dram.sustained_read", "dram.bandwidth"}), "dram.sustained_read");
    machine.facts.erase("dram.sustained_read");
    EXPECT_EQ(read.first_known({"dram.sustained_read", "dram.bandwidth"}), "dram.bandwidth");
    machine.facts.erase("dram.bandwidth");
    EXPECT_EQ(read.first_known({"dram.sustained_read", "dram.bandwidth"}), "dram.bandwidth");
}

}  // namespace
}  // namespace rooftile
