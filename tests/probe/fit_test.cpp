#include "rooftile/probe/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/probe/h200_loads.hpp"

namespace rooftile {
namespace {

TEST(ProbeFit, SpreadIsHalfTheMiddleEightyPercent) {
    // 0 ... 10: the 10 % quantile is 1, the 90 % one 9, half their distance 4; the median 5.
    std::vector<double> samples;
    for (int i = 10; i >= 0; --i) samples.push_back(i);
    const ProbeValue value = probe_value("x", "", "ns", samples);
    EXPECT_DOUBLE_EQ(value.value, 5);
    EXPECT_DOUBLE_EQ(value.spread, 4);
    EXPECT_EQ(value.samples, 11);
    // One wild sample of eleven moves neither.
    samples[0] = 1e9;
    EXPECT_DOUBLE_EQ(probe_value("x", "", "ns", samples).spread, 4);
    EXPECT_DOUBLE_EQ(probe_value("x", "", "ns", {}).value, 0);
}

TEST(ProbeFit, Line) {
    // y = 600 + x / 50.
    const double x[] = {128, 1024, 8192, 32768}, y[] = {602.56, 620.48, 763.84, 1255.36};
    const Line line = fit_line(x, y);
    EXPECT_NEAR(line.intercept, 600, 1e-9);
    EXPECT_NEAR(line.slope, 0.02, 1e-12);
}

TEST(ProbeFit, TwoGroupsOfLatencies) {
    std::vector<double> cycles;
    for (int i = 0; i < 300; ++i) cycles.push_back(200 + i % 5);  // mean 202
    for (int i = 0; i < 100; ++i) cycles.push_back(400 + i % 5);
    const TwoGroups groups = two_groups(cycles);
    EXPECT_DOUBLE_EQ(groups.low, 202);
    EXPECT_DOUBLE_EQ(groups.high, 402);
    EXPECT_DOUBLE_EQ(groups.high_share, 0.25);
    EXPECT_DOUBLE_EQ(two_groups({7, 7, 7}).low, 7);
    EXPECT_DOUBLE_EQ(two_groups({7, 7, 7}).high, 7);
}

TEST(ProbeFit, BytesInFlightGiveLatencyAndCap) {
    // Latency 680 ns and 38760 B outstanding at most: 57 GB/s from there on.
    std::vector<double> bytes, rates;
    for (const double KiB : {4, 8, 16, 32, 48, 64, 96, 128, 192}) {
        bytes.push_back(KiB * 1024);
        rates.push_back(std::min(bytes.back(), 38760.0) / 680e-9);
    }
    // 2 % at the shallowest, from which the latency comes, and 1 % on the plateau.
    std::vector<double> spreads;
    for (const double rate : rates) spreads.push_back(rate / 100);
    spreads[0] *= 2;
    const InFlightFit fit = fit_in_flight(bytes, rates, spreads);
    EXPECT_NEAR(fit.latency_s, 680e-9, 1e-12);
    EXPECT_NEAR(fit.rate, 57e9, 1e6);
    EXPECT_NEAR(fit.cap_bytes, 38760, 1);
    EXPECT_NEAR(fit.cap_spread, 0.03 * 38760, 1);
    EXPECT_LT(fit.worst, 1e-9);
    // A latency that grows with the load is no cap: the formula then says how far off it is.
    for (std::size_t i = 0; i < bytes.size(); ++i) rates[i] = bytes[i] / (680e-9 + bytes[i] / 57e9);
    EXPECT_GT(fit_in_flight(bytes, rates, spreads).worst, 0.15);
}

TEST(ProbeFit, NonnegativeLeastSquares) {
    const std::vector<std::vector<double>> rows = {{1, 0}, {1, 1}, {1, 2}, {1, 3}};
    const double rising[] = {5, 7, 9, 11};
    EXPECT_NEAR(nonnegative_least_squares(rows, rising)[0], 5, 1e-9);
    EXPECT_NEAR(nonnegative_least_squares(rows, rising)[1], 2, 1e-9);
    // Falling: the slope would be negative, so it is 0, and the constant is the mean.
    const double falling[] = {11, 9, 7, 5};
    EXPECT_NEAR(nonnegative_least_squares(rows, falling)[0], 8, 1e-9);
    EXPECT_EQ(nonnegative_least_squares(rows, falling)[1], 0);
}

/// Loads of a made-up GPU whose joules are known.
std::vector<EnergyPoint> made_up(double exponent) {
    struct Load {
        double clock, sms, flops_clk, zero_clk, fill_clk, dram_clk, shared_clk;  // rates: a clock and SM
    };
    constexpr Load loads[] = {
        {1.9e9, 132, 0, 0, 0, 0, 0},      {1.4e9, 132, 4096, 0, 0, 0, 80},  {1.9e9, 132, 0, 4096, 0, 0, 0},
        {1.3e9, 132, 4000, 0, 48, 0, 78}, {1.5e9, 132, 4096, 0, 16, 0, 80}, {1.8e9, 132, 0, 0, 40, 0, 0},
        {1.85e9, 132, 0, 0, 17, 17, 0},   {1.9e9, 66, 4096, 0, 0, 0, 80},   {1.9e9, 33, 4096, 0, 0, 0, 80},
        {1.9e9, 66, 0, 0, 25, 25, 0},     {1.4e9, 132, 4096, 0, 0, 0, 128}, {1.9e9, 66, 4096, 0, 0, 0, 96}};
    std::vector<EnergyPoint> points;
    for (const Load& l : loads) {
        EnergyPoint p;
        const double all = l.clock * l.sms;
        p.clock_hz = l.clock;
        p.flops = all * l.flops_clk, p.zero_flops = all * l.zero_clk;
        p.fill_bytes = all * l.fill_clk, p.dram_bytes = all * l.dram_clk;
        p.shared_bytes = all * l.shared_clk;
        // Joules are those at 1.33 GHz.
        p.power_w = 130
                    + std::pow(l.clock / 1.33e9, exponent)
                          * (p.flops * 0.5e-12 + p.zero_flops * 0.1e-12 + p.fill_bytes * 15e-12
                             + p.dram_bytes * 50e-12 + p.shared_bytes * 4e-12);
        points.push_back(p);
    }
    return points;
}

TEST(ProbeFit, EnergyComesBack) {
    for (const double exponent : {0.0, 1.5, 2.2}) {
        const EnergyFit fit = fit_energy(made_up(exponent), 1.33e9);
        EXPECT_DOUBLE_EQ(fit.exponent, exponent);
        EXPECT_NEAR(fit.static_w, 130, 1e-3);
        EXPECT_NEAR(fit.flop_j, 0.5e-12, 1e-17);
        EXPECT_NEAR(fit.zero_flop_j, 0.1e-12, 1e-17);
        EXPECT_NEAR(fit.fill_j, 15e-12, 1e-16);
        EXPECT_NEAR(fit.dram_j, 50e-12, 1e-15);
        EXPECT_NEAR(fit.shared_j, 4e-12, 1e-15);
        EXPECT_LT(fit.rms_w, 1e-3);
    }
    // At another reference clock the same loads: (1.995 / 1.33)^2 = 2.25 times the joules, the same watts.
    const EnergyFit fit = fit_energy(made_up(2), 1.995e9);
    EXPECT_NEAR(fit.flop_j, 2.25 * 0.5e-12, 1e-17);
    EXPECT_NEAR(fit.fill_j, 2.25 * 15e-12, 1e-16);
    EXPECT_NEAR(fit.static_w, 130, 1e-3);
}

TEST(ProbeFit, EnergyNamesTheResidual) {
    std::vector<EnergyPoint> points = made_up(1.5);
    points[3].power_w += 50;
    const EnergyFit fit = fit_energy(points, 1.33e9, 1.5);
    EXPECT_GT(fit.rms_w, 2);
    ASSERT_EQ(fit.residual_w.size(), points.size());
    EXPECT_GT(fit.residual_w[3], 5);
    // Without that one load the numbers are right again: the spread tells.
    const EnergySpread spread = leave_one_out(points, 1.33e9);
    EXPECT_LE(spread.least.flop_j, 0.5e-12 + 1e-16);
    EXPECT_GE(spread.most.flop_j, 0.5e-12 - 1e-16);
}

TEST(ProbeFit, EnergiesOfAnH200) {
    const std::vector<EnergyPoint> all = h200_loads();
    std::vector<EnergyPoint> points;
    for (const EnergyPoint& p : all)
        if (p.label.find("LDS") == std::string::npos) points.push_back(p);
    ASSERT_EQ(all.size(), 20u);
    ASSERT_EQ(points.size(), 18u);
    const EnergyFit fit = fit_energy(points, 1.33e9);
    const EnergySpread spread = leave_one_out(points, 1.33e9);
    const auto told = [&](double EnergyFit::*term, double scale, double share, double low, double high) {
        EXPECT_GE(fit.*term * scale, low);
        EXPECT_LE(fit.*term * scale, high);
        // One load more or less moves it by no more than this share.
        EXPECT_LE(spread.most.*term - fit.*term, share * fit.*term);
        EXPECT_LE(fit.*term - spread.least.*term, share * fit.*term);
    };
    told(&EnergyFit::static_w, 1, 0.1, 125, 150);  // idle draws 122 W, a spinning warp an SM 134
    told(&EnergyFit::flop_j, 1e12, 0.15, 0.42, 0.50);
    // N = 64 and 128 beside 256 tell it, on operands read again and again.
    told(&EnergyFit::shared_j, 1e12, 1.0, 1, 6);
    told(&EnergyFit::fill_j, 1e12, 0.1, 14, 18);
    told(&EnergyFit::exponent, 1, 0.15, 1.2, 2.2);
    // Only two loads use DRAM, and a tenth of the SMs draws 34 W more than bytes account for.
    told(&EnergyFit::dram_j, 1e12, 0.5, 40, 60);
    EXPECT_LT(fit.rms_w, 16);
    // Two probes of one H200 differed by 13.5 W of static power and 1.2 pJ a byte filled.
    EXPECT_GT(2 * spread.error.static_w, 13.5);
    EXPECT_GT(2 * spread.error.fill_j, 1.2e-12);
    EXPECT_LT(spread.error.static_w, 25);
    // The limit of 700 W held seven loads, at 665 to 688 W.
    const ProbeValue held = probe_value("", "", "W", sustained_power(points));
    EXPECT_EQ(held.samples, 7);
    EXPECT_NEAR(held.value, 684.6, 0.1);
    EXPECT_TRUE(sustained_power(std::span(points).first(2)).empty());
}

}  // namespace
}  // namespace rooftile
