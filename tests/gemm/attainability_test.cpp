#include "rooftile/gemm/attainability.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

TiledGemm tiled(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem, double dram,
                int stages) {
    return {.hw = hw,
            .tile = tile,
            .problem = problem,
            .step = step_cycles(hw, tile, problem),
            .waves = waves(hw, tile, problem),
            .dram = dram,
            .stages = stages};
}

std::int64_t cost_of(const std::vector<AttainStep>& steps, Term term) {
    for (const AttainStep& s : steps)
        if (s.term == term) return s.cost_ns;
    ADD_FAILURE() << "no step " << name_of(term);
    return -1;
}

TEST(Attainability, EveryTermCostsWhatItAdds) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 24;
    hw.store_latency = 300;
    hw.tile_turn = 500;
    hw.dram_bandwidth = 1e12;
    hw.launch_seconds = 2e-6;
    GemmCandidate t = wgmma_tile(128, 128);
    t.store_boxes = 4, t.store_depth = 2;
    const GemmProblem p = gemm_problem(640, 127, 6400);  // 5 tiles of 100 steps on 4 SMs: two waves
    const std::vector<AttainStep> steps =
        attainability(tiled(hw, t, p, 0, 4), {.flops = 2 * 4 * 4096e9, .bytes_per_second = 1e12}, 1e9);
    ASSERT_EQ(steps.size(), std::size_t(term_count) - 1);  // nothing is packed
    // 2 * 640 * 127 * 6400 FLOP = 1040384000: 31.75 us at twice the rate, 63.5 at the clock that holds.
    EXPECT_EQ(cost_of(steps, Term::datasheet), 31750);
    EXPECT_EQ(cost_of(steps, Term::measured), 31750);
    // 5 * 100 steps of 512 cycles on 4 SMs: 64 us. Two waves of 100 steps: 102.4 us.
    EXPECT_EQ(cost_of(steps, Term::tiles), 500);
    EXPECT_EQ(cost_of(steps, Term::waves), 38400);
    EXPECT_EQ(cost_of(steps, Term::shared), 0);
    // A step takes 128 rows of A and the 127 columns of B that there are from L2, 32640 B: at 24 B/clk 1360
    // cycles, 136 us. The last wave's one CTA has the bandwidth of four: 340 cycles, less than its products.
    EXPECT_EQ(cost_of(steps, Term::l2), 136000 - 51200);
    EXPECT_EQ(cost_of(steps, Term::dram), 0);
    // 700 cycles and a load over three stages in flight are less than a step.
    EXPECT_EQ(cost_of(steps, Term::latency), 0);
    EXPECT_EQ(cost_of(steps, Term::turn), 1000);
    EXPECT_EQ(cost_of(steps, Term::exchange), 0);
    // 4 boxes * 300 / 2 + 32768 B at 64 B/clk = 1112 cycles, in both waves.
    EXPECT_EQ(cost_of(steps, Term::epilogue), 2224);
    EXPECT_EQ(cost_of(steps, Term::fill), 2060);  // 700 + 1360
    EXPECT_EQ(cost_of(steps, Term::launch), 2000);
}

// Half of two warpgroups' turns shows; it is a turn, not a matter of waves.
TEST(Attainability, ThePingpongTurnIsATurn) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.tile_turn = 500;
    GemmCandidate t = wgmma_tile(128, 128);
    t.epilogue_overlapped = t.turn_overlapped = true;
    const GemmProblem p = gemm_problem(512, 256, 6400);  // 8 tiles on 4 SMs: two waves
    const std::vector<AttainStep> steps =
        attainability(tiled(hw, t, p, 0, 4), {.flops = 1e15, .bytes_per_second = 1e12}, 1e9);
    EXPECT_EQ(cost_of(steps, Term::turn), 2 * 250);
    EXPECT_EQ(cost_of(steps, Term::waves), 0);
}

TEST(Attainability, PartsOfKShowTheirExchange) {
    GemmHardware hw = made_up_gpu();
    hw.sms = 8;
    GemmCandidate t = wgmma_tile(128, 256);
    t.split_k = 2;
    const GemmProblem p = gemm_problem(512, 256, 6400);
    const auto steps = attainability(tiled(hw, t, p, 0, 4), {8 * 4096e9, 32e9}, 1e9);
    // As gemm_time_test has it: 6232 cycles, which stand alone; the store after them takes 512.
    EXPECT_EQ(cost_of(steps, Term::exchange), 6232);
    EXPECT_EQ(cost_of(steps, Term::epilogue), 512);
}

