#include "rooftile/fuse/staging.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "rooftile/expression/expression.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

// A ring of 9 vectors over 8 CTAs leaves three of them without any, who would hear of no row.
TEST(FuseStaging, RowsAreScheduledDynamicallyWhereEveryCtaHasAChunk) {
    Program p;
    p.rows = 100, p.columns = 64 * 8;
    FuseConfig c{.row_storage = RowStorage::pipelined,
                 .vector_width = 8,
                 .vectors_per_thread = 1,
                 .threads_per_row = 32,
                 .cluster = 8,
                 .stages = 6};
    c.persistent = true;
    EXPECT_TRUE(schedules_dynamically(p, c));
    EXPECT_EQ(ring_chunks(p, c), 1);
    EXPECT_EQ(rows_known_ahead(p, c), 8);
    p.columns = 9 * 8;
    EXPECT_FALSE(schedules_dynamically(p, c));
    c.cluster = 1;
    EXPECT_TRUE(schedules_dynamically(p, c));
    p.columns = 1024 * 8;  // 32 chunks: slots for no whole row
    EXPECT_EQ(rows_known_ahead(p, c), 2);
    p.rows = 2147483648;
    EXPECT_FALSE(schedules_dynamically(p, c));
}

FusePlans rings(const std::string& shape, int cluster = 0) {
    FuseRequest request{.row_storage = RowStorage::pipelined, .top = 256};
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
                  std::int64_t(c.stages) * c.vectors_per_thread * c.threads_per_row * 16);
        if (c.threads_per_row != 512 || c.vectors_per_thread != 2) continue;
        found = true;
        EXPECT_EQ(c.threads, 544 + c.reduction_threads);
        EXPECT_EQ(ring_chunks(plan.program, c), 4);
        EXPECT_EQ(c.stages, 8);
        EXPECT_EQ(c.grid, 120);
    }
    EXPECT_TRUE(found);
}

// gamma and beta of 65536 columns, 2 B each, in 4 CTAs: 65536 B stay behind 8 slots of 16384 B; alone they would
// leave a CTA without room for a row. Few rows keep nothing, and rows of other rows neither.
TEST(FuseStaging, RingsKeepWhatAllRowsShare) {
    const auto plans = [](const std::string& rows) {
        std::vector<TensorDeclaration> tensors;
        for (const std::string& t : {"x:bf16[" + rows + ",65536]", std::string("g:bf16[65536]"),
                                     std::string("b:bf16[65536]"), "s:bf16[" + rows + ",1]"})
            tensors.push_back(tensor_declaration(t));
        const auto outcome =
            derive(machine_by_id("h200-sxm"), expression_graph("y = layernorm(x * s, g, b)", tensors),
                   {.row_storage = RowStorage::pipelined, .top = 64});
        return std::get<FusePlans>(outcome).plans;
    };
    bool found = false;
    for (const FusePlan& plan : plans("2048")) {
        const FuseConfig& c = plan.config;
        const StagedRows staged = staged_rows(plan.program, c);
        EXPECT_EQ(staged.kept.size(), c.early_weights ? 2u : 0u);
        EXPECT_EQ(staged.kept_bytes, c.early_weights ? 2 * 2 * 65536 / c.cluster : 0);
        EXPECT_EQ(staged.vector_bytes(), 16);
        if (!c.early_weights || c.cluster != 4 || c.threads_per_row != 512 || c.vectors_per_thread != 2)
            continue;
        found = true;
        EXPECT_EQ(c.stages, 8);
        EXPECT_EQ(staged.kept[0].offset, 8 * 16384);
        EXPECT_EQ(staged.bytes, 8 * 16384 + 65536);
    }
    EXPECT_TRUE(found);
    for (const FusePlan& plan : plans("100")) EXPECT_FALSE(plan.config.early_weights);
}

