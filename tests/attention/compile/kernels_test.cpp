// Attention's kernels without a GPU: at the walls that the planner keeps to, ptxas neither spills nor serialises products.
#include <gtest/gtest.h>

#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/device/reference.hpp"
#include "rooftile/attention/fields.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/cache.hpp"
#include "tests/core/example.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

/// The plan of most keys a block that fits: nothing is left of its registers, or of shared memory.
AttentionPlan at_the_wall(const AttentionProblem& problem, int tile_q) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    std::vector<std::string> unknown;
    const AttentionHardware hw = attention_hardware(*machine, problem.type, unknown);
    AttentionRequest request{.tile_q = tile_q, .stages = 2, .top = 1};
    for (int tile_kv = 256; tile_kv > 0; tile_kv -= 16) {
        const AttentionConfig c{.tile_q = tile_q, .tile_kv = tile_kv, .stages = 2, .schedule = Schedule::cooperative};
        if (!wall_of(hw, problem, c)) {
            request.tile_kv = tile_kv;
            break;
        }
    }
    return std::get<AttentionPlans>(derive(machine, problem, request)).plans.front();
}

TEST(AttentionKernels, TilesAtTheWallsNeitherSpillNorSerialise) {
    for (const int tile_q : {64, 128, 192})
        for (const std::int64_t dim : {64, 128, 256})
            for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
                if (tile_q == 192 && dim == 256) continue;  // O alone takes 128 of 160 registers
                AttentionProblem p;
                p.queries = p.keys = 2048, p.dim = p.dim_v = dim, p.mask = mask;
                for (const bool packed : {false, true}) {
                    if (packed) p.lengths = {2048}, p.batch = 1;
                    const AttentionPlan plan = at_the_wall(p, tile_q);
                    SCOPED_TRACE(testing::Message() << tile_q << "x" << plan.config.tile_kv << " dim " << dim << " mask " << int(mask)
                                                    << (packed ? " packed" : ""));
                    EXPECT_NO_THROW(compiled_attention(plan));
                }
            }
}

// Any rows, any type, any mask: 12 of a seed, more by ROOFTILE_TEST_COUNT.
TEST(AttentionKernels, RandomPlansCompile) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 11));
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 12); ++i) {
        AttentionProblem p;
        p.queries = random.whole(1, 4096), p.keys = random.whole(1, 4096), p.heads = random.whole(1, 32);
        p.dim = 8 * random.whole(1, 32), p.dim_v = 8 * random.whole(1, 32);
        p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 4096);
        p.type = random.coin() ? Type::bf16 : Type::fp16;
        if (random.one_in(3)) p.lengths = {p.queries, p.queries}, p.batch = 2, p.keys = p.queries;
        const auto outcome = derive(machine, p, {.top = 3});
        const auto& plans = std::get<AttentionPlans>(outcome).plans;
        const AttentionPlan& plan = plans[random.pick(plans.size())];
        SCOPED_TRACE(testing::Message() << plan.config.tile_q << "x" << plan.config.tile_kv << " dim " << p.dim << "/" << p.dim_v
                                        << " " << mask_text(p));
        EXPECT_NO_THROW(compiled_attention(plan));
    }
}

// One query over a cache: heads that share keys are the rows of one tile, and keys are split.
TEST(AttentionKernels, SplitKeysFitAtTheWall) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (const std::int64_t dim : {64, 80, 128, 192, 256})
        for (const int tile_q : {64, 128}) {
            AttentionProblem p;
            p.heads = 8, p.kv_heads = tile_q == 64 ? 1 : 8, p.queries = tile_q == 64 ? 1 : 100, p.keys = 20000, p.dim = p.dim_v = dim;
            std::vector<std::string> unknown;
            const AttentionHardware hw = attention_hardware(*machine, p.type, unknown);
            AttentionRequest request{.tile_q = tile_q, .stages = 2, .splits = 9, .top = 1};
            for (int tile_kv = 256; tile_kv > 0 && !request.tile_kv; tile_kv -= 16) {
                AttentionConfig c{.tile_q = tile_q, .tile_kv = tile_kv, .stages = 2, .schedule = Schedule::cooperative};
                c.splits = 9;
                if (!wall_of(hw, heads_as_rows(p), c)) request.tile_kv = tile_kv;
            }
            if (tile_q == 128 && dim == 256) continue;  // nothing is left beside such rows, but for blocks that no search takes
            const AttentionPlan plan = std::get<AttentionPlans>(derive(machine, p, request)).plans.front();
            SCOPED_TRACE(testing::Message() << tile_q << "x" << plan.config.tile_kv << " dim " << dim);
            EXPECT_NO_THROW(compiled_attention(plan));
        }
}

