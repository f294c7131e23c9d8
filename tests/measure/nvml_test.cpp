#include "rooftile/measure/nvml.hpp"

#include <gtest/gtest.h>

namespace rooftile {
namespace {

TEST(GpuStateMeans, AreKeptApartBySlot) {
    const std::vector<std::pair<int, GpuState>> samples = {
        {0, {1000.0, 300.0, 50.0, 0x4}},
        {2, {1500.0, std::nullopt, 60.0, 0x20}},
        {0, {1400.0, 500.0, std::nullopt, 0x0}},
    };
    const auto means = means_by_slot(samples);
    ASSERT_EQ(means.size(), 3u);
    EXPECT_EQ(means[0].sm_clock_mhz, 1200.0);  // (1000 + 1400) / 2
    EXPECT_EQ(means[0].power_w, 400.0);
    EXPECT_EQ(means[0].temperature_c, 50.0);
    EXPECT_EQ(means[0].clock_reasons, 0x4u);
    EXPECT_EQ(means[0].samples, 2);
    EXPECT_EQ(means[1].samples, 0);
    EXPECT_FALSE(means[1].sm_clock_mhz);
    EXPECT_EQ(means[2].sm_clock_mhz, 1500.0);
    EXPECT_FALSE(means[2].power_w);
}

TEST(Nvml, MissingGpuIsNoError) {
    EXPECT_EQ(Nvml::open("ffff:ff:1f.0"), nullptr);
    GpuSampler sampler(nullptr);
    sampler.attribute(0);
    EXPECT_TRUE(sampler.stop().empty());
}

TEST(Nvml, ReasonsAsWords) {
    EXPECT_EQ(clock_reason_words(0), "");
    EXPECT_EQ(clock_reason_words(0x1), "");  // idle
    EXPECT_EQ(clock_reason_words(0x4 | 0x20), "power cap, thermal");
}

}  // namespace
}  // namespace rooftile
