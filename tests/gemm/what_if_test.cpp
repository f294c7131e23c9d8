// More of a resource, or less of a problem, is never predicted slower: requests, machines and numbers are drawn.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

PlanSet derived(const Operation& op, const Machine& machine, const Problem& problem,
                const Given& given = Given(Given::Named::by_key)) {
    return op.derive(std::make_shared<const Machine>(machine), problem, op.request(given, {.top = 1}));
}

double time_of(const Operation& op, const Machine& machine, const Problem& problem,
               const Given& given = Given(Given::Named::by_key)) {
    const PlanSet set = derived(op, machine, problem, given);
    return set.plans.empty() ? NAN : set.plans.front().time_us.value_or(NAN);
}

/// The machine with `factor` times as much under `key`, as --set would have it; none where it does not know the number.
std::optional<Machine> with(const Machine& machine, const std::string& key, double factor) {
    const Fact* fact = machine.find(key);
    if (!fact) return std::nullopt;
    char* unit = nullptr;
    double value = std::strtod(fact->text.c_str(), &unit) * factor;
    if (key.starts_with("sm.")) value = std::ceil(value);
    Machine other = machine;
    try {
        set_number(other, fmt::format("{}={:.17g}{}", key, value, unit));
    } catch (const RequestError&) { return std::nullopt; }  // no machine can be so
    return other;
}

struct Key {
    const char* name;
    bool more;  ///< is better
};
constexpr Key keys[] = {
    {"clock.boost", true},         {"clock.tensor", true},         {"clock.sustained.bf16", true},
    {"clock.sustained.fp8", true}, {"dram.bandwidth", true},       {"dram.sustained_read", true},
    {"dram.per_sm", true},         {"l2.bandwidth", true},         {"l2.port", true},
    {"shared.bandwidth", true},    {"rate.wgmma.bf16.fp32", true}, {"rate.wgmma.fp8.fp32", true},
    {"rate.mufu", true},           {"power.sustained", true},      {"power.static", false},
    {"dram.latency", false},       {"tma.latency_loaded", false},  {"tma.latency_loaded_l2", false},
    {"l2.latency", false},         {"tma.store_latency", false},   {"tma.store", true},
    {"wgmma.turn", false},         {"wgmma.step", false},          {"barrier.cluster", false},
    {"launch.gap_stream", false},  {"energy.flop.bf16", false},    {"energy.dram", false},
    {"energy.fill", false},        {"softmax.latency", false},     {"softmax.turn", false}};
constexpr Key of_products[] = {
    {"clock.sustained.fp16", true}, {"clock.memory", true},        {"dram.per_sm_alone", true},
    {"dram.sustained_copy", true}, {"l2.size", true},              {"l2.coalesced", true},
    {"l2.multicast", false},       {"dsmem.bandwidth", true},      {"dsmem.latency", false},
    {"tma.store_amid_sector", true}, {"store.element", true},      {"store.element_turned", true},
    {"tma.off_line_16", false},    {"tma.off_line_shared_16", false}, {"tma.latency_extra", false},
    {"wgmma.latency", false},      {"wgmma.overlap_exponent", true}, {"mma_sync.overlap_exponent", true},
    {"rate.wgmma.fp16.fp32", true}, {"rate.mma_sync.bf16.fp32", true}, {"rate.mma_sync.fp16.fp32", true},
    {"rate.fma.fp32.fp32", true},  {"energy.flop.fp8", false},     {"energy.shared_read", false},
    {"power.tdp", true},           {"shared.per_sm", true},        {"shared.per_cta", true}};
constexpr double factors[] = {1.1, 1.5, 2, 4};
constexpr const char* hoppers[] = {"h100-sxm", "h200-sxm", "h20", "h800-sxm"};
constexpr const char* planned[] = {"h100-sxm",    "h200-sxm",    "h20", "h800-sxm", "h100-pcie",
                                  "a100-80-sxm", "a100-40-sxm", "a40", "rtx4090",  "l40s"};
constexpr double alike = 2e-3;  // of a prediction: what nobody can tell apart

Problem drawn(const Operation& op, Random& random) {
    static constexpr const char* laws[] = {"draw",       "draw",     "any",   "fp8",
                                           "fp8_blocks", "epilogue", "batch", "group"};
    if (op.name() != "gemm") return op.draw(random, {});
    for (;;) {
        const GemmProblem p = drawn_gemm(random, {random.one_of(laws)});
        if (p.flops().value < 1e12) return {&op, Own::of(p)};
    }
}

