// Attention on a GPU: drawn problems of every mask, type, layout and size, each against fp64 at every element.
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

class AttentionTest : public DeviceTest {
  protected:
    /// Verified, and timed a little so that launches follow each other; the first `top` plans.
    static void expect_right(const AttentionProblem& problem, const AttentionRequest& request, bool time) {
        SCOPED_TRACE(attention_operation().short_name({&attention_operation(), Own::of(problem)}));
        const Machine machine = live_machine().machine;
        MeasureTask task;
        task.plans = attention_plan_set(derive(std::make_shared<const Machine>(machine), problem, request));
        ASSERT_FALSE(task.plans.plans.empty());
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
            EXPECT_TRUE(row.verified.ok()) << attention_operation().label(row.plan) << ": " << row.verified.failure;
            if (!problem.score) { EXPECT_EQ(row.verified.exact, true); }
            EXPECT_EQ(row.verified.random, true);
            EXPECT_EQ(row.verified.special, true);
            if (time) { EXPECT_EQ(row.verified.timed, true); }
        }
    }
};

AttentionProblem drawn(Random& random) {
    AttentionProblem p;
    const std::int64_t group = random.whole(1, 4);
    p.batch = random.whole(1, 3), p.kv_heads = random.whole(1, 3), p.heads = p.kv_heads * group;
    const auto rows = [&] { return random.one_in(5) ? random.whole(1, 3) : random.whole(1, 900); };
    p.queries = rows(), p.keys = rows();
    p.dim = 8 * random.whole(1, 32), p.dim_v = random.coin() ? p.dim : 8 * random.whole(1, 32);
    p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 600);
    p.type = random.coin() ? Type::bf16 : Type::fp16;
    p.layout = random.coin() ? AttentionLayout::bhsd : AttentionLayout::bshd;
    p.log_sum_exp = random.coin();
    if (random.one_in(3)) {  // rows apart, as views of a projection's result have them
        const auto apart = [&](std::int64_t heads, std::int64_t rows, std::int64_t dim) {
            const std::int64_t head = dim + 8 * random.whole(0, 2), row = heads * head + 8 * random.whole(0, 20);
            return AttentionPitch{.row = row, .head = head, .batch = rows * row + 8 * random.whole(0, 3)};
        };
        p.strides = {apart(p.heads, p.queries, p.dim), apart(p.kv_heads, p.keys, p.dim), apart(p.kv_heads, p.keys, p.dim_v), apart(p.heads, p.queries, p.dim_v)};
    }
    return p;
}

/// As drawn(), in packed sequences, some without rows.
AttentionProblem drawn_packed(Random& random) {
    AttentionProblem p = drawn(random);
    p.batch = random.whole(1, 12), p.strides = {};
    for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(random.one_in(4) ? random.whole(0, 2) : random.whole(1, 700));
    p.queries = p.keys = *std::max_element(p.lengths.begin(), p.lengths.end());
    return p;
}

TEST_F(AttentionTest, PackedSequences) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 18));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) expect_right(drawn_packed(random), {.top = 1}, i == 0);
}

// Soft-caps, biases by distance, of a head and of all, comparisons of places; packed or not.
TEST_F(AttentionTest, ScoresOfExpressions) {
    struct Score {
        const char* expression;
        std::vector<std::string> tensors;
    };
    const Score scores[] = {{"s = 30 * tanh(s / 30)", {}},
                            {"s = s + slope * (j - i)", {"slope:fp32[H]"}},
                            {"s = 5 * tanh(s * 0.2) + slope * (j - i) * 0.1", {"slope:bf16[H]"}},
                            {"s = where(i - j > 40.5, s * cap, s)", {"cap:fp32[1]"}}};
    Random random(from_environment("ROOFTILE_TEST_SEED", 19));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 8); ++i) {
        AttentionProblem p = random.coin() ? drawn(random) : drawn_packed(random);
        const Score& score = scores[i % std::size(scores)];
        p.score = attention_score(p.heads, score.expression, score.tensors);
        expect_right(p, {.top = 1}, false);
    }
}

TEST_F(AttentionTest, RandomProblems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 17));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 6); ++i) expect_right(drawn(random), {.top = 1}, false);
}

// The head dims of models, every tile that fits: the best plans of each, launched again and again.
TEST_F(AttentionTest, TheBestPlansOfModels) {
    for (const std::int64_t dim : {64, 96, 128, 192, 256})
        for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
            AttentionProblem p;
            p.heads = 6, p.kv_heads = 2, p.queries = p.keys = 1100, p.dim = p.dim_v = dim, p.mask = mask;
            expect_right(p, {.top = 3}, true);
        }
}

// Queries that see nothing, because there is nothing, and a single key.
TEST_F(AttentionTest, NoKeysAndOneKey) {
    for (const std::int64_t keys : {0, 1}) {
        AttentionProblem p;
        p.heads = p.kv_heads = 2, p.queries = 70, p.keys = keys, p.log_sum_exp = true;
        expect_right(p, {.top = 1}, false);
        p.mask = AttentionMask::causal;  // all but the last see nothing
        expect_right(p, {.top = 1}, false);
    }
}

TEST_F(AttentionTest, EveryNumberOfWarpgroupsAndStages) {
    AttentionProblem p;
    p.heads = p.kv_heads = 3, p.queries = 450, p.keys = 1000, p.mask = AttentionMask::causal;
    for (const int tile_q : {64, 128, 192})
        for (const int stages : {1, 2, 3, 4}) expect_right(p, {.tile_q = tile_q, .stages = stages, .top = 2}, false);
}

}  // namespace
}  // namespace rooftile
