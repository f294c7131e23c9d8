#include "rooftile/plan/fuse_staging.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "rooftile/machine/registry.hpp"
#include "rooftile/problem/expression.hpp"

namespace rooftile {
namespace {

// 1024 rows for 15 clusters: ceil(1024 / 15) = 69 each, and 15 * 69 = 1035; 2048 for 132: 16 each for 128.
TEST(FuseStaging, EvenedGridsTakeNoMoreRounds) {
    EXPECT_EQ(evened(1024, 15), 15);
    EXPECT_EQ(evened(2048, 132), 128);
    EXPECT_EQ(evened(133, 132), 67);
    EXPECT_EQ(evened(7, 132), 7);
    EXPECT_EQ(evened(0, 132), 0);
    for (std::int64_t rows = 1; rows < 500; ++rows)
        for (std::int64_t resident : {1, 7, 15, 132}) {
            const std::int64_t clusters = evened(rows, resident);
            EXPECT_LE(clusters, resident);
            EXPECT_EQ(ceil_div(rows, clusters), ceil_div(rows, resident));
        }
}

FusePlans rings(const std::string& shape, int cluster = 0) {
    FuseRequest request{.home = FuseHome::ring, .top = 64};
    if (cluster > 0) request.cluster = cluster;
    const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16" + shape)};
    const auto outcome =
        derive(machine_by_id("h200-sxm"), expression_graph("y = softmax(x)", tensors), request);
    const auto* plans = std::get_if<FusePlans>(&outcome);
    return plans ? *plans : FusePlans{};
}

// 262144 elements of 2 B in 8 CTAs: 64 KiB each, 4 chunks of 512 threads x 2 vectors x 16 B; two rows of
// slots.
TEST(FuseStaging, RingsHoldARowAndLeaveRoom) {
    bool found = false;
    for (const FusePlan& plan : rings("[1024,262144]", 8).plans) {
        const FuseConfig& c = plan.config;
        EXPECT_EQ(ring_part(plan.program, c), 4096);
        EXPECT_GE(c.stages, ring_chunks(plan.program, c));
        EXPECT_EQ(staged_rows(plan.program, c).bytes,
                  std::int64_t(c.stages) * c.items * c.threads_per_row * 16);
        if (c.threads_per_row != 512 || c.items != 2) continue;
        found = true;
        EXPECT_EQ(c.threads, 544);
        EXPECT_EQ(ring_chunks(plan.program, c), 4);
        EXPECT_EQ(c.stages, 8);
        EXPECT_EQ(c.grid, 120);
    }
    EXPECT_TRUE(found);
}

TEST(FuseStaging, RingsNeedLongRowsOfWholeUnits) {
    EXPECT_TRUE(rings("[4096,16384]").plans.empty());  // 32 KiB: one CTA holds it at once
    EXPECT_FALSE(rings("[4096,16392]").plans.empty());
    EXPECT_TRUE(rings("[4096,20001]").plans.empty());   // 40002 B: no multiple of 16
    EXPECT_TRUE(rings("[4,262144]", 1).plans.empty());  // 512 KiB fit into no CTA
}

}  // namespace
}  // namespace rooftile
