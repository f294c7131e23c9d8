#include "tests/core/best_of_model.hpp"
#include "tests/core/plans_golden.hpp"

#include "rooftile/chain/operation.hpp"

namespace rooftile {
namespace {

BestOfModel::Values drawn_values(Random& random, const Problem&) {
    const auto number = [&](std::int64_t least, std::int64_t most) { return std::to_string(random.whole(least, most)); };
    static constexpr const char* forms[] = {"two_kernels", "carry_over", "persistent", "on_chip"};
    return {{"form", random.one_of(forms)},
            {"chunk_rows", std::to_string(128 * std::llround(random.log_uniform(1, 64)))},
            {"room_chunks", number(2, 24)},
            {"tile_m", std::to_string(64 * random.whole(1, 3))},
            {"tile_ff", std::to_string(64 * random.whole(1, 2))},
            {"stages", number(1, 4)},
            {"x_stages", number(1, 2)},
            {"resident", random.coin() ? "on" : "off"},
            {"schedule", random.coin() ? "pingpong" : "cooperative"}};
}

const BestOfModel best{chain_operation(), drawn_values, [](Random& random) { return chain_operation().draw(random, {}); }};

TEST(ChainBestOfModel, NoFixedValueIsFaster) { best.no_fixed_value_is_faster(470040, 8, 10); }
TEST(ChainBestOfModel, TellsNoNan) { best.tells_no_nan(480062, 4); }
TEST(ChainBestOfModel, DoesNotDependOnHowManyAreKept) { best.does_not_depend_on_how_many_are_kept(470041, 2); }
TEST(ChainBestOfModel, IsNoSlowerWithoutRules) { best.is_no_slower_without_rules(470042, 1); }

/// Smaller than the law's: a large chain takes half a second.
Problem small_problem(Random& random) {
    static constexpr const char* acts[] = {"gelu", "silu", "relu", "swiglu"};
    const std::int64_t d = 64 * std::llround(random.log_uniform(1, 24));
    Given given(Given::Named::by_key);
    given.add("m", std::to_string(std::llround(random.log_uniform(128, 16384))));
    given.add("d", std::to_string(d)), given.add("ff", std::to_string(64 * random.whole(d / 64, 5 * d / 64)));
    given.add("act", random.one_of(acts));
    if (random.coin()) given.add("residual", "");
    return chain_operation().problem(given);
}

TEST(ChainPlansGolden, AreAsBefore) { expect_plans_as_before({chain_operation(), drawn_values, small_problem}, 470101, 80); }

}  // namespace
}  // namespace rooftile