TEST(Attainability, AMemoryBoundGemmStartsFromItsBytes) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    const GemmCandidate t = wgmma_tile(64, 128);
    const GemmProblem p = gemm_problem(64, 512, 6400);
    const double bytes = p.compulsory_bytes().value;  // 819200 + 6553600 + 65536 = 7438336
    const auto steps = attainability(tiled(hw, t, p, bytes, 9), {1e15, 64e9}, 1e9);
    EXPECT_EQ(cost_of(steps, Term::datasheet), 116224);  // at 64 B/ns
    EXPECT_EQ(cost_of(steps, Term::measured), 116224);   // at 32 B/ns
    EXPECT_EQ(cost_of(steps, Term::waves), 0);
    EXPECT_EQ(cost_of(steps, Term::dram), 0);
}

TEST(Attainability, AnUnknownRoofIsLeftOutAndAnUnknownTimeHasNoSteps) {
    GemmHardware hw = made_up_gpu();
    const GemmCandidate t = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(512, 512, 512);
    auto steps = attainability(tiled(hw, t, p, 1e6, 4), {std::nan(""), 1e12}, 1e9);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.front().term, Term::measured);
    EXPECT_EQ(steps.front().cost_ns, steps.front().time_ns);
    hw.dram_latency = std::nan("");
    EXPECT_TRUE(attainability(tiled(hw, t, p, 1e6, 4), {1e15, 1e12}, 1e9).empty());
}

// A term switched on never saves time, and all of them are the time model's own figure.
TEST(Attainability, StepsRiseToTheTimeOfTheModel) {
    std::mt19937 random(7);
    const auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    for (int i = 0; i < 20000; ++i) {
        GemmHardware hw = made_up_gpu();
        hw.sms = between(1, 200);
        hw.l2_share = between(5, 100);
        hw.dram_bandwidth = between(10, 400) * 1e9;
        hw.launch_seconds = 1e-6;
        if (between(0, 1)) hw.tile_turn = between(0, 2000);
        if (between(0, 1)) hw.packing_seconds = between(1, 100) * 1e-6;
        if (between(0, 1)) hw.store_latency = between(0, 2000);
        if (between(0, 1)) hw.dram_per_sm = between(1, 100);
        if (between(0, 1)) hw.loaded_latency = between(100, 3000);
        if (between(0, 1)) hw.step_floor = between(10, 500);
        GemmCandidate t = wgmma_tile(64 * between(1, 4), 16 * between(1, 16));
        t.cluster_m = between(1, 2);
        t.split_k = between(1, 4);
        t.ctas_per_sm = between(1, 2);
        t.epilogue_overlapped = between(0, 1) != 0;
        t.store_boxes = between(0, 8), t.store_depth = 2;
        hw.sms = std::max(hw.sms, double(t.cluster_m * t.split_k));
        const GemmProblem p = gemm_problem(between(1, 3000), between(1, 3000), between(1, 5000));
        const double dram = p.compulsory_bytes().value * between(1, 8);
        const TiledGemm g = tiled(hw, t, p, dram, between(2, 12));
        const double clock = between(5, 20) * 1e8;
        const auto steps = attainability(g, {hw.peak_flops, 2 * hw.dram_bandwidth}, clock);
        GemmTimer timer(hw, t, p, g.step, g.waves, g.stages);
        ASSERT_EQ(steps.size(), std::size_t(hw.packing_seconds > 0 ? term_count : term_count - 1));
        std::int64_t sum = 0;
        for (const AttainStep& s : steps) {
            sum += s.cost_ns;
            ASSERT_EQ(sum, s.time_ns) << name_of(s.term);
            if (s.term <= Term::measured) continue;
            ASSERT_GE(s.cost_ns, 0) << name_of(s.term);
            const DatasheetRoof any{hw.peak_flops, hw.dram_bandwidth};
            const Term before = static_cast<Term>(int(s.term) - 1);
            ASSERT_GE(seconds_with(s.term, g, any, clock), seconds_with(before, g, any, clock) * (1 - 1e-12))
                << name_of(s.term);
        }
        ASSERT_EQ(sum, std::llround(timer.at(clock, dram).seconds * 1e9));
    }
}

// Every number of parts of K: of most sizes of clusters nobody keeps how many SMs they can use.
TEST(Attainability, IsToldOfEverySizeOfClusters) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const Operation& op = gemm_operation();
    for (int parts = 1; parts <= 8; ++parts) {
        Given given(Given::Named::by_key);
        for (const auto& [key, value] : {std::pair{"m", "64"}, {"n", "1024"}, {"k", "16384"}}) given.add(key, value);
        given.add("split_k", std::to_string(parts));
        const PlanSet set = op.derive(machine, op.problem(given), op.request(given, {.top = 1}));
        ASSERT_FALSE(set.plans.empty()) << parts;
        const std::vector<RoofStep> steps = op.roof_steps(*machine, set.plans.front());
        ASSERT_FALSE(steps.empty()) << parts;
        EXPECT_NEAR(double(steps.back().time_ns), *set.plans.front().time_us * 1e3, 1) << parts;
    }
}

}  // namespace
}  // namespace rooftile
