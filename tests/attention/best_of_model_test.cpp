#include "tests/core/best_of_model.hpp"
#include "tests/core/plans_golden.hpp"

#include "rooftile/attention/operation.hpp"
#include "rooftile/attention/problem.hpp"

namespace rooftile {
namespace {

BestOfModel::Values drawn_values(Random& random, const Problem& problem) {
    const auto number = [&](std::int64_t least, std::int64_t most) { return std::to_string(random.whole(least, most)); };
    const std::int64_t heads = problem.own.as<AttentionProblem>().heads_of_all();
    return {{"tile_q", std::to_string(64 * random.whole(1, 3))},
            {"tile_kv", std::to_string(16 * random.whole(1, 16))},
            {"stages", number(1, 4)},
            {"consumer_warpgroups", number(1, 3)},
            {"schedule", random.coin() ? "pingpong" : "cooperative"},
            {"section_heads", number(1, heads)},
            {"section_heads", std::to_string(std::llround(random.log_uniform(1, double(heads))))}};
}

Problem drawn_problem(Random& random) { return attention_operation().draw(random, {random.one_in(3) ? "any" : "draw"}); }

const BestOfModel best{attention_operation(), drawn_values, drawn_problem};

TEST(AttentionBestOfModel, NoFixedValueIsFaster) { best.no_fixed_value_is_faster(470020, 150, 600); }
TEST(AttentionBestOfModel, TellsNoNan) { best.tells_no_nan(480061, 40); }
TEST(AttentionBestOfModel, DoesNotDependOnHowManyAreKept) { best.does_not_depend_on_how_many_are_kept(470021, 30); }
TEST(AttentionBestOfModel, IsNoSlowerWithoutRules) { best.is_no_slower_without_rules(470022, 60); }

TEST(AttentionPlansGolden, AreAsBefore) { expect_plans_as_before(best, 470100, 100); }

}  // namespace
}  // namespace rooftile
