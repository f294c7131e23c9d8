// A machine of a few numbers [M8]: what is planned from them is judged on the machine that they are of.
#include "rooftile/machine/numbers.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/gemm.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

constexpr const char* of_the_method = "smem=256KiB,regs=65536,bw=1TB/s,peak=50TFLOP/s,latency=500clk";
// Of the H100 that is shipped: its own five.
constexpr const char* of_an_h100 = "smem=228KiB,regs=65536,bw=3.35TB/s,peak=989TFLOP/s,latency=800clk";

GemmPlan first_plan(const Machine& machine, const GemmProblem& problem, const GemmRequest& request = {}) {
    const auto result = derive(machine, problem, request);
    return std::get<Plans>(result).plans.at(0);
}

/// Of that tile on the whole machine, of its plan 1's time; of the next wider one where the machine's kernel takes no such tile.
double share_of_best(const Machine& machine, const GemmProblem& problem, const GemmPlan& from_few) {
    const double best = *first_plan(machine, problem).prediction.time_us;
    const GemmConfig& c = from_few.config;
    double least = INFINITY;
    for (const auto& [tile_m, tile_n] : {std::pair(c.tile_m, c.tile_n), std::pair(c.tile_m, c.tile_n + 32), std::pair(c.tile_m + 32, c.tile_n)}) {
        GemmRequest fixed;
        fixed.top = 1, fixed.tile_m = tile_m, fixed.tile_n = tile_n;
        const auto result = derive(machine, problem, fixed);
        // A tile that the machine's own search leaves out counts as its plan 1 where it is told faster.
        if (const auto* plans = std::get_if<Plans>(&result)) least = std::min(least, std::max(1.0, *plans->plans.at(0).prediction.time_us / best));
        if (std::isfinite(least) && tile_m == c.tile_m && tile_n == c.tile_n) break;
    }
    return least;
}

TEST(FewNumbers, TheMethodsExampleReachesItsIntensity) {
    Random random(480001);
    for (int i = 0; i < 30; ++i) {
        const GemmProblem problem = gemm_problem(random.whole(128, 2000) * 8, random.whole(128, 2000) * 8, random.whole(8, 600) * 8);
        const GemmPlan plan = first_plan(machine_of_numbers(of_the_method), problem);
        EXPECT_GE(flops_a_loaded_byte(gemm_problem(1 << 14, 1 << 14, 1 << 10), {plan.config}), 50);
        EXPECT_EQ(plan.config.stages, 2) << "assumed: nobody said how fast an SM is";
        EXPECT_FALSE(plan.prediction.time_us.has_value());
    }
}

TEST(FewNumbers, WithAClockAndARateTheExampleIsTheMethods) {
    const Machine machine = machine_of_numbers(std::string(of_the_method) + ",clock.boost=1GHz,rate.generic.bf16.fp32=500FLOP/clk/SM");
    GemmRequest tile;
    tile.tile_m = tile.tile_n = 128, tile.tile_k = 32, tile.consumer_warpgroups = 2;
    const GemmPlan plan = first_plan(machine, gemm_problem(4096, 4096, 4096), tile);
    EXPECT_EQ(plan.config.stages, 2);                     // S_min = ceil(500 / 2098) + 1
    EXPECT_EQ(plan.resources.accumulator_registers, 64);  // and about 104 with the rest: two blocks an SM
    EXPECT_EQ(plan.config.ctas_per_sm, 2);
    EXPECT_EQ(plan.resources.shared_bytes, 2 * 16384);
}

TEST(FewNumbers, AnH100sFiveGiveATileThatServesIt) {
    const Machine whole = machine_by_id("h100-sxm"), few = machine_of_numbers(of_an_h100);
    Random random(483002);
    constexpr int problems = 20;
    int near = 0;
    for (int i = 0; i < problems; ++i) {
        const auto extent = [&] { return std::int64_t(random.log_uniform(512, 2049)) * 8; };
        const GemmProblem problem = gemm_problem(extent(), extent(), std::int64_t(random.log_uniform(64, 1025)) * 8);
        near += share_of_best(whole, problem, first_plan(few, problem)) <= 1.10;
    }
    EXPECT_GE(near, problems * 9 / 10);
}

