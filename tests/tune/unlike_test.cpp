#include "rooftile/tune/unlike.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

Record config(int tile, int stages, const char* order) { return {{"tile", tile}, {"stages", stages}, {"order", order}}; }

TEST(Unlike, CountsOctavesAndWords) {
    EXPECT_EQ(unlikeness(config(64, 4, "row"), config(64, 4, "row")), 0);
    EXPECT_EQ(unlikeness(config(64, 4, "row"), config(128, 4, "row")), 1);           // one octave
    EXPECT_EQ(unlikeness(config(64, 4, "row"), config(512, 4, "row")), 1);           // three, and one at most
    EXPECT_NEAR(unlikeness(config(64, 4, "row"), config(64, 3, "row")), 0.415, 1e-3);  // log2(4 / 3)
    EXPECT_EQ(unlikeness(config(64, 4, "row"), config(128, 4, "hilbert")), 2);
    EXPECT_EQ(unlikeness(config(64, 0, "row"), config(64, 2, "row")), 1);  // 0 has no octave
    EXPECT_EQ(unlikeness({{"split", 1}}, {{"split", 1.0}, {"parts", Record{{"tile", 8}}}}), 1);
    EXPECT_EQ(unlikeness({{"parts", Record{{"tile", 8}, {"order", "row"}}}}, {{"parts", Record{{"tile", 16}, {"order", "row"}}}}), 1);
    EXPECT_EQ(unlikeness({{"swap", true}, {"bits", std::nullopt}}, {{"swap", false}, {"bits", std::nullopt}}), 1);
}

/// Places 1 and 2 are neighbours of the first by a stage, 3 is another order, 4 another tile, 5 both.
TEST(Unlike, NeighboursAreLeftForOtherIdeas) {
    const Record configs[] = {config(128, 4, "row"), config(128, 3, "row"),   config(128, 5, "row"),
                              config(128, 4, "hilbert"), config(64, 4, "row"), config(64, 4, "hilbert")};
    using Places = std::vector<std::size_t>;
    EXPECT_EQ(unlike(configs, 1), (Places{0}));
    EXPECT_EQ(unlike(configs, 2), (Places{0, 5}));        // two keys apart
    EXPECT_EQ(unlike(configs, 4), (Places{0, 3, 4, 5}));  // one key apart
    EXPECT_EQ(unlike(configs, 5), (Places{0, 1, 3, 4, 5}));  // 3 stages are further from 4 than 5 are
    EXPECT_EQ(unlike(configs, 9), (Places{0, 1, 2, 3, 4, 5}));
    EXPECT_TRUE(unlike(std::span<const Record>(), 4).empty());
}

class UnlikePlans : public testing::TestWithParam<const Operation*> {};

TEST_P(UnlikePlans, AreThoseOfThePlannerThatDifferMost) {
    const Operation& operation = *GetParam();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const Given given = example_of(operation);
    const PlanSet set = operation.derive(machine, operation.problem(given), operation.request(given, {}));
    ASSERT_FALSE(set.plans.empty());
    std::vector<Record> configs;
    for (const Plan& plan : set.plans) configs.push_back(operation.config_record(plan));
    const auto least = [&](const std::vector<std::size_t>& places) {
        double least = 1e9;
        for (const std::size_t i : places)
            for (const std::size_t k : places)
                if (i != k) least = std::min(least, unlikeness(configs[i], configs[k]));
        return least;
    };
    const std::size_t count = std::min<std::size_t>(4, set.plans.size());
    const std::vector<std::size_t> chosen = unlike_plans(set.plans, 4);
    ASSERT_EQ(chosen.size(), count);
    EXPECT_EQ(chosen.front(), 0u);
    EXPECT_TRUE(std::ranges::is_sorted(chosen));
    std::vector<std::size_t> first(count);
    std::iota(first.begin(), first.end(), 0);
    EXPECT_GE(least(chosen), least(first));
    EXPECT_GT(least(chosen), 0);
}

INSTANTIATE_TEST_SUITE_P(Operations, UnlikePlans, testing::ValuesIn(operations().begin(), operations().end()), name_of_operation);

}  // namespace
}  // namespace rooftile