// Some threads reduce ahead of those that store where one pass over the slots does all reductions and what goes over
// is numbers of the row. Not where a second reduction needs the first, the reduction reads beside the slots, nothing
// is stored for an element, or places go over.
TEST(FuseStaging, OnePassOfReductionsCanBeWarpSpecialised) {
    const auto specialised = [](const std::string& text, bool kept = false) {
        const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16[1024,65536]"),
                                                        tensor_declaration("g:bf16[65536]")};
        const auto program = fuse_program(expression_graph(text, tensors));
        return reduction_can_specialise(std::get<Program>(program), {.row_storage = RowStorage::pipelined,
                                                                     .vectors_per_thread = 1,
                                                                     .threads_per_row = 256,
                                                                     .reduction_threads = 128,
                                                                     .persistent = true,
                                                                     .early_weights = kept});
    };
    EXPECT_TRUE(specialised("y = layernorm(x, g)"));
    EXPECT_TRUE(specialised("y = softmax(x) * g"));
    EXPECT_TRUE(specialised("y = x * g - mean(x) + max(x)"));
    EXPECT_FALSE(specialised("y = softmax(layernorm(x) * 2) * g"));
    EXPECT_FALSE(specialised("y = softmax(x * g)"));
    EXPECT_TRUE(specialised("y = softmax(x * g)", true));
    EXPECT_FALSE(specialised("y = sum(x * g)", true));
    EXPECT_FALSE(specialised("y = x * g + fp32(argmax(x))"));
    EXPECT_FALSE(specialised("y = x * g; s = sum(x)"));
}

// The producer's warp, the reducing warps and those that store fill a CTA; who asks for none gets none.
TEST(FuseStaging, ReductionThreadsCountAmongACtas) {
    int found = 0;
    for (const FusePlan& plan : rings("[2048,65536]").plans) {
        const FuseConfig& c = plan.config;
        EXPECT_EQ(c.threads, 32 + c.threads_per_row + c.reduction_threads);
        EXPECT_EQ(c.rows_per_cta(), 1);
        EXPECT_TRUE(c.persistent);
        EXPECT_TRUE(c.reduction_threads == 0
                    || c.vectors_per_thread * c.threads_per_row % c.reduction_threads == 0);
        found += c.reduction_threads > 0;
    }
    EXPECT_GT(found, 4);
    const std::vector<TensorDeclaration> x = {tensor_declaration("x:bf16[2048,65536]")};
    const auto none = derive(machine_by_id("h200-sxm"), expression_graph("y = softmax(x)", x),
                             {.reduction_threads = 0, .row_storage = RowStorage::pipelined, .top = 64});
    for (const FusePlan& plan : std::get<FusePlans>(none).plans) EXPECT_EQ(plan.config.reduction_threads, 0);
}

// Eight flags are 8 B, no unit of bulk copies. Where only the last pass reads them, threads load them; where a
// reduction does, they would lie in the slots.
TEST(FuseStaging, SlotsHoldWholeUnitsOfWhatIsReduced) {
    const auto planned = [](const char* text) {
        const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16[270,65536]"),
                                                        tensor_declaration("m:bool[270,65536]")};
        const auto outcome = derive(machine_by_id("h200-sxm"), expression_graph(text, tensors),
                                    {.row_storage = RowStorage::pipelined, .top = 64});
        const auto* plans = std::get_if<FusePlans>(&outcome);
        return plans ? plans->plans.size() : 0;
    };
    EXPECT_GT(planned("y = where(m, x - mean(x), x)"), 0U);
    EXPECT_EQ(planned("y = x - mean(where(m, x, 1.0))"), 0U);
}

TEST(FuseStaging, RingsNeedLongRowsOfWholeUnits) {
    EXPECT_TRUE(rings("[4096,16384]").plans.empty());  // 32 KiB: one CTA holds it at once
    EXPECT_FALSE(rings("[4096,16392]").plans.empty());
    EXPECT_FALSE(rings("[4096,20001]").plans.empty());  // 40002 B: the whole vectors around them are copied
    EXPECT_TRUE(rings("[4,262144]", 1).plans.empty());  // 512 KiB fit into no CTA
}

}  // namespace
}  // namespace rooftile
