// Two workers of one CTA: schedules that are short enough to be written down.
#include "rooftile/physics/workers.hpp"

#include <gtest/gtest.h>

#include <array>

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
    EXPECT_NEAR(workers_ceiling(stages, 2), 1.5, 1e-12);
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
        EXPECT_NEAR(workers_ceiling(stages, 2), ceiling, 1e-9) << id;
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

// Copies 1, products 2, function 1. With one block in flight a worker does one after the other, 4 in all, and so it does where it waits for its
// copies: a second one can bring twice as much. Two blocks hide copies that go on by themselves: 3 of 2. Where copies are the longest,
// 5, one worker has them all the time.
TEST(Workers, CopiesCountWhereNothingHidesThem) {
    std::vector<WorkerStage> stages = {{"copies", "port", 1, true}, {"products", "tensor", 2, false}, {"function", "special", 1, false}};
    EXPECT_NEAR(workers_ceiling(stages, 1), 2, 1e-12);
    EXPECT_NEAR(workers_ceiling(stages, 2), 1.5, 1e-12);
    stages[0].asynchronous = false;
    EXPECT_NEAR(workers_ceiling(stages, 2), 2, 1e-12);
    stages[0].cycles = 5, stages[0].asynchronous = true;
    EXPECT_NEAR(workers_ceiling(stages, 2), 1, 1e-12);
}

TEST(Workers, NoGainIsAboveTheCeiling) {
    for (const char* id : {"h100-sxm", "a100-80-sxm", "rtx4090", "b200", ROOFTILE_SOURCE_DIR "/machines/invented/async-units.toml"})
        for (const Work work : {Work::softmax, Work::silu})
            for (const int in_flight : {1, 2, 3})
                for (const auto& [m, n, dim] : {std::array{128, 128, 64}, {64, 64, 512}, {256, 128, 512}, {128, 128, 4096}, {64, 256, 100}}) {
                    const auto stages = stages_of(machine_by_id(id), {.work = work, .m = m, .n = n, .dim = dim});
                    const double one = simulate_workers(stages, 1, Phase::apart, in_flight).cycles_per_block;
                    for (const Phase phase : {Phase::together, Phase::apart})
                        EXPECT_LE(one / simulate_workers(stages, 2, phase, in_flight).cycles_per_block, workers_ceiling(stages, in_flight) + 1e-9)
                            << id << ' ' << int(work) << ' ' << in_flight << ' ' << m << ' ' << n << ' ' << dim;
                }
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
    const auto why = [](const char* id, const char* setting) {
        Machine machine = machine_by_id(id);
        if (setting) set_number(machine, setting);
        try {
            stages_of(machine, {});
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string("simulated");
    };
    const auto begins = [](const std::string& text, std::string_view with) { EXPECT_EQ(text.substr(0, with.size()), with); };
    begins(why("h100-sxm", "rate.mufu=unknown"), "rate.mufu of h100-sxm is unknown");
    begins(why("h100-sxm", "rate.wgmma.bf16.fp32=unknown"), "rate.wgmma.bf16.fp32 of h100-sxm is unknown");
    begins(why("a100-80-sxm", "rate.mma_sync.bf16.fp32=unknown"), "rate.mma_sync.bf16.fp32 of a100-80-sxm is unknown");
    // Whose tensor cores take fp16 alone: no number gives it another type.
    EXPECT_EQ(why("v100-sxm2", nullptr), "v100-sxm2 has no bf16 matrix instruction, and blocks are of bf16");
}

}  // namespace
}  // namespace rooftile