// Two CTAs an SM leave a consumer 216 registers, and each lane of who adds a row up has ten parts.
TEST(AttentionKernels, TwoCtasAnSmFitAtTheWall) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (const std::int64_t dim : {64, 80, 128, 192}) {
        AttentionProblem p;
        p.heads = 8, p.kv_heads = 2, p.queries = 3, p.keys = 5000, p.dim = p.dim_v = dim, p.mask = AttentionMask::causal;
        p.cached = true, p.batch = 2, p.lengths = {5000, 77};
        std::vector<std::string> unknown;
        const AttentionHardware hw = attention_hardware(*machine, p.type, unknown);
        AttentionRequest request{.tile_q = 64, .stages = 1, .splits = 264, .ctas_per_sm = 2, .top = 1};
        for (int tile_kv = 256; tile_kv > 0 && !request.tile_kv; tile_kv -= 16) {
            AttentionConfig c{.tile_q = 64, .tile_kv = tile_kv, .stages = 1, .schedule = Schedule::cooperative};
            c.splits = 264, c.ctas_per_sm = 2;
            if (!wall_of(hw, heads_as_rows(p), c)) request.tile_kv = tile_kv;
        }
        ASSERT_TRUE(request.tile_kv) << dim;
        const AttentionPlan plan = std::get<AttentionPlans>(derive(machine, p, request)).plans.front();
        SCOPED_TRACE(testing::Message() << plan.config.tile_q << "x" << plan.config.tile_kv << " dim " << dim);
        EXPECT_NO_THROW(compiled_attention(plan));
    }
}

// Cuts of a tile's own, of one warpgroup and of two, keys in one place and in pages.
TEST(AttentionKernels, OwnCutsFit) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (const std::int64_t dim : {64, 128, 256})
        for (const std::int64_t queries : {1, 20}) {
            AttentionProblem p;
            p.heads = 8, p.kv_heads = 2, p.queries = queries, p.keys = 5000, p.dim = p.dim_v = dim, p.mask = AttentionMask::causal;
            p.cached = true, p.batch = 2, p.lengths = {5000, 77};
            if (queries > 1) p.page = 16, p.pages = p.batch * p.pages_of_a_batch();
            const AttentionPlan plan = std::get<AttentionPlans>(derive(machine, p, {.batch_invariant = true, .top = 1})).plans.front();
            SCOPED_TRACE(testing::Message() << plan.config.tile_q << "x" << plan.config.tile_kv << " dim " << dim);
            EXPECT_NO_THROW(compiled_attention(plan));
        }
}

// What a score is made of takes registers that the planner leaves for it.
TEST(AttentionKernels, ScoresOfExpressionsFit) {
    for (const char* expression : {"s = 30 * tanh(s / 30)", "s = s + slope * (j - i)", "s = where(i - j > 40.5, gelu(s) * cap, s + slope * j)"})
        for (const int tile_q : {128, 192})
            for (const bool packed : {false, true}) {
                AttentionProblem p;
                p.queries = p.keys = 2048, p.heads = 4, p.dim = p.dim_v = 64, p.mask = AttentionMask::causal;
                if (packed) p.lengths = {2048};
                std::vector<std::string> tensors;
                if (std::string_view(expression).find("slope") != std::string_view::npos) tensors.emplace_back("slope:fp32[H]");
                if (std::string_view(expression).find("cap") != std::string_view::npos) tensors.emplace_back("cap:bf16[1]");
                p.score = attention_score(4, expression, tensors);
                SCOPED_TRACE(testing::Message() << expression << " " << tile_q << (packed ? " packed" : ""));
                EXPECT_NO_THROW(compiled_attention(at_the_wall(p, tile_q)));
                EXPECT_NO_THROW(compile_cached(attention_reference_source(p, "sm_90")));
            }
}

