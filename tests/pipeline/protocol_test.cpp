// The checker of protocols finds what it is for, in protocols written down by hand.
#include "tests/pipeline/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rooftile::protocol {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr unsigned full = 0, empty = 1, first_turn = 7, second_turn = 8, place = 9, pair = 256;

std::string fault_of(std::vector<std::vector<Op>> roles) { return explore({{{full, 1}, {empty, 1}}, std::move(roles)}).fault; }

TEST(Protocol, FollowsARingOfOneStage) {
    const std::vector<Op> producer{{Op::wait, empty, 1}, {Op::arrive, full, 1}, {Op::wait, empty, 0}, {Op::arrive, full, 1}};
    const std::vector<Op> consumer{{Op::wait, full, 0}, {Op::arrive, empty, 1}, {Op::wait, full, 1}, {Op::arrive, empty, 1}};
    EXPECT_THAT(fault_of({producer, consumer}), IsEmpty());
    EXPECT_THAT(fault_of({producer, {consumer[0], consumer[2], consumer[1], consumer[3]}}), HasSubstr("all wait"));
}

TEST(Protocol, ACopyCompletesAPhaseWithTheArrivalThatAnnouncesIt) {
    EXPECT_THAT(fault_of({{{Op::expect, full, 1}, {Op::come, full, 1}}, {{Op::wait, full, 0}}}), IsEmpty());
    EXPECT_THAT(fault_of({{{Op::expect, full, 1}}, {{Op::wait, full, 0}}}), HasSubstr("all wait"));
    EXPECT_THAT(fault_of({{{Op::come, full, 1}}, {{Op::expect, full, 1}}, {{Op::wait, full, 0}}}), IsEmpty());
}

// Who has the first turn for nothing in every round passes it on twice before the other has taken it once.
TEST(Protocol, FindsTwoTurnsThatMeetEachOther) {
    const std::vector<Op> first{{Op::pass, first_turn, pair}, {Op::pass, first_turn, pair}};
    const std::vector<Op> second{{Op::meet, first_turn, pair}, {Op::meet, first_turn, pair}};
    EXPECT_THAT(fault_of({first, second}), HasSubstr("its turn meets another turn"));
    const std::vector<Op> waits{{Op::pass, first_turn, pair}, {Op::meet, second_turn, pair}, {Op::pass, first_turn, pair}};
    const std::vector<Op> answers{{Op::meet, first_turn, pair}, {Op::pass, second_turn, pair}, {Op::meet, first_turn, pair}};
    EXPECT_THAT(fault_of({waits, answers}), IsEmpty());
    EXPECT_THAT(fault_of({first, {second[0]}}), HasSubstr("turn"));
}

TEST(Protocol, FindsAnArrivalThatNobodyMeets) { EXPECT_THAT(fault_of({{{Op::pass, first_turn, pair}}}), HasSubstr("that nobody meets")); }

TEST(Protocol, FindsANumberThatIsToldAnewBeforeItIsHeard) {
    const std::vector<Op> teller{{Op::tell, place, 3}, {Op::arrive, full, 1}, {Op::tell, place, 4}};
    EXPECT_THAT(fault_of({teller, {{Op::wait, full, 0}, {Op::hear, place, 3}}}), HasSubstr("hears 4"));
    EXPECT_THAT(fault_of({{teller[0], teller[1], {Op::wait, empty, 0}, teller[2]}, {{Op::wait, full, 0}, {Op::hear, place, 3}, {Op::arrive, empty, 1}}}),
                IsEmpty());
}

TEST(Protocol, FindsMoreArrivalsThanAPhaseTakes) { EXPECT_THAT(fault_of({{{Op::arrive, full, 2}}}), HasSubstr("waits for 1 arrivals")); }

TEST(Protocol, SaysWhereItGivesUp) {
    EXPECT_THAT(explore({{{full, 1}}, {{{Op::tell, place, 1}, {Op::tell, place, 2}}}}, 1).fault, HasSubstr("more than 1 states"));
}

}  // namespace
}  // namespace rooftile::protocol