void expect_no_slower_with_more(const char* operation, std::span<const char* const> machines, std::uint64_t seed,
                                int problems, std::span<const Key> more = {}) {
    const Operation& op = *find_operation(operation);
    Random random(seed);
    int compared = 0, asked = 0;
    std::vector<Key> tried(std::begin(keys), std::end(keys));
    tried.insert(tried.end(), more.begin(), more.end());
    for (int i = 0; i < problems; ++i) {
        const Machine machine = machine_by_id(machines[random.pick(machines.size())]);
        const Problem problem = drawn(op, random);
        std::vector<double> by;
        for (std::size_t k = 0; k < tried.size(); ++k) by.push_back(random.one_of(factors));
        if (!one_in(4, std::size_t(i))) continue;
        ++asked;
        const double before = time_of(op, machine, problem);
        if (std::isnan(before)) continue;  // no kernel takes it there
        for (std::size_t k = 0; k < tried.size(); ++k) {
            const Key& key = tried[k];
            const double factor = by[k];
            const auto other = with(machine, key.name, key.more ? factor : 1 / factor);
            if (!other) continue;
            EXPECT_LE(time_of(op, *other, problem), before * (1 + alike))
                << machine.id << " " << op.short_name(problem) << ": " << key.name << " times "
                << (key.more ? factor : 1 / factor);
            ++compared;
        }
    }
    EXPECT_GT(compared, 20 * asked);
}

TEST(WhatIf, MoreOfAResourceIsNoSlowerForProducts) { expect_no_slower_with_more("gemm", planned, 470110, 150, of_products); }
TEST(WhatIf, MoreOfAResourceIsNoSlowerForAttention) { expect_no_slower_with_more("attention", hoppers, 470111, 40); }

/// K in as many parts and pieces as `plan` has: which numbers of pieces compete depends on how many CTAs fill a wave.
Given same_pieces(const Plan& plan) {
    const GemmConfig& c = plan.own.as<GemmPlan>().config;
    Given given(Given::Named::by_key);
    if (c.grid_split_k == 1) return given;
    given.add("split_k", fmt::format("{}", c.split_k));
    given.add("grid_split_k", fmt::format("{}", c.grid_split_k));
    return given;
}

// In as many GPCs: with more of them fewer clusters meet in one, and L2 hands out more. More SMs are slower by no more than three things.
// The fill of a ring is charged as one k-step of every SM at L2's bandwidth, which does not grow. Waves are whole: of some the last may
// take a whole wave's time for a tile. And where an SM has one CTA, not several, nobody hides its store and turn.
TEST(WhatIf, MoreSmsAreSlowerByAFillAWavesEndAndAStoreAtMost) {
    const Operation& op = gemm_operation();
    Random random(470112);
    int slower = 0, compared = 0;
    for (int i = 0; i < 500; ++i) {
        const Machine machine = machine_by_id(random.one_of(hoppers));
        const Problem problem = drawn(op, random);
        const double factor = random.one_of(factors);
        if (!one_in(4, std::size_t(i))) continue;
        const Machine more = *with(*with(machine, "sm.count", factor), "sm.per_gpc", factor);
        const Plan plan = derived(op, machine, problem).plans.at(0);
        const auto& first = plan.own.as<GemmPlan>();
        const auto here = evaluate_plan(machine, first), there = evaluate_plan(more, first);
        if (!here || !there) continue;  // an epilogue apart is two launches
        const double waves = here->gemm.waves.waves, cycle = 1e6 / there->time.clock_hz;
        const double fills = here->gemm.tile.k_parts() > 1 ? waves : 1;
        const double fill = fills * std::max(0.0, there->gemm.step.l2 - here->gemm.step.l2) * cycle;
        const double wave =
            waves > 1 ? here->time.tile_cycles * here->gemm.tile.ctas_per_sm * 1e6 / here->time.clock_hz : 0;
        const double store = here->gemm.tile.ctas_per_sm > 1
                                 ? (here->time.epilogue + max_known(here->gemm.hw.tile_turn, 0)) * cycle
                                 : 0;
        const double before = *plan.time_us, after = time_of(op, more, problem, same_pieces(plan));
        EXPECT_LE(after, before * (1 + alike) + fill + wave + store)
            << machine.id << " " << op.short_name(problem) << " times " << factor << ": " << before << " us, and "
            << fill << " of a fill, " << wave << " of a wave, " << store << " of a store";
        slower += after > before * (1 + alike), ++compared;
    }
    EXPECT_GT(compared, test_all() ? 450 : 110);
    EXPECT_GT(slower, 0) << "the three things need no telling";
}

