// Two workers of one CTA: schedules that are short enough to be written down.
#include "rooftile/physics/workers.hpp"

#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

const Machine& invented() {
    static const Machine machine = machine_by_id(ROOFTILE_SOURCE_DIR "/machines/invented/async-units.toml");
    return machine;
}

std::vector<WorkerStage> pair_of(double products, double function, bool products_async, bool function_async) {
    return {{"products", "tensor", products, products_async}, {"function", "special", function, function_async}};
}

// Products 2, function 1, threads wait for both. One: 2 + 1. In phase each has half of either unit: 4 + 2 for two blocks. Apart: A's products
// 0 to 2, B's 2 to 4 beside A's function, A's 4 to 6 beside B's: two blocks in 4, the ceiling (2 + 1) / 2.
TEST(Workers, AStageApartTheyReachTheCeilingAndInPhaseNothing) {
    const auto stages = pair_of(2, 1, false, false);
    const WorkersRun one = simulate_workers(stages, 1, Phase::apart, 2), together = simulate_workers(stages, 2, Phase::together, 2),
                     apart = simulate_workers(stages, 2, Phase::apart, 2);
    EXPECT_NEAR(one.cycles_per_block, 3, 1e-9);
    EXPECT_NEAR(together.cycles_per_block, 3, 1e-9);
    EXPECT_NEAR(apart.cycles_per_block, 2, 1e-9);
    ASSERT_EQ(apart.busy.size(), 2u);
    EXPECT_EQ(apart.busy[0].unit, "tensor");
    EXPECT_NEAR(apart.busy[0].share, 1, 1e-9);
    EXPECT_NEAR(apart.busy[1].share, 0.5, 1e-9);
    EXPECT_NEAR(one.busy[0].share, 2.0 / 3, 1e-9);
    EXPECT_NEAR(workers_ceiling(stages), 1.5, 1e-12);
}

// The function is the longer: 1 and 3. Apart: two blocks in 6, not in less than the unit has work.
TEST(Workers, TheLongerUnitBinds) {
    EXPECT_NEAR(simulate_workers(pair_of(1, 3, false, false), 2, Phase::apart, 2).cycles_per_block, 3, 1e-9);
    // Four units of a cycle each would take four workers: of two each block still takes 4, two blocks in 4.
    const std::vector<WorkerStage> four = {{"a", "1", 1, false}, {"b", "2", 1, false}, {"c", "3", 1, false}, {"d", "4", 1, false}};
    EXPECT_NEAR(simulate_workers(four, 2, Phase::apart, 2).cycles_per_block, 2, 1e-9);
}

// Where units work by themselves one worker has its next block's products beside this one's function, and a second one adds nothing; with
// one block in flight it cannot.
TEST(Workers, OneIsEnoughWhereAllUnitsAreAsynchronous) {
    const auto stages = pair_of(2, 1, true, true);
    EXPECT_NEAR(simulate_workers(stages, 1, Phase::apart, 2).cycles_per_block, 2, 1e-9);
    EXPECT_NEAR(simulate_workers(stages, 1, Phase::apart, 1).cycles_per_block, 3, 1e-9);
    for (const Phase phase : {Phase::together, Phase::apart}) EXPECT_NEAR(simulate_workers(stages, 2, phase, 2).cycles_per_block, 2, 1e-9);
    // The products alone suffice: the threads have nothing but the function.
    EXPECT_NEAR(simulate_workers(pair_of(2, 1, true, false), 1, Phase::apart, 2).cycles_per_block, 2, 1e-9);
    // The function alone does not: threads that wait for products begin no function, but the next products run beside it.
    EXPECT_NEAR(simulate_workers(pair_of(2, 1, false, true), 1, Phase::apart, 2).cycles_per_block, 2, 1e-9);
}

// M38's figures: attention of rows of 128, the exponential alone. 2 * 2 * 128^3 FLOP over 2048, 4096 and 1024 a cycle, 128^2 over 16.
TEST(Workers, CeilingsOfSoftmax) {
    for (const auto& [id, ceiling] : {std::pair{"a100-80-sxm", 1.25}, {"h100-sxm", 1.5}, {"h20", 1.125}}) {
        const auto stages = stages_of(machine_by_id(id), {});
        EXPECT_NEAR(workers_ceiling(stages), ceiling, 1e-9) << id;
        const WorkersRun one = simulate_workers(stages, 1, Phase::apart, 2), apart = simulate_workers(stages, 2, Phase::apart, 2);
        EXPECT_LE(apart.cycles_per_block, one.cycles_per_block * (1 + 1e-9)) << id;
        EXPECT_LE(one.cycles_per_block / apart.cycles_per_block, ceiling + 1e-9) << id;
    }
    // An A100's threads wait for both, and two a stage apart have all of it.
    const auto a100 = stages_of(machine_by_id("a100-80-sxm"), {});
    EXPECT_NEAR(simulate_workers(a100, 1, Phase::apart, 2).cycles_per_block, 4096 + 1024, 1e-6);
    EXPECT_NEAR(simulate_workers(a100, 2, Phase::apart, 2).cycles_per_block, 4096, 1e-6);
    // A block in flight more than two stages of products want, and one worker has it all on the invented GPU.
    EXPECT_NEAR(simulate_workers(stages_of(invented(), {}), 1, Phase::apart, 2).cycles_per_block, 2048, 1e-6);
}

TEST(Workers, NoUnitIsBusierThanTheTimeAndNoneIsFaster) {
    for (const Work work : {Work::softmax, Work::silu})
        for (const int in_flight : {1, 2, 3})
            for (const Phase phase : {Phase::together, Phase::apart})
                for (const int workers : {1, 2}) {
                    const auto stages = stages_of(invented(), {.work = work, .m = 128, .n = 96, .dim = 512});
                    const WorkersRun run = simulate_workers(stages, workers, phase, in_flight);
                    for (const auto& busy : run.busy) {
                        double own = 0;
                        for (const WorkerStage& s : stages) own += s.unit == busy.unit ? s.cycles : 0;
                        EXPECT_LE(busy.share, 1 + 1e-9);
                        EXPECT_NEAR(busy.share * run.cycles_per_block, own, 0.02 * own) << busy.unit << " does each block's work once";
                    }
                }
}

TEST(Workers, AnUnknownRateIsNamed) {
    Machine machine = machine_by_id("h100-sxm");
    set_number(machine, "rate.mufu=unknown");
    try {
        stages_of(machine, {});
        FAIL();
    } catch (const RequestError& error) { EXPECT_NE(std::string(error.what()).find("rate.mufu of h100-sxm is unknown"), std::string::npos) << error.what(); }
}

}  // namespace
}  // namespace rooftile
