#include "rooftile/machine/reader.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/machine/machine_text.hpp"

namespace rooftile {
namespace {

Machine read_machine_of(std::string_view body) { return parse_machine(with_head(body), "x.toml"); }
using Keys = std::vector<std::string>;

TEST(MachineReader, ConvertsToTheUnitsOfFormulas) {
    const Machine ten_sms = read_machine_of("sm.count = 10\nl2.latency = \"100 ns\"\nl2.bandwidth = \"400 GB/s\"");
    Keys unknown;
    const MachineReader read(ten_sms, Clock{2e9}, &unknown);
    EXPECT_EQ(read.clock(), 2e9);
    EXPECT_EQ(read.count("sm.count"), 10);
    EXPECT_DOUBLE_EQ(read.cycles("l2.latency"), 200);
    EXPECT_DOUBLE_EQ(read.bandwidth("l2.bandwidth"), 400e9);
    EXPECT_DOUBLE_EQ(read.bandwidth_per_sm("l2.bandwidth"), 20);
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
    const Machine seconds = read_machine_of("l2.latency = \"100 ns\"");
    Keys unknown;
    const MachineReader read(seconds, {}, &unknown);
    EXPECT_TRUE(std::isnan(read.cycles("l2.latency")));
    EXPECT_TRUE(std::isnan(read.clock()));
    EXPECT_EQ(unknown, Keys{"clock.boost"});
}

TEST(MachineReader, TakesTheFirstKeyThatIsKnown) {
    const Machine both = read_machine_of("dram.sustained_read = \"4 TB/s\"\ndram.bandwidth = \"4.8 TB/s\"");
    const Machine one = read_machine_of("dram.bandwidth = \"4.8 TB/s\""), none;
    for (const auto& [m, key] : {std::pair(both, "dram.sustained_read"), {one, "dram.bandwidth"}, {none, "dram.bandwidth"}})
        EXPECT_EQ(MachineReader(m, {}).first_known({"dram.sustained_read", "dram.bandwidth"}), key);
}

}  // namespace
}  // namespace rooftile
