// The committed ledger of fused rows judges planner and model as they are, and would notice a term that is wrong.
#include <gmock/gmock.h>

#include <memory>

#include "rooftile/core/space.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/validation.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

const std::string file = ROOFTILE_SOURCE_DIR "/bench/results/ledger/h200-sxm-fuse-3469596.jsonl";

const Ledger& ledger() {
    static const Ledger read = read_ledger(read_whole_file(file), file);
    return read;
}

/// What the ledger says where the machine's numbers are replaced.
Validation validated(const std::vector<std::string>& numbers) {
    Machine machine = machine_by_id(ledger().machine_id);
    set_numbers(machine, numbers);
    return validation_of({ledger()}, std::make_shared<const Machine>(std::move(machine)),
                         [](std::size_t count, const auto& work) {
                             for (std::size_t i = 0; i < count; ++i) work(i);
                         });
}

/// What the model holds; whoever makes it better makes these tighter. Two errors are those of kernels that since reduce dear values in
/// one round. The mean regret was 1.0574 of the kernels that were measured: gelu_tanh has an instruction more since, which makes another of
/// two nearly equal plans the first of one problem (1.018 -> 1.093), and layer norm two, which does so in another (1.169 -> 1.122): 1.0581.
const std::vector<std::string> held = {"regret.mean=1.0582",          "regret.p95=1.235",
                                       "best_of.4=1.031",             "best_of.8=1.020",
                                       "prediction_error.mean=0.0813", "prediction_error_all.mean=0.1492",
                                       "rank_correlation=0.703"};

TEST(FuseLedger, PlannerAndModelHoldTheirThresholds) {
    const Validation v = validated({});
    EXPECT_EQ(v.problems.size(), 48u);
    EXPECT_GT(v.space_mean, 50);
    EXPECT_THAT(missed_thresholds(v, held), testing::ElementsAre());
}

/// Refused since: more CTAs of an SM in a reduction across the grid than four, clusters of which a CTA may have no vector of a row
/// (docs/facts.md 189), as many CTAs of short rows with many functions as spilled, and as many threads of rows off vectors that are
/// read again with two operands.
bool many_across_grid(const Record& config) {
    return find_as<std::string>(config, "reduce_scope") == "grid" && find_as<std::int64_t>(config, "ctas_per_sm") > 4;
}
bool refused_since(const Record& config) {
    const auto storage = find_as<std::string>(config, "row_storage");
    return storage == "shared" || storage == "reload" || (storage == "pipelined" && find_as<std::int64_t>(config, "cluster") > 1);
}

// Each member is planned again by its own configuration: none other comes back, and none is lost.
TEST(FuseLedger, EveryConfigurationComesBack) {
    const auto machine = std::make_shared<const Machine>(machine_by_id(ledger().machine_id));
    const Operation& operation = *ledger().operation;
    int members = 0, refused = 0;
    for (const LedgerEntry& entry : ledger().entries)
        for (const LedgerMember& member : entry.members) {
            if (many_across_grid(member.config)) continue;
            const auto plan = plan_of_config(operation, machine, entry.problem, member.config);
            if (!plan && refused_since(member.config)) {
                ++refused;
                continue;
            }
            ++members;
            ASSERT_TRUE(plan) << operation.short_name(entry.problem) << ", member " << &member - &entry.members[0];
            EXPECT_EQ(operation.config_record(*plan), member.config);
        }
    EXPECT_GT(members, 2600);
    EXPECT_LE(refused, 37);
}

// Each number belongs to a term of the model; half or double of it must cost more than the thresholds allow.
TEST(FuseLedger, ABrokenTermMissesAThreshold) {
    for (const char* number : drawn_few<const char*>({"stream.overlap_exponent=2", "stream.thread_instructions=110", "stream.reduction=0 clk", "stream.grid.reduction=78",
          "stream.ring.chunk=0 clk", "cta.interval=0 clk", "cluster.start=0 clk", "dram.derate.streams=0",
          "tma.latency_loaded=2.3 us", "launch.gap_stream=0 us", "dram.sustained_copy=2 TB/s", "dram.sustained_read=2.1 TB/s",
          "dram.latency=0 clk", "l2.latency=0 clk", "dram.per_sm_alone=10 B/clk/SM", "rate.mufu=8 op/clk/SM",
          "rate.alu=16 op/clk/SM", "arithmetic.latency=1 clk", "sm.partitions=2", "sm.count=66"}, 5))
        EXPECT_THAT(missed_thresholds(validated({number}), held), testing::Not(testing::IsEmpty())) << number;
}

}  // namespace
}  // namespace rooftile
