// More of a resource, or less of a problem, is never predicted slower: requests, machines and numbers are drawn.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

double time_of(const Operation& op, const Machine& machine, const Problem& problem) {
    const PlanSet set = op.derive(std::make_shared<const Machine>(machine), problem,
                                  op.request(Given(Given::Named::by_key), {.top = 1}));
    return set.plans.empty() ? NAN : set.plans.front().time_us.value_or(NAN);
}

/// The machine with `factor` times as much under `key`, as --set would have it; none where it does not know the number.
std::optional<Machine> with(const Machine& machine, const std::string& key, double factor) {
    const Fact* fact = machine.find(key);
    if (!fact) return std::nullopt;
    char* unit = nullptr;
    double value = std::strtod(fact->text.c_str(), &unit) * factor;
    if (key == "sm.count") value = std::ceil(value);
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
constexpr double factors[] = {1.1, 1.5, 2, 4};
constexpr const char* hoppers[] = {"h100-sxm", "h200-sxm", "h20", "h800-sxm"};
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

void expect_no_slower_with_more(const char* operation, std::uint64_t seed, int problems) {
    const Operation& op = *find_operation(operation);
    Random random(seed);
    int compared = 0;
    for (int i = 0; i < problems; ++i) {
        const Machine machine = machine_by_id(random.one_of(hoppers));
        const Problem problem = drawn(op, random);
        const double before = time_of(op, machine, problem);
        for (const Key& key : keys) {
            const double factor = random.one_of(factors);
            const auto other = with(machine, key.name, key.more ? factor : 1 / factor);
            if (!other) continue;
            EXPECT_LE(time_of(op, *other, problem), before * (1 + alike))
                << machine.id << " " << op.short_name(problem) << ": " << key.name << " times "
                << (key.more ? factor : 1 / factor);
            ++compared;
        }
    }
    EXPECT_GT(compared, 20 * problems);
}

TEST(WhatIf, MoreOfAResourceIsNoSlowerForAttention) { expect_no_slower_with_more("attention", 470111, 40); }

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
