// Declared spaces: of every operation that has one, and what the toy's holds.
#include "rooftile/core/space.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/json.hpp"
#include "tests/core/example.hpp"
#include "tests/core/toy_operation.hpp"

namespace rooftile {
namespace {

class SpaceOf : public testing::TestWithParam<const Operation*> {
  protected:
    const Operation& operation() const { return *GetParam(); }
    std::shared_ptr<const Machine> machine_ = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    Problem problem_ = operation().problem(example_of(operation()));
};

INSTANTIATE_TEST_SUITE_P(Operations, SpaceOf, testing::ValuesIn(all_operations()), name_of_operation);

TEST_P(SpaceOf, HoldsWhatIsKeptFirstAndNoConfigurationTwice) {
    if (operation().space_rule().empty()) {
        EXPECT_THROW(declared_space(operation(), machine_, problem_, 8), RequestError);
        return;
    }
    const DeclaredSpace space = declared_space(operation(), machine_, problem_, 8);
    const auto kept = operation().derive(machine_, problem_,
                                         operation().request(Given(), {.top = 8, .buildable_only = true}));
    ASSERT_EQ(space.kept, kept.plans.size());
    for (std::size_t i = 0; i < space.kept; ++i)
        EXPECT_EQ(operation().config_record(space.members[i]), operation().config_record(kept.plans[i]));
    std::set<std::string> seen;
    for (const Plan& plan : space.members) {
        const std::string config = json_text(to_json(operation().config_record(plan)), -1);
        EXPECT_TRUE(seen.insert(config).second) << config;
    }
    for (const auto& pick : space.picks) EXPECT_LT(pick.member, space.members.size()) << pick.name;
}

// A ledger keeps configurations alone: the plan that is made of one must be the plan that had it.
TEST_P(SpaceOf, AMemberIsPlannedAgainFromItsConfiguration) {
    if (operation().space_rule().empty()) {
        EXPECT_TRUE(operation().space(machine_, problem_).empty());
        return;
    }
    const DeclaredSpace space = declared_space(operation(), machine_, problem_, 8);
    ASSERT_FALSE(space.members.empty());
    for (std::size_t i = 0; i < space.members.size(); i += 1 + space.members.size() / 60) {
        const Plan& member = space.members[i];
        const Record config = operation().config_record(member);
        const auto again = plan_of_config(operation(), machine_, problem_, config);
        ASSERT_TRUE(again) << operation().label(member);
        EXPECT_EQ(operation().config_record(*again), config) << operation().label(member);
        ASSERT_TRUE(again->time_us && member.time_us) << operation().label(member);
        EXPECT_NEAR(*again->time_us / *member.time_us, 1, 1e-3) << operation().label(member);
    }
}

TEST(Space, APickIsTheFirstOfItsAlternativesThatHasAPlan) {
    const Operation& toy = toy_operation();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const DeclaredSpace space = declared_space(toy, machine, toy.problem(example_of(toy)), 2);
    ASSERT_EQ(space.members.size(), 4u);  // 128 and 256 are kept, 512 and 1024 declared
    EXPECT_EQ(space.kept, 2u);
    ASSERT_EQ(space.picks.size(), 1u);
    EXPECT_EQ(space.picks[0].name, "widest");
    EXPECT_EQ(space.picks[0].member, 3u);  // 2048 threads have no plan
    EXPECT_THAT(space.notes, testing::ElementsAre("nobody has no member here: it picks nothing"));
}

TEST(Space, AnotherProgramsConfigurationHasNoPlan) {
    const Operation& toy = toy_operation();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const Problem problem = toy.problem(example_of(toy));
    const auto planned = [&](const Record& config) {
        return plan_of_config(toy, machine, problem, config).has_value();
    };
    EXPECT_TRUE(planned({{"kernel", "toy_sum"}, {"threads", 256}}));
    EXPECT_TRUE(planned({{"threads", 256}}));  // from before the key
    EXPECT_FALSE(planned({{"kernel", "toy_sum"}, {"threads", 256}, {"lanes", 4}}));
    EXPECT_FALSE(planned({{"kernel", "other"}, {"threads", 256}}));
    EXPECT_FALSE(planned({{"kernel", "toy_sum"}, {"threads", 2048}}));
}

TEST(Space, MembersDifferInWhatTheRuleSpeaksOf) {
    const Record x = {{"kernel", "toy_sum"}, {"threads", 128}}, y = {{"kernel", "other"}, {"threads", 128}},
                 z = {{"kernel", "toy_sum"}, {"threads", 256}};
    EXPECT_TRUE(same_member(toy_operation(), x, y));
    EXPECT_FALSE(same_member(toy_operation(), x, z));
    EXPECT_FALSE(same_member(toy_operation(), x, {{"kernel", "toy_sum"}}));
    EXPECT_TRUE(same_member(toy_operation(), {{"threads", Value()}}, {{"kernel", "toy_sum"}}));  // null, and from before the key
}

}  // namespace
}  // namespace rooftile
