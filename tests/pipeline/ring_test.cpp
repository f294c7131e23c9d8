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
