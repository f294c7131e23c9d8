// Which counters are asked for, what they come to, and how CUPTI's answers are taken. Its host side knows
// every chip without a GPU, so that no name and no count of passes here waits for one.
#include "rooftile/measure/counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "rooftile/measure/cupti.hpp"

namespace rooftile {
namespace {

using M = CounterMetric;

TEST(CounterGroups, CountEveryMetricOnceOnHopper) {
    std::set<M> seen;
    for (const CounterGroup& group : counter_groups("GH100")) {
        ASSERT_EQ(group.metrics.size(), group.names.size());
        for (const M metric : group.metrics) EXPECT_TRUE(seen.insert(metric).second);
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(M::dram_write_bytes) + 1);
}

TEST(CounterGroups, WritesBackWhereDramIsCountedAndNowhereElse) {
    for (const std::string_view chip : counted_chips()) {
        for (const CounterGroup& group : counter_groups(chip)) {
            const bool dram = std::count(group.metrics.begin(), group.metrics.end(), M::dram_write_bytes) > 0;
            EXPECT_EQ(group.write_back, dram) << chip;
            // The read that drives out dirty lines would be counted in every other metric too.
            if (dram) { EXPECT_EQ(group.metrics, (std::vector{M::dram_read_bytes, M::dram_write_bytes})); }
        }
    }
}

TEST(CounterGroups, AnUnknownChipHasNone) { EXPECT_TRUE(counter_groups("GX999").empty()); }

class CuptiHost : public testing::Test {
  protected:
    void SetUp() override {
        std::string missing;
        cupti_ = Cupti::open(missing);
        if (!cupti_) GTEST_SKIP() << "skipped: " << missing;
    }
    std::shared_ptr<const Cupti> cupti_;
};

TEST_F(CuptiHost, KnowsEveryNameAndCountsEachGroupInOnePass) {
    for (const std::string_view chip : counted_chips()) {
        const std::vector<CounterGroup> groups = counter_groups(chip);
        EXPECT_EQ(groups.size(), 4u) << chip;  // so many times the launches run
        for (const CounterGroup& group : groups) {
            const CounterSet set(cupti_, std::string(chip), group.names);  // throws for an unknown name
            EXPECT_EQ(set.passes(), 1u) << chip << " " << group.names.front();
        }
    }
}

TEST_F(CuptiHost, RefusesAMetricThatTheChipLacks) {
    try {
        CounterSet(cupti_, "GA100", {"dram__bytes_read.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_STREQ(error.what(), "this GPU has no metric sm__inst_executed_pipe_tensor_op_gmma.sum");
    }
}

TEST_F(CuptiHost, RefusesAChipThatItDoesNotKnow) {
    try {
        CounterSet(cupti_, "GX999", {"dram__bytes_read.sum"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::gpu_failed);
        EXPECT_NE(std::string(error.what()).find("CUPTI_ERROR_INVALID_CHIP_NAME (46)"), std::string::npos)
            << error.what();
    }
}

// Hits and reads together take two passes: that is why they are counted apart.
TEST_F(CuptiHost, SaysWhereOnePassIsNotEnough) {
    const CounterSet set(
        cupti_, "GH100",
        {"lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"});
    EXPECT_EQ(set.passes(), 2u);
}

TEST_F(CuptiHost, TellsRefusalsFromFaults) {
    const Error denied = cupti_->error_of("cuptiRangeProfilerStart", 35);
    EXPECT_EQ(denied.code(), ExitCode::counters_denied);
    const std::string line = denied.what();
    for (const char* part : {"cuptiRangeProfilerStart", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)",
                             "NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "--counters"})
        EXPECT_NE(line.find(part), std::string::npos) << line;
    for (const int refusal : {23, 26, 33, 39, 40, 41, 42, 43, 44, 45})
        EXPECT_EQ(cupti_->error_of("x", refusal).code(), ExitCode::counters_denied) << refusal;
    for (const int fault : {1, 7, 9, 15, 17, 46, 999, 123456})
        EXPECT_EQ(cupti_->error_of("x", fault).code(), ExitCode::gpu_failed) << fault;
    EXPECT_NO_THROW(cupti_->check("x", 0));
    EXPECT_THROW(cupti_->check("x", 35), Error);
}

// 8 launches. 80000 ns together: 10 us each. 1.5e9 cycles a second are 1500 MHz. 4000 sectors of 32 B read:
// 16000 B a launch, of which 3000 sectors hit: 0.75.
TEST(CounterValuesOf, AreOfOneLaunchInTheirUnits) {
    const CounterValues v = counter_values({{M::time_ns, 80000},
                                            {M::clock_hz, 1.5e9},
                                            {M::sm_cycles, 120000},
                                            {M::tensor_active_percent, 87.5},
                                            {M::tensor_instructions, 4096},
                                            {M::l2_read_sectors, 4000},
                                            {M::l2_read_hit_sectors, 3000},
                                            {M::dram_write_bytes, 800}},
                                           8);
    EXPECT_EQ(v.launches, 8);
    EXPECT_DOUBLE_EQ(*v.time_us, 10);
    EXPECT_DOUBLE_EQ(*v.sm_clock_mhz, 1500);
    EXPECT_DOUBLE_EQ(*v.sm_cycles, 15000);
    EXPECT_DOUBLE_EQ(*v.tensor_active_share, 0.875);
    EXPECT_DOUBLE_EQ(*v.tensor_instructions, 512);
    EXPECT_DOUBLE_EQ(*v.l2_read_bytes, 16000);
    EXPECT_DOUBLE_EQ(*v.l2_hit_rate, 0.75);
    EXPECT_DOUBLE_EQ(*v.dram_write_bytes, 100);
    EXPECT_FALSE(v.dram_read_bytes);
    EXPECT_FALSE(v.l2_fabric_bytes);
}

// A part of a GPU is answered with NaN for units that it shares.
TEST(CounterValuesOf, WhatIsNotANumberStaysEmpty) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const RawCounters rest =
        without({{M::dram_read_bytes, nan}, {M::l2_read_sectors, 8}}, {{M::dram_read_bytes, 5}});
    const CounterValues v = counter_values(rest, 8);
    EXPECT_FALSE(v.dram_read_bytes);
    EXPECT_DOUBLE_EQ(*v.l2_read_bytes, 32);
    EXPECT_FALSE(v.l2_hit_rate);
    const CounterValues unread = counter_values({{M::l2_read_sectors, 0}, {M::l2_read_hit_sectors, 0}}, 8);
    EXPECT_FALSE(unread.l2_hit_rate);
}

TEST(CounterValuesOf, OwnTrafficIsSubtractedAndNothingFallsBelowZero) {
    const RawCounters rest = without({{M::dram_read_bytes, 1000}, {M::dram_write_bytes, 30}},
                                     {{M::dram_read_bytes, 900}, {M::dram_write_bytes, 40}});
    EXPECT_EQ(rest.at(M::dram_read_bytes), 100);
    EXPECT_EQ(rest.at(M::dram_write_bytes), 0);
}

}  // namespace
}  // namespace rooftile