TEST(FewNumbers, WithSmsAndAClockTheyServeSmallerProblemsToo) {
    const Machine whole = machine_by_id("h100-sxm"), few = machine_of_numbers(std::string(of_an_h100) + ",sm.count=132,clock.boost=1.83GHz");
    Random random(483003);
    constexpr int problems = 60;
    int near = 0;
    for (int i = 0; i < problems;) {
        const GemmProblem problem = drawn_gemm(random, {});
        if (problem.flops().value < 2e10 || problem.flops().value > 5e12) continue;
        ++i;
        near += share_of_best(whole, problem, first_plan(few, problem)) <= 1.15;
    }
    EXPECT_GE(near, problems * 9 / 10);
}

/// Its five numbers, under the keys of its file.
Machine five_of(const Machine& whole) {
    Machine few = inherited_machine("", "");
    few.id = "numbers";
    for (const char* key : {"shared.per_sm", "sm.registers", "dram.bandwidth", "dram.latency"}) few.facts.emplace(key, *whole.find(key));
    const double peak = fastest_instruction(whole, "bf16", "fp32")->rate.value * *whole.count("sm.count") * whole.number<Clock>("clock.boost")->value;
    set_fact(few, "peak.generic.bf16.fp32", fmt::format("{:.5g} TFLOP/s", peak * 1e-12), "of five");
    return few;
}

/// Of `whole`: one number, or the architecture with its features and what its file says of all its GPUs.
void add(Machine& few, const std::string& name, const Machine& whole) {
    if (name != "arch") {
        few.facts.insert_or_assign(name, *whole.find(name));
        return;
    }
    few.arch = whole.arch, few.features = whole.features;
    for (const auto& [key, fact] : inherited_machine("", whole.arch).facts)
        if (whole.find(key)) few.facts.insert_or_assign(key, *whole.find(key));
}

TEST(FewNumbers, AddedOneByOneInDrawnOrdersTheyEndAtPlan1) {
    Random random(483001);
    int additions = 0, costly = 0;
    std::size_t place = 0;
    for (int round = 0; round < 2; ++round)
        for (const char* id : {"h100-sxm", "h200-sxm", "a100-80-sxm", "l40s", "h20"}) {
            const Machine whole = machine_by_id(id);
            GemmProblem problem = drawn_gemm(random, {});
            while (problem.flops().value < 2e10 || problem.flops().value > 5e12) problem = drawn_gemm(random, {});
            Machine few = five_of(whole);
            std::vector<std::string> names{"arch"};
            for (const auto& [key, fact] : whole.facts)
                if (!few.find(key)) names.push_back(key);
            for (std::size_t i = names.size() - 1; i > 0; --i) std::swap(names[i], names[std::size_t(random.whole(0, std::int64_t(i)))]);
            if (!one_in(5, place++)) continue;
            double before = INFINITY;
            std::map<std::pair<int, int>, double> shares;
            for (const std::string& name : names) {
                add(few, name, whole);
                Machine now = few;
                take_what_follows(now);
                const GemmPlan plan = first_plan(now, problem);
                const auto [at, unseen] = shares.try_emplace({plan.config.tile_m, plan.config.tile_n}, 0);
                if (unseen) at->second = share_of_best(whole, problem, plan);
                const double share = at->second;
                ++additions;
                if (share > 1.1 * before) ++costly, std::cout << fmt::format("{} {}x{}x{}: {} costs {:.3f}\n", id, problem.m, problem.n, problem.k, name, share / before);
                before = share;
            }
            EXPECT_EQ(label_of(first_plan(few, problem).config), label_of(first_plan(whole, problem).config)) << id << ", all numbers";
        }
    EXPECT_GT(additions, test_all() ? 700 : 60);
    // Of 22,000 additions in 250 orders for these five 12 did: a rank by waves and intensity does not see that a kernel has few stages.
    EXPECT_LE(costly, 1);
}

