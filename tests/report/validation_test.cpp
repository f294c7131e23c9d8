// What a ledger says of planner and model, by hand on the toy operation: it keeps 128, 256, 512 and 1024 threads in this order
// and predicts the same time for all.
#include "rooftile/report/validation.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"
#include "tests/core/toy_operation.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Machine> machine() {
    return std::make_shared<const Machine>(machine_by_id("h200-sxm"));
}

/// Times of 128, 256, 512 and 1024 threads.
LedgerEntry entry_of(std::vector<double> first_us) {
    LedgerEntry entry;
    entry.problem = toy_operation().problem(example_of(toy_operation()));
    int threads = 128;
    for (const double us : first_us) {
        entry.members.push_back({{{"kernel", "toy_sum"}, {"threads", threads}}, 10.0, us, true, {}});
        threads *= 2;
    }
    entry.kept = 4;
    return entry;
}

Ledger ledger_of(std::vector<LedgerEntry> entries) {
    Ledger ledger;
    ledger.file = "toy.jsonl", ledger.gpu = "made up", ledger.date = "2026-01-01T00:00:00Z";
    ledger.operation = &toy_operation();
    ledger.entries = std::move(entries);
    return ledger;
}

Validation validated(std::vector<LedgerEntry> entries) {
    return validation_of({ledger_of(std::move(entries))}, machine(), [](std::size_t count, const auto& work) {
        for (std::size_t i = 0; i < count; ++i) work(i);
    });
}

TEST(Validation, RegretIsOverTheFastestMember) {
    const Validation v = validated({entry_of({20, 16, 40, 10})});
    EXPECT_EQ(v.judged, 1);
    EXPECT_DOUBLE_EQ(*v.regret.mean, 2);        // 128 threads take 20 us, the fastest 10
    EXPECT_DOUBLE_EQ(*v.best_of[0].mean, 1.6);  // 256 threads
    EXPECT_DOUBLE_EQ(*v.best_of[1].mean, 1);    // all four
    EXPECT_EQ(v.outside, 0);
}

TEST(Validation, MeansOfRatiosAreGeometric) {
    const Validation v = validated({entry_of({20, 20, 20, 10}), entry_of({80, 20, 20, 10})});
    EXPECT_DOUBLE_EQ(*v.regret.mean, 4);  // of 2 and 8
    EXPECT_DOUBLE_EQ(*v.regret.p95, 8);
    EXPECT_DOUBLE_EQ(*v.regret.max, 8);
}

// 256 threads were re-timed 5 % above their first time, and settled another 10 % above that: so all others are.
TEST(Validation, TimesOfAllMembersStandInOneFrame) {
    LedgerEntry entry = entry_of({30, 20, 40, 50});
    entry.again = {{.member = 1, .us = 21, .settled_us = 23.1}};
    const Validation v = validated({entry});
    EXPECT_DOUBLE_EQ(v.problems[0].best_us, 23.1);
    EXPECT_NEAR(*v.problems[0].plan_us, 30 * 1.05 * 1.1, 1e-9);
}

// What was timed once is not the fastest where others were timed again: noise alone may have put it ahead.
TEST(Validation, TheFastestIsOneThatWasTimedAgain) {
    LedgerEntry entry = entry_of({20, 10, 9.9, 30});
    entry.again = {{.member = 0, .us = 20}, {.member = 1, .us = 10}};
    const Validation v = validated({entry});
    EXPECT_DOUBLE_EQ(v.problems[0].best_us, 10);
    EXPECT_DOUBLE_EQ(*v.regret.mean, 2);
}

TEST(Validation, AWrongResultIsNeverTheFastest) {
    LedgerEntry entry = entry_of({20, 16, 40, 10});
    entry.members[3].right = false;
    EXPECT_DOUBLE_EQ(*validated({entry}).regret.mean, 1.25);
}

TEST(Validation, APlanThatIsNoMemberIsCountedAndStoodInFor) {
    LedgerEntry entry = entry_of({20, 16, 40, 10});
    entry.members.erase(entry.members.begin());
    const Validation v = validated({entry});
    EXPECT_EQ(v.outside, 1);
    EXPECT_DOUBLE_EQ(*v.regret.mean, 1.6);  // all are predicted alike: 256 threads, the first of them
}

TEST(Validation, ADuplicateGivesTheNoise) {
    LedgerEntry entry = entry_of({20, 16, 40, 10});
    entry.again = {{.member = 3, .us = 10}};
    entry.duplicate = LedgerAgain{3, 10.2};
    EXPECT_NEAR(*validated({entry}).noise_floor, 0.02, 1e-12);
    entry.again[0].settled_us = 11, entry.duplicate->settled_us = 10.89;
    EXPECT_NEAR(*validated({entry}).noise_floor, 0.01, 1e-12);
}

TEST(Validation, PickersAreJudgedByTheSameTimes) {
    LedgerEntry entry = entry_of({20, 16, 40, 10});
    entry.picks = {{"widest", 3}, {"narrow", 2}};
    const Validation v = validated({entry, entry_of({20, 16, 40, 10})});
    ASSERT_EQ(v.pickers.size(), 2u);
    EXPECT_EQ(v.pickers[0].name, "narrow");
    EXPECT_EQ(v.pickers[0].problems, 1);
    EXPECT_DOUBLE_EQ(*v.pickers[0].regret.mean, 4);
    EXPECT_DOUBLE_EQ(*v.pickers[1].regret.mean, 1);
}

TEST(Validation, ShortProblemsStandApart) {
    const Validation v = validated({entry_of({4, 3, 3, 2}), entry_of({20, 16, 40, 10})});
    EXPECT_EQ(v.judged, 1);
    EXPECT_EQ(v.shorts, 1);
    EXPECT_DOUBLE_EQ(*v.short_behind_us, 2);
    EXPECT_DOUBLE_EQ(*v.regret.mean, 2);
}

TEST(Validation, ErrorsAreThoseOfTodaysPrediction) {
    const Validation v = validated({entry_of({20, 16, 40, 10})});
    const double predicted = *v.problems[0].plan_predicted_us;
    EXPECT_NEAR(*v.prediction_error.mean, std::fabs(predicted / 20 - 1), 1e-12);
    EXPECT_EQ(v.problems[0].errors.size(), 4u);
    EXPECT_FALSE(v.rank_correlation);  // all are predicted alike
}

TEST(Validation, ThresholdsThatAreMissedAreNamed) {
    const Validation v = validated({entry_of({20, 16, 40, 10})});
    EXPECT_THAT(missed_thresholds(v, {"regret.mean=2", "best_of.8=1"}), ElementsAre());
    EXPECT_THAT(missed_thresholds(v, {"regret.mean=1.5", "rank_correlation=0.9"}),
                ElementsAre("regret.mean of toy: 2.0000; wanted at most 1.5",
                            "rank_correlation of toy: unknown; wanted at least 0.9"));
    for (const char* text : {"regret", "regret.mean", "regret.mean=", "regret.mean=1x", "luck=3"})
        EXPECT_THROW(missed_thresholds(v, {text}), RequestError) << text;
}

TEST(Validation, TheDocumentFollowsItsSchema) {
    const Validation v = validated({entry_of({20, 16, 40, 10}), entry_of({4, 3, 3, 2})});
    const Json document = validation_document(context_of(*machine(), "rooftile validate"), {v});
    EXPECT_EQ(JsonSchema("validation-1.json").faults(document), "");
    EXPECT_THAT(validation_text(v, {}),
                testing::AllOf(HasSubstr("plan 1 over the fastest"), HasSubstr("under 5 us")));
}

}  // namespace
}  // namespace rooftile
