// The interval of caches of one length and one query, held against records that its fit did not see.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include <nlohmann/json.hpp>

#include "rooftile/attention/operation.hpp"
#include "rooftile/core/interval.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

TEST(AttentionInterval, HoldsCachesThatTheFitDidNotSee) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/bench/results/history/2026-11-29-h200-decode-7112138.jsonl");
    if (!file) GTEST_SKIP() << "skipped: no records here";
    const Operation& operation = attention_operation();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    int within = 0, all = 0;
    for (std::string line; std::getline(file, line);) {
        const auto row = nlohmann::json::parse(line);
        if (!row.contains("problem")) continue;
        Given given;
        const char* const keys[] = {"batch", "heads", "kv_heads", "kv", "dim"};
        for (std::size_t i = 0; i < std::size(keys); ++i) given.add(keys[i], row.at("problem").at(i).dump());
        given.add("q", "1");
        const PlanSet plans = operation.derive(machine, operation.problem(given), operation.request(given, {.top = 1, .buildable_only = true}));
        ASSERT_EQ(plans.plans.size(), 1u) << line;
        const auto& interval = plans.plans.front().interval;
        ASSERT_TRUE(interval) << line;
        EXPECT_EQ(interval->machine, "h200-sxm");
        ++all;
        within += row.at("time_us") >= interval->low_us && row.at("time_us") <= interval->high_us;
    }
    EXPECT_EQ(all, 15);
    EXPECT_GE(within, 13);  // of 15 a coverage of 90 % leaves out two
}

/// Other caches have no records: pages, lengths of their own, several queries.
TEST(AttentionInterval, OtherCachesAreAnotherKind) {
    Random random(3);
    int alike = 0, others = 0;
    for (int i = 0; i < 60; ++i) {
        const Problem problem = attention_operation().draw(random, {.law = "decode"});
        const auto given = attention_operation().given(problem);
        const bool one_length = given.text("q") == "1" && !given.has("lengths") && !given.has("page");
        EXPECT_EQ(attention_operation().traits(problem).law, one_length ? "decode_alike" : "decode") << given.text();
        ++(one_length ? alike : others);
    }
    EXPECT_GT(alike, 5);
    EXPECT_GT(others, 5);
}

}  // namespace
}  // namespace rooftile
