// The text of kernels/pipeline/ring.cuh, run on the CPU: positions, and that waits block just where a stage is not
// yet full or not yet empty. tests/fake/device stands in for the barriers.
#include "kernels/pipeline/ring.cuh"

#include <gtest/gtest.h>

#include <utility>

namespace rooftile {
namespace {

template <int stages>
void expect_advances_as_counted() {
    RingPosition<stages> position;
    for (unsigned use = 0; use < 5 * stages; ++use, position.advance()) {
        EXPECT_EQ(position.stage, int(use % stages));
        EXPECT_EQ(position.parity, use / stages % 2);
        EXPECT_EQ(RingPosition<stages>::of(use).stage, position.stage);
        EXPECT_EQ(RingPosition<stages>::of(use).parity, position.parity);
        for (int uses : {0, 1, stages - 1, stages, 3 * stages + 2}) {
            RingPosition<stages> skipped = position;
            skipped.skip(uses);
            EXPECT_EQ(skipped.stage, RingPosition<stages>::of(use + unsigned(uses)).stage);
            EXPECT_EQ(skipped.parity, RingPosition<stages>::of(use + unsigned(uses)).parity);
        }
    }
}

TEST(RingPosition, AdvancesOverItsFirstStagesAlone) {
    RingPosition<8> some;
    RingPosition<3> all;
    for (int use = 0; use < 10; ++use, some.advance(3), all.advance()) {
        EXPECT_EQ(some.stage, all.stage);
        EXPECT_EQ(some.parity, all.parity);
    }
}

TEST(RingPosition, AdvancesOfTwoStagesWithoutAComparison) {
    RingPosition<2> compared, toggled;
    for (int use = 0; use < 9; ++use, compared.advance(), toggled.advance_of_two()) {
        EXPECT_EQ(toggled.stage, compared.stage);
        EXPECT_EQ(toggled.parity, compared.parity);
    }
}

TEST(RingPosition, AdvancesAndSkipsAsUsesAreCounted) {
    expect_advances_as_counted<1>();
    expect_advances_as_counted<2>();
    expect_advances_as_counted<3>();
    expect_advances_as_counted<8>();
}

/// Waits that would have blocked since it was asked last.
int blocked() { return std::exchange(ptx::fake_blocked, 0); }

// Three stages, two warps that give each back. The producer runs a whole ring ahead and no further.
TEST(Ring, BlocksWhereAStageIsNotFullOrNotEmpty) {
    constexpr int stages = 3;
    const Ring<stages> ring{1024};
    ring.init(1, 2);
    RingPosition<stages> producer, consumer;
    ring.wait(consumer);
    EXPECT_EQ(blocked(), 1);  // nothing has come
    for (int lap = 0; lap < 7; ++lap) {
        for (int i = 0; i < stages; ++i, producer.advance()) {
            ring.acquire(producer);
            EXPECT_EQ(blocked(), 0);
            ring.expect(producer.stage, 128);
        }
        ring.acquire(producer);
        EXPECT_EQ(blocked(), 1);  // the ring is full
        for (int i = 0; i < stages; ++i, consumer.advance()) {
            ring.wait(consumer);
            EXPECT_EQ(blocked(), 0);
            ring.release(consumer.stage);
            EXPECT_EQ(ptx::fake_barriers.at(ring.empty(consumer.stage)).phase, unsigned(lap));
            ring.release(consumer.stage);
            EXPECT_EQ(ptx::fake_barriers.at(ring.empty(consumer.stage)).phase, unsigned(lap + 1));
        }
        ring.wait(consumer);
        EXPECT_EQ(blocked(), 1);  // the ring is empty
    }
}

// A producer whose stages nobody reads fills one anew when its last bytes are there, and ends when all are: with fewer
// uses than stages, too.
TEST(Ring, WaitsForThePreviousFillWhereNobodyReads) {
    constexpr int stages = 4, used = 3;
    for (const int uses : {0, 2, 3, 8}) {
        const Ring<stages> ring{2048};
        ring.init_full(2, used);  // the second arrival is the copy's
        RingPosition<stages> at;
        for (int use = 0; use < uses; ++use, at.advance(used)) {
            ring.wait_previous(at);
            EXPECT_EQ(blocked(), 0);
            ring.expect(at.stage, 128);
            RingPosition<stages> again = at;
            for (int i = 0; i < used; ++i) again.advance(used);
            ring.wait_previous(again);
            EXPECT_EQ(blocked(), 1);
            ring.commit(at.stage);
        }
        const auto wait_for_all = [&](RingPosition<stages> after) {
            for (int s = 0; s < used; ++s, after.advance(used)) ring.wait_previous(after);
            return blocked();
        };
        EXPECT_EQ(wait_for_all(at), 0);
        ring.wait_previous(at);
        ring.expect(at.stage, 128);
        at.advance(used);
        EXPECT_EQ(wait_for_all(at), 1);  // for the copy that is still on its way
    }
}

// Operands used at different times have rings of their own: one moves on, the other stands.
TEST(Ring, TwoRingsAreIndependent) {
    const Ring<2> keys{0}, values{Ring<2>::bytes()};
    keys.init(1, 1);
    values.init(1, 1);
    keys.commit(0);
    keys.wait({});
    EXPECT_EQ(blocked(), 0);
    values.wait({});
    EXPECT_EQ(blocked(), 1);
}

}  // namespace
}  // namespace rooftile
