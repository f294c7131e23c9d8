#include "tests/core/best_of_model.hpp"
#include "tests/core/plans_golden.hpp"

#include "rooftile/fuse/operation.hpp"

namespace rooftile {
namespace {

BestOfModel::Values drawn_values(Random& random, const Problem&) {
    const auto power = [&](int least, int most) { return std::to_string(1 << random.whole(least, most)); };
    const auto number = [&](std::int64_t least, std::int64_t most) { return std::to_string(random.whole(least, most)); };
    static constexpr const char *scopes[] = {"cta", "cluster", "grid"}, *storages[] = {"registers", "reload", "pipelined", "shared"};
    const auto either = [&] { return std::string(random.coin() ? "on" : "off"); };
    return {{"alignment", power(1, 10)},
            {"vector_width", power(0, 4)},
            {"vectors_per_thread", power(0, 3)},
            {"vectors_per_thread", number(1, 16)},
            {"threads", power(5, 10)},
            {"threads_per_row", power(0, 10)},
            {"rows_per_cta", power(0, 6)},
            {"cluster", power(0, 4)},
            {"cluster", number(1, 264)},
            {"row_splits", number(1, 264)},
            {"row_splits", power(0, 8)},
            {"reduce_scope", random.one_of(scopes)},
            {"stages", number(1, 24)},
            {"ctas_per_sm", number(1, 8)},
            {"reduction_threads", random.coin() ? "128" : "0"},
            {"row_storage", random.one_of(storages)},
            {"early_weights", either()},
            {"persistent", either()}};
}

/// By every law, and in a quarter of few rows, which the laws hardly draw.
Problem drawn_problem(Random& random) {
    if (!random.one_in(4)) return fuse_operation().draw(random, {random.one_in(4) ? "columns" : "draw"});
    static constexpr const char* expressions[] = {"y = softmax(x)", "y = rmsnorm(x)", "y = sum(x * x)", "y = layernorm(x)", "y = gelu(x)", "y = logsumexp(x)"};
    Given given(Given::Named::by_key);
    given.add("expression", random.one_of(expressions));
    given.add("tensor", "x:" + std::string(random.coin() ? "bf16" : "fp32") + "[" + std::to_string(random.whole(1, 64)) + ","
                            + std::to_string(std::llround(random.log_uniform(256, 1 << 22))) + "]");
    return fuse_operation().problem(given);
}

const BestOfModel best{fuse_operation(), drawn_values, drawn_problem};

TEST(FuseBestOfModel, NoFixedValueIsFaster) { best.no_fixed_value_is_faster(470030, 120, 800); }
TEST(FuseBestOfModel, TellsNoNan) { best.tells_no_nan(480063, 40); }
TEST(FuseBestOfModel, DoesNotDependOnHowManyAreKept) { best.does_not_depend_on_how_many_are_kept(470031, 40); }
TEST(FuseBestOfModel, IsNoSlowerWithoutRules) { best.is_no_slower_without_rules(470032, 60); }

TEST(FusePlansGolden, AreAsBefore) { expect_plans_as_before(best, 470102, 100); }

}  // namespace
}  // namespace rooftile
