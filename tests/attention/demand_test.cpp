#include "rooftile/attention/operation.hpp"
#include "rooftile/core/random.hpp"
#include "tests/roof_below.hpp"

namespace rooftile {
namespace {

TEST(AttentionDemand, NoDrawnPredictionIsBelowItsRoof) {
    Random random(471002);
    for (int i = 0; i < 30; ++i) expect_roofs_below(attention_operation().draw(random, {random.coin() ? "draw" : "any"}));
}

}  // namespace
}  // namespace rooftile
