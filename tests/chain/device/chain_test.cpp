// Chains on a GPU: drawn problems of every function, type and size, in every form that is built, against fp64 at every element.
#include <gtest/gtest.h>

#include "rooftile/chain/derive.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

class ChainTest : public DeviceTest {
  protected:
    /// Verified, and timed a little so that launches follow each other.
    static void expect_right(const ChainProblem& problem, ChainRequest request, bool time, std::size_t least_plans = 1) {
        const Problem any{&chain_operation(), Own::of(problem)};
        SCOPED_TRACE(chain_operation().short_name(any));
        const Machine machine = live_machine().machine;
        request.buildable_only = true;
        MeasureTask task;
        task.plans = derive_chain(std::make_shared<const Machine>(machine), any, request);
        ASSERT_GE(task.plans.plans.size(), least_plans);
        MeasureOptions options;
        options.mode = Mode::burst;
        options.machine = &machine;
        options.seed = 5;
        options.time = time;
        options.baseline = false;
        options.timing.rounds.least = options.timing.rounds.most = 2;
        options.timing.burst_seconds = 0.005;
        options.timing.idle_seconds = 0.01;
        std::vector<MeasureTask> tasks;
        tasks.push_back(std::move(task));
        for (const Measurement& row : measure(std::move(tasks), options).rows) {
            EXPECT_TRUE(row.verified.ok()) << chain_operation().label(row.plan) << ": " << row.verified.failure;
            if (problem.act == ChainAct::relu) { EXPECT_EQ(row.verified.exact, true); }
            EXPECT_EQ(row.verified.random, true);
            EXPECT_EQ(row.verified.special, true);
            if (time) { EXPECT_EQ(row.verified.timed, true); }
        }
    }
};

ChainProblem drawn(Random& random) {
    ChainProblem p;
    p.m = random.one_in(5) ? random.whole(1, 70) : random.whole(1, 3000);
    p.d = 8 * random.whole(1, 40), p.ff = 8 * random.whole(1, 100);
    p.act = ChainAct(random.pick(4)), p.residual = random.coin();
    p.type = random.coin() ? Type::bf16 : Type::fp16;
    return p;
}

TEST_F(ChainTest, RandomProblems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 19));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 8); ++i) {
        const ChainProblem p = drawn(random);
        const Machine machine = live_machine().machine;
        const PlanSet plans = derive_chain(std::make_shared<const Machine>(machine), {&chain_operation(), Own::of(p)}, {.buildable_only = true});
        if (plans.plans.empty()) {  // where no product takes pairs of columns: rows of Y, gates and ups are too many for a thread's registers
            EXPECT_TRUE(p.act == ChainAct::swiglu && p.d > 192) << plans.refusal->message;
            continue;
        }
        expect_right(p, {}, false);
    }
}

TEST_F(ChainTest, EveryTileOnChip) {
    for (const std::int64_t d : {64, 128, 256})
        for (const int tile_m : {64, 128, 192})
            for (const int stages : {1, 2, 3}) {
                const ChainProblem p{.m = 3000, .d = d, .ff = 3 * d, .act = ChainAct::relu, .residual = true};
                const ChainRequest request{.form = ChainForm::on_chip, .tile_m = tile_m, .stages = stages};
                if (derive_chain(std::make_shared<const Machine>(live_machine().machine), {&chain_operation(), Own::of(p)}, request).plans.empty())
                    continue;
                expect_right(p, request, false);
            }
}

// More tiles than the GPU has SMs, one block, blocks that end within: launched again and again.
TEST_F(ChainTest, FormsSideBySide) {
    expect_right({.m = 40000, .d = 128, .ff = 64, .act = ChainAct::relu}, {}, true, 3);
    expect_right({.m = 30001, .d = 64, .ff = 200, .act = ChainAct::gelu, .residual = true}, {}, true, 3);
    expect_right({.m = 20000, .d = 192, .ff = 576, .act = ChainAct::swiglu}, {}, true, 1);
    expect_right({.m = 9000, .d = 512, .ff = 1536, .act = ChainAct::silu, .residual = true}, {}, true, 2);
}

// Both products in one kernel: all rows at once and in chunks, few rows and many, whatever ends within a tile. Launched again and again.
TEST_F(ChainTest, OneKernelOfBoth) {
    const ChainRequest whole{.form = ChainForm::persistent};
    for (const ChainAct act : {ChainAct::relu, ChainAct::swiglu})
        for (const std::int64_t m : {1, 65, 3001})
            for (const std::int64_t d : {64, 328, 1032})
                expect_right({.m = m, .d = d, .ff = 3 * d + 8, .act = act, .residual = m > 1, .type = d == 328 ? Type::fp16 : Type::bf16}, whole, m > 65);
    // A tile a stage of the ring, and many of them a CTA: the producer is as far ahead as it can be.
    for (const ChainAct act : {ChainAct::relu, ChainAct::swiglu})
        for (const std::int64_t m : {43939, 74867, 197228}) expect_right({.m = m, .d = 64, .ff = 320, .act = act, .residual = true}, whole, true);
    for (const int room : {2, 3})
        for (const std::int64_t rows : {3000, 9000}) {
            const ChainRequest chunks{.form = ChainForm::persistent, .chunk_rows = rows, .room_chunks = room};
            expect_right({.m = 50001, .d = 256, .ff = 776, .act = ChainAct::relu, .residual = true}, chunks, true);
            expect_right({.m = 40000, .d = 520, .ff = 1000, .act = ChainAct::swiglu}, chunks, true);
        }
}

}  // namespace
}  // namespace rooftile