TEST(FewNumbers, NoPlanNeedsWhatNoInstructionHas) {
    Random random(480004);
    for (int i = 0; i < 100; ++i) {
        std::string text = fmt::format("smem={}KiB,regs={},bw={}GB/s,peak={}TFLOP/s,latency={}clk", random.whole(16, 1024), random.whole(16, 512) * 1024,
                                       random.whole(50, 20000), random.whole(1, 5000), random.whole(50, 3000));
        // Whatever a file says of them.
        if (random.coin()) text += fmt::format(",sm.max_registers_per_thread={},sm.max_threads_per_cta={}", random.whole(64, 2048), 128 * random.whole(1, 32));
        const auto result = derive(machine_of_numbers(text), gemm_problem(random.whole(1, 9000), random.whole(1, 1000) * 8, random.whole(1, 1000) * 8), {});
        const auto* plans = std::get_if<Plans>(&result);
        ASSERT_NE(plans, nullptr) << text;
        for (const GemmPlan& plan : plans->plans) {
            EXPECT_LE(plan.resources.accumulator_registers.value_or(0) + MmaOnlyFamily::working_registers, 255) << text;
            EXPECT_LE(plan.resources.threads.value_or(0), 1024) << text;
        }
    }
}

const Step* step_of(const GemmPlan& plan, std::string_view quantity) {
    const auto found = std::ranges::find(plan.derivation, quantity, &Step::quantity);
    return found == plan.derivation.end() ? nullptr : &*found;
}

// By hand: what a thread of any number holds, and what of C would stand in shared memory [M52].
TEST(FewNumbers, WhereRegistersBindTheWaysRoundAreWeighed) {
    Random random(483005);
    int bound = 0;
    for (int i = 0; i < 40; ++i) {
        const int registers = 8192 * int(random.whole(1, 16)), kib = int(random.whole(32, 512));
        const Machine few = machine_of_numbers(fmt::format("smem={}KiB,regs={},bw=1TB/s,peak={}TFLOP/s,latency=500clk", kib, registers, random.whole(10, 900)));
        const GemmPlan plan = first_plan(few, gemm_problem(8192, 8192, 4096));
        const Step* larger = step_of(plan, "next_larger_tile");
        ASSERT_NE(larger, nullptr);
        const int m = plan.config.tile_m, n = plan.config.tile_n, wide = 2 * std::min(m, n), other = std::max(m, n);
        EXPECT_DOUBLE_EQ(*larger->value, double(wide) * other / (wide + other));
        const Step *threads = step_of(plan, "larger_by_threads"), *shared = step_of(plan, "larger_in_shared");
        EXPECT_EQ(threads == nullptr, shared == nullptr);
        if (!threads) continue;
        ++bound;
        const double sums = double(wide) * other;
        double least = INFINITY, held = 0;
        for (const int count : {128, 256, 512, 1024}) {
            const int each = std::min(registers / count, 255);
            const int half = (each + 1) / 2;  // what is multiplied takes the others
            least = std::min(least, std::max(sums / count + 40 - each, sums / count - half));
            held = std::max(held, double(count) * std::max(0, std::min(each - 40, half)));
        }
        EXPECT_DOUBLE_EQ(*threads->value, least);
        EXPECT_DOUBLE_EQ(*shared->value, 4 * std::max(0.0, sums - held));
        const double needed = 4 * std::max(0.0, sums - held) + 2.0 * (wide + other) * plan.config.tile_k * 2;
        EXPECT_EQ(shared->limit.find("they do not fit") != std::string::npos, needed > kib * 1024.0) << shared->limit;
    }
    EXPECT_GE(bound, 20);
}

