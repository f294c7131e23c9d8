// The committed ledger of fused rows judges planner and model as they are, and would notice a term that is wrong.
#include <gmock/gmock.h>

#include <memory>

#include "rooftile/core/space.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/validation.hpp"

namespace rooftile {
namespace {

const std::string file = ROOFTILE_SOURCE_DIR "/bench/results/ledger/h200-sxm-fuse-6503641.jsonl";

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

/// What the model holds; whoever makes it better makes these tighter.
const std::vector<std::string> held = {"regret.mean=1.052",          "regret.p95=1.178",
                                       "best_of.4=1.026",            "best_of.8=1.019",
                                       "prediction_error.mean=0.101", "prediction_error_all.mean=0.191",
                                       "rank_correlation=0.636"};

TEST(FuseLedger, PlannerAndModelHoldTheirThresholds) {
    const Validation v = validated({});
    EXPECT_EQ(v.problems.size(), 29u);
    EXPECT_GT(v.space_mean, 100);
    EXPECT_THAT(missed_thresholds(v, held), testing::ElementsAre());
}

/// Of a form that has gone since: clusters outside rings, rings of which an SM has several CTAs, and parts of warps, whose results went
/// through shared memory.
bool gone(const Record& config) {
    const auto text = [&](const char* key) { return find_as<std::string>(config, key).value_or(""); };
    const bool ring = text("row_storage") == "pipelined";
    const auto number = [&](const char* key) { return find_as<std::int64_t>(config, key).value_or(0); };
    const bool part = number("threads_per_row") > 0 && number("threads_per_row") < 32;
    return part || (!ring && text("reduce_scope") == "cluster") || (ring && number("ctas_per_sm") > 1);
}

// Each member is planned again by its own configuration: none other comes back, and none is lost.
TEST(FuseLedger, EveryConfigurationComesBack) {
    const auto machine = std::make_shared<const Machine>(machine_by_id(ledger().machine_id));
    const Operation& operation = *ledger().operation;
    int members = 0;
    for (const LedgerEntry& entry : ledger().entries)
        for (const LedgerMember& member : entry.members) {
            if (gone(member.config)) continue;
            ++members;
            const auto plan = plan_of_config(operation, machine, entry.problem, member.config);
            ASSERT_TRUE(plan) << operation.short_name(entry.problem) << ", member " << &member - &entry.members[0];
            EXPECT_EQ(operation.config_record(*plan), member.config);
        }
    EXPECT_GT(members, 1400);
}

// Each number belongs to a term of the model; half or double of it must cost more than the thresholds allow.
TEST(FuseLedger, ABrokenTermMissesAThreshold) {
    for (const char* number :
         {"stream.overlap_exponent=2", "stream.thread_instructions=110", "stream.reduction=0 clk", "stream.grid.reduction=78",
          "stream.ring.chunk=0 clk", "cta.interval=0 clk", "cluster.start=0 clk", "dram.derate.streams=0",
          "tma.latency_loaded=2.3 us", "launch.gap_stream=0 us", "dram.sustained_copy=2 TB/s", "dram.sustained_read=2.1 TB/s",
          "dram.latency=0 clk", "l2.latency=0 clk", "dram.per_sm_alone=10 B/clk/SM", "rate.mufu=8 op/clk/SM",
          "rate.alu=16 op/clk/SM", "arithmetic.latency=1 clk", "sm.partitions=2", "sm.count=66"})
        EXPECT_THAT(missed_thresholds(validated({number}), held), testing::Not(testing::IsEmpty())) << number;
}

}  // namespace
}  // namespace rooftile
