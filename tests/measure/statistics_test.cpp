#include "rooftile/measure/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rooftile {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({5}), 5);
    EXPECT_EQ(median({9, 1, 5}), 5);
    EXPECT_EQ(median({9, 1, 5, 4}), 4.5);  // (4 + 5) / 2
}

// The true median lies below the least or above the greatest of n samples with probability 2 / 2^n:
// n = 6: 1 - 2/64 = 0.96875; n = 5: 1 - 2/32 = 0.9375, less than 95 %.
TEST(MedianInterval, OfSixSamplesIsTheirRange) {
    const MedianInterval six = median_interval({3, 1, 2, 6, 5, 4});
    EXPECT_EQ(six.median, 3.5);
    EXPECT_EQ(six.low, 1);
    EXPECT_EQ(six.high, 6);
    EXPECT_NEAR(six.coverage, 0.96875, 1e-12);
    EXPECT_EQ(six.samples, 6);
    EXPECT_NEAR(median_interval({1, 2, 3, 4, 5}).coverage, 0.9375, 1e-12);
}

// n = 9: P(X <= 1) = (1 + 9) / 512 = 0.01953; ranks 2 and 8 cover 1 - 2 x 0.01953 = 0.9609.
// One further in: P(X <= 2) = 46 / 512 = 0.0898 covers 0.82 only.
TEST(MedianInterval, OfNineSamplesLeavesOneOutOnEachSide) {
    const MedianInterval nine = median_interval({10, 20, 30, 40, 50, 60, 70, 80, 90});
    EXPECT_EQ(nine.low, 20);
    EXPECT_EQ(nine.high, 80);
    EXPECT_NEAR(nine.coverage, 1 - 2 * 10.0 / 512, 1e-12);
}

TEST(MedianInterval, OfOneSampleCoversNothing) {
    const MedianInterval one = median_interval({7});
    EXPECT_EQ(one.low, 7);
    EXPECT_EQ(one.high, 7);
    EXPECT_NEAR(one.coverage, 0, 1e-12);
    EXPECT_EQ(median_interval({}).samples, 0);
}

// Published tables of the sign test's interval: n = 20: ranks 6, 15; n = 100: ranks 40, 61 (the pair 41, 60
// covers 0.9431).
TEST(MedianInterval, RanksAgreeWithTables) {
    EXPECT_EQ(interval_rank(20), 6u);
    EXPECT_EQ(interval_rank(100), 40u);
    EXPECT_EQ(interval_rank(2000), 956u);  // 1000 - 1.96 x sqrt(500) = 956.2; 2^-2000 is below any double
}

TEST(MedianInterval, ContainsTheMedian) {
    std::vector<double> samples;
    for (int n = 1; n <= 200; ++n) {
        samples.push_back((n * 7919) % 1009);
        const MedianInterval m = median_interval(samples);
        EXPECT_LE(m.low, m.median);
        EXPECT_LE(m.median, m.high);
        if (n >= 6) { EXPECT_GE(m.coverage, 0.95); }
    }
}

TEST(Interleaved, EveryRoundVisitsEachOnceInOrdersThatDiffer) {
    const auto orders = interleaved(5, 40, 1);
    ASSERT_EQ(orders.size(), 40u);
    std::set<std::size_t> first;
    for (std::vector<std::size_t> order : orders) {
        first.insert(order.front());
        std::sort(order.begin(), order.end());
        EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    }
    EXPECT_EQ(first.size(), 5u);
    EXPECT_EQ(interleaved(5, 40, 1), orders);
    EXPECT_NE(interleaved(5, 40, 2), orders);
}

}  // namespace
}  // namespace rooftile
