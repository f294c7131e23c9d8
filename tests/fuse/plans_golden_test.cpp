#include "tests/core/plans_golden.hpp"

#include "rooftile/fuse/operation.hpp"

namespace rooftile {
namespace {

TEST(FusePlansGolden, AreAsBefore) {
    static constexpr const char* laws[] = {"draw", "draw", "columns"};
    expect_plans_as_before(fuse_operation(), [](Random& random) { return fuse_operation().draw(random, {random.one_of(laws)}); }, 470102, 100);
}

}  // namespace
}  // namespace rooftile