// A larger problem can be faster by four things, which are kept alike here: rows that begin nearer to lines; neighbours' loads that merge,
// and lines that several SMs stream from DRAM together, where a line of tiles has enough of them; K in as many pieces as fill a wave.
TEST(WhatIf, ALargerProblemOfRowsThatLieAlikeIsNoFaster) {
    const Operation& op = gemm_operation();
    Random random(470114);
    for (int i = 0; i < 500; ++i) {
        Machine machine = machine_by_id(random.one_of(hoppers));
        for (const char* shared : {"l2.coalesced=1", "dram.per_sm=unknown", "dram.per_sm_alone=unknown"})
            set_number(machine, shared);
        const GemmProblem drawn = drawn_gemm(random, {random.coin() ? "draw" : "any"});
        std::int64_t sizes[] = {drawn.m, drawn.n, drawn.k};
        const Problem small{&op, Own::of(gemm_problem(sizes[0], sizes[1], sizes[2]))};
        const std::size_t which = random.pick(3);
        std::int64_t& extent = sizes[which];
        const std::int64_t line = which == 0 ? 1 : 64, more[] = {1, extent / line / 10 + 1, extent / line + 1};
        extent += line * random.one_of(more);
        if (!one_in(4, std::size_t(i))) continue;
        const Problem large{&op, Own::of(gemm_problem(sizes[0], sizes[1], sizes[2]))};
        const Plan plan = derived(op, machine, large).plans.at(0);
        const double before = time_of(op, machine, small), in_pieces = time_of(op, machine, small, same_pieces(plan));
        EXPECT_GE(*plan.time_us * (1 + alike), min_known(before, in_pieces))
            << machine.id << " " << op.short_name(small) << " and " << op.short_name(large);
    }
}

// But for rows that are whole 16 bytes where those of the smaller problem are not: these have to be copied first.
TEST(WhatIf, ALargerProblemIsNoFaster) {
    const Operation& op = gemm_operation();
    Random random(470113);
    for (int i = 0; i < 300; ++i) {
        const Machine machine = machine_by_id(random.one_of(hoppers));
        const GemmProblem drawn = drawn_gemm(random, {});
        std::int64_t sizes[] = {drawn.m, drawn.n, drawn.k};
        const GemmProblem small = gemm_problem(sizes[0], sizes[1], sizes[2]);
        std::int64_t& extent = sizes[random.pick(3)];
        const std::int64_t more[] = {8, 64, 8 * (extent / 80 + 1), 8 * ((extent + 7) / 8)};
        extent += random.one_of(more);
        if (!one_in(4, std::size_t(i))) continue;
        const GemmProblem large = gemm_problem(sizes[0], sizes[1], sizes[2]);
        EXPECT_GE(time_of(op, machine, {&op, Own::of(large)}) * (1 + alike),
                  time_of(op, machine, {&op, Own::of(small)}))
            << machine.id << " " << small.m << "x" << small.n << "x" << small.k << " and " << large.m << "x"
            << large.n << "x" << large.k;
    }
}

// What an instruction does not take, a kernel cannot be built of; and the rate is that of the instruction that the kernel issues.
TEST(WhatIf, KernelsOfWgmmaAreTimedByItsRate) {
    for (const char* operation : {"attention", "chain"}) {
        const Operation& op = *find_operation(operation);
        Given given(Given::Named::by_key);
        const bool chain = std::string_view(operation) == "chain";
        for (const auto& [key, value] :
             chain ? std::vector<std::pair<const char*, const char*>>{{"m", "16384"},
                                                                      {"d", "256"},
                                                                      {"ff", "1024"},
                                                                      {"act", "gelu"}}
                   : std::vector<std::pair<const char*, const char*>>{{"batch", "4"},
                                                                      {"heads", "32"},
                                                                      {"kv_heads", "32"},
                                                                      {"q", "2048"},
                                                                      {"kv", "2048"},
                                                                      {"dim", "128"}})
            given.add(key, value);
        const Problem problem{&op, op.problem(given).own};
        Given form(Given::Named::by_key);
        if (chain) form.add("form", "on_chip");
        const auto first = [&](const Machine& machine) {
            const PlanSet set =
                op.derive(std::make_shared<const Machine>(machine), problem, op.request(form, {.top = 1}));
            return set.plans.at(0);
        };
        const Machine h200 = machine_by_id("h200-sxm");
        Machine slow = h200, without = h200, starved = h200;
        set_number(slow, "rate.wgmma.bf16.fp32=64 FLOP/clk/SM");
        set_number(without, "wgmma=false");
        set_number(starved, "power.sustained=100 W");
        EXPECT_TRUE(first(h200).buildable);
        EXPECT_GT(*first(slow).time_us, 10 * *first(h200).time_us) << operation;
        EXPECT_FALSE(first(without).buildable) << operation;
        EXPECT_GT(*first(without).time_us, *first(h200).time_us) << operation;
        EXPECT_THROW(first(starved), RequestError) << operation;
    }
}

}  // namespace
}  // namespace rooftile