// Registers of the longest rows' judge spill, which is no reason to judge nothing.
TEST(AttentionKernels, AReferenceThatSpillsIsTaken) {
    for (const std::int64_t dim : {128, 192, 256}) {
        AttentionProblem p;
        p.queries = p.keys = 2048, p.heads = 4, p.dim = p.dim_v = dim;
        EXPECT_NO_THROW(compiled_attention_reference(p, "sm_90")) << dim;
    }
}

// Rows whose first elements are the values: DeepSeek's by each layout of a cache, one query and several, blocks of two sizes; and shorter ones.
TEST(AttentionKernels, LatentRowsFit) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    struct Rows {
        std::int64_t dim, dim_v;
    };
    int compiled = 0;
    for (const Rows rows : {Rows{576, 512}, {400, 384}, {320, 256}, {192, 128}})
        for (const std::int64_t page : {-1, 0, 16, 64, 128})
            for (const std::int64_t queries : {1, 2}) {
                if (rows.dim != max_latent_dim && page != (queries == 1 ? 0 : -1)) continue;
                AttentionProblem p;
                p.heads = 128, p.kv_heads = 1, p.queries = queries, p.keys = 5000, p.dim = rows.dim, p.dim_v = rows.dim_v, p.latent = true, p.batch = 2;
                p.mask = AttentionMask::causal, p.type = queries == 1 ? Type::bf16 : Type::fp16, p.log_sum_exp = queries == 2;
                if (page >= 0) p.cached = true, p.lengths = {5000, 77};
                if (page > 0) p.page = page, p.pages = p.batch * p.pages_of_a_batch();
                AttentionRequest request{.top = 1};
                request.combine_apart = (queries == 2) == (page != 64);
                if (page == 16) request.batch_invariant = true;
                if (page == 64) request.tile_kv = 32;
                if (page == -1 && rows.dim < 400) request.tile_kv = 128, request.stages = 1;
                const AttentionPlan plan = std::get<AttentionPlans>(derive(machine, p, request)).plans.front();
                SCOPED_TRACE(testing::Message() << plan.config.tile_q << "x" << plan.config.tile_kv << ", " << plan.config.stages << " stages, dim " << p.dim << "/" << p.dim_v
                                                << ", pages of " << page << ", " << queries << " queries");
                EXPECT_NO_THROW(compiled_attention(plan));
                ++compiled;
                if (page == 0) { EXPECT_NO_THROW(compile_cached(attention_reference_source(p, "sm_90"))); }
            }
    EXPECT_EQ(compiled, 10 + 3 * 2);
}

// A random plan that spilled: O takes 80 registers, scores 32, probabilities 16, of 160.
TEST(AttentionKernels, LongRowsOfThreeWarpgroupsFit) {
    AttentionProblem p;
    p.queries = 3000, p.keys = 2000, p.heads = 20, p.dim = 240, p.dim_v = 136;
    EXPECT_NO_THROW(compiled_attention(at_the_wall(p, 192)));
}

TEST(AttentionKernels, TheReferenceCompiles) {
    for (const std::int64_t dim : {8, 96, 256}) {
        AttentionProblem p;
        p.dim = dim, p.dim_v = 264 - dim;
        EXPECT_NO_THROW(compile_cached(attention_reference_source(p, "sm_90")));
    }
}

}  // namespace
}  // namespace rooftile
