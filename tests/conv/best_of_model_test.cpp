#include "tests/core/best_of_model.hpp"
#include "tests/core/plans_golden.hpp"

#include "rooftile/conv/operation.hpp"

namespace rooftile {
namespace {

/// Values that both forms of a product have; which of them one fixes is left out: by their times alone they do not compete.
BestOfModel::Values drawn_values(Random& random, const Problem&) {
    return {{"tile", std::to_string(32 * random.whole(1, 8)) + "x" + std::to_string(32 * random.whole(1, 4)) + "x64"},
            {"stages", std::to_string(random.whole(2, 6))},
            {"ctas_per_sm", std::to_string(random.whole(1, 2))}};
}

const BestOfModel best{conv_operation(), drawn_values, [](Random& random) { return conv_operation().draw(random, {"draw"}); }};

TEST(ConvBestOfModel, NoFixedValueIsFaster) { best.no_fixed_value_is_faster(470060, 60, 60); }
TEST(ConvBestOfModel, TellsNoNan) { best.tells_no_nan(480062, 20); }
TEST(ConvBestOfModel, DoesNotDependOnHowManyAreKept) { best.does_not_depend_on_how_many_are_kept(470061, 10); }

TEST(ConvPlansGolden, AreAsBefore) { expect_plans_as_before(best, 470600, 50); }

}  // namespace
}  // namespace rooftile
