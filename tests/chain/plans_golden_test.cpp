#include "tests/core/plans_golden.hpp"

#include "rooftile/chain/operation.hpp"

namespace rooftile {
namespace {

TEST(ChainPlansGolden, AreAsBefore) {
    expect_plans_as_before(chain_operation(), [](Random& random) { return chain_operation().draw(random, {}); }, 470101, 5);
}

}  // namespace
}  // namespace rooftile
