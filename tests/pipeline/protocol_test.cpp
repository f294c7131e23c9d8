// The checker of protocols finds what it is for, in protocols written down by hand.
#include "tests/pipeline/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rooftile::protocol {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr unsigned full = 0, empty = 1, first_turn = 7, second_turn = 8, place = 9, pair = 256;

/// What exploration finds; drawn orders find a fault where it does.
std::string fault_of(std::vector<std::vector<Op>> roles) {
    const Recording recording{{{full, 1}, {empty, 1}}, std::move(roles)};
    const std::string fault = explore(recording).fault;
    EXPECT_EQ(walk(recording, 50, 1).fault.empty(), fault.empty()) << fault;
    return fault;
}

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

// Twelve consumers of one ring: far too many states to go through, and one of them gives its slot back before it has waited, once.
TEST(Protocol, DrawnOrdersFindOneEarlyReleaseAmongManyRoles) {
    constexpr unsigned consumers = 12, rounds = 8;
    Recording ring{{{full, 1}, {empty, consumers}}, {{}}};
    for (unsigned round = 0; round < rounds; ++round) {
        ring.roles[0].push_back({Op::wait, empty, (round + 1) % 2});
        ring.roles[0].push_back({Op::tell, place, round});
        ring.roles[0].push_back({Op::arrive, full, 1});
    }
    for (unsigned i = 0; i < consumers; ++i) {
        ring.roles.emplace_back();
        for (unsigned round = 0; round < rounds; ++round)
            for (const Op op : {Op{Op::wait, full, round % 2}, Op{Op::hear, place, round}, Op{Op::arrive, empty, 1}}) ring.roles.back().push_back(op);
    }
    EXPECT_TRUE(explore(ring, 10'000).gave_up);
    EXPECT_THAT(walk(ring, 200, 1).fault, IsEmpty());
    for (unsigned consumer = 1; consumer <= consumers; consumer += 4)
        for (unsigned round = 1; round + 1 < rounds; ++round) {
            Recording wrong = ring;
            std::swap(wrong.roles[consumer][3 * round + 1], wrong.roles[consumer][3 * round + 2]);
            EXPECT_THAT(walk(wrong, 200, 1).fault, HasSubstr("hears")) << consumer << ", round " << round;
        }
}

TEST(Protocol, SaysWhereItGivesUp) {
    EXPECT_THAT(explore({{{full, 1}}, {{{Op::tell, place, 1}, {Op::tell, place, 2}}}}, 1).fault, HasSubstr("more than 1 states"));
}

}  // namespace
}  // namespace rooftile::protocol