TEST(FewNumbers, StagesThatAreAskedForAreTakenWhereTheyFit) {
    const Machine machine = machine_of_numbers(of_the_method);
    GemmRequest request;
    request.tile_m = request.tile_n = 128, request.tile_k = 32, request.stages = 16;
    EXPECT_EQ(first_plan(machine, gemm_problem(4096, 4096, 4096), request).config.stages, 16);
    EXPECT_EQ(first_plan(machine, gemm_problem(4096, 4096, 4096), request).resources.stages_max, 16);
    request.stages = 17;
    EXPECT_TRUE(std::holds_alternative<Infeasible>(derive(machine, gemm_problem(4096, 4096, 4096), request)));
}

TEST(FewNumbers, WhatIsUnknownAndMattersMostIsNamed) {
    const auto note = [](const std::string& numbers) {
        const auto result = derive(machine_of_numbers(numbers), gemm_problem(4096, 4096, 4096), {});
        const std::vector<std::string>& notes = std::get<Plans>(result).notes;
        const auto found = std::ranges::find_if(notes, [](const std::string& n) { return n.find("Most wanted is ") != n.npos; });
        return found == notes.end() ? std::string() : found->substr(found->find("Most wanted is ") + 15);
    };
    // Each of the five left out, and what comes behind them.
    const std::pair<std::string, const char*> five[] = {{"regs=65536", "sm.registers"}, {"smem=256KiB", "shared.per_cta"}, {"peak=50TFLOP/s", "the peak"},
                                                        {"bw=1TB/s", "dram.bandwidth"}, {"latency=500clk", "dram.latency"}};
    std::string all;
    for (const auto& [left_out, key] : five) {
        std::string numbers;
        for (const auto& [number, other] : five)
            if (number != left_out) numbers += (numbers.empty() ? "" : ",") + number;
        EXPECT_EQ(note(numbers).rfind(key, 0), 0u) << note(numbers);
        all += (all.empty() ? "" : ",") + left_out;
    }
    EXPECT_EQ(note(all).rfind("sm.count", 0), 0u) << note(all);
    EXPECT_EQ(note(all + ",sm.count=100").rfind("clock.boost", 0), 0u) << note(all);
    EXPECT_EQ(note(all + ",sm.count=100,clock.boost=1GHz").rfind("shared.bandwidth", 0), 0u) << note(all);
}

TEST(FewNumbers, WhatIsWrongIsSaidInOneLine) {
    const std::pair<const char*, const char*> wrong[] = {
        {"", "is empty"}, {"smem", "accepted is NAME=VALUE"}, {"smem=256", "smem = \"256\": no unit"}, {"smem=1GHz", "is not this key's unit"},
        {"smem=1KiB,smem=2KiB", "given twice"}, {"smem=1KiB,shared.per_sm=1KiB", "as smem and as shared.per_sm"}, {"sm.cuont=3", "did you mean sm.count"},
        {"regs=-3", "negative"}, {"latency=5", "no unit"},
        {"smem=1KiB,shared.per_cta=2KiB", "is more than shared.per_sm = 1 KiB"}, {"bw=1TB/s,dram.sustained_read=2TB/s", "is more than dram.bandwidth"},
        {"peak=50TFLOP/s,rate.wgmma.bf16.fp32=4000FLOP/clk/SM,sm.count=80,clock.boost=1GHz", "is 320 TFLOP/s: leave one of them out"},
        {"peak=50TFLOP/s,rate.generic.bf16.fp32=500FLOP/clk/SM,sm.count=80,clock.boost=1GHz", "is 40 TFLOP/s: leave one of them out"}};
    for (const auto& [text, said] : wrong) {
        try {
            machine_of_numbers(text);
            ADD_FAILURE() << text << " is taken";
        } catch (const RequestError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(said), message.npos) << message;
            EXPECT_EQ(message.find('\n'), message.npos) << message;
        }
    }
}

}  // namespace
}  // namespace rooftile
