#include "tests/core/plans_golden.hpp"

#include "rooftile/attention/operation.hpp"

namespace rooftile {
namespace {

TEST(AttentionPlansGolden, AreAsBefore) {
    static constexpr const char* laws[] = {"draw", "any"};
    expect_plans_as_before(attention_operation(), [](Random& random) { return attention_operation().draw(random, {random.one_of(laws)}); }, 470100, 80);
}

}  // namespace
}  // namespace rooftile
