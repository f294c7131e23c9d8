// Plan 1 is the fastest of its own model: no value that a request may fix makes the prediction faster, and what a
// derivation says of an alternative is what a request for it gets. Over problems of every law.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

constexpr double slack = 1 - 2e-3;  // of a prediction: what nobody can tell apart

struct Drawn {
    std::string law, id;
    std::shared_ptr<const Machine> machine;
    GemmProblem problem;
    std::string text() const {
        return fmt::format("{} {} {}x{}x{} batch {}", id, law, problem.m, problem.n, problem.k,
                           problem.batch);
    }
};

Drawn drawn(Random& random) {
    static constexpr const char *laws[] = {"draw",     "draw",  "any",   "fp8",    "fp8_blocks",
                                           "epilogue", "batch", "group", "experts"},
                                *hoppers[] = {"h100-sxm", "h200-sxm", "h20", "h800-sxm"},
                                *others[] = {"h100-pcie", "a100-80-sxm", "rtx4090", "b200"};
    static std::map<std::string, std::shared_ptr<const Machine>> machines;
    Drawn d{random.one_of(laws), random.one_of(hoppers), {}, {}};
    const bool everywhere = d.law == "draw" || d.law == "any" || d.law == "epilogue" || d.law == "batch";
    if (everywhere && random.one_in(3)) d.id = random.one_of(others);
    auto& machine = machines[d.id];
    if (!machine) machine = std::make_shared<const Machine>(machine_by_id(d.id));
    d.machine = machine;
    do d.problem = drawn_gemm(random, {d.law});
    while (d.problem.flops().value > 5e12);  // the largest take a tenth of a second each
    return d;
}

/// Of plan 1; NaN where there is none, or its time is unknown.
double time_of(const Drawn& d, const Given& given) {
    const Operation& op = gemm_operation();
    try {
        const PlanSet set = op.derive(d.machine, {&op, Own::of(d.problem)}, op.request(given, {}));
        return set.plans.empty() ? NAN : set.plans.front().time_us.value_or(NAN);
    } catch (const RequestError&) { return NAN; }
}
double time_of(const Drawn& d, std::string_view key, const std::string& value) {
    Given given(Given::Named::by_key);
    given.add(std::string(key), value);
    return time_of(d, given);
}

/// A value of every key that a request may fix, drawn.
std::vector<std::pair<std::string, std::string>> drawn_values(Random& random, Type type) {
    static constexpr const char* orders[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};
    const auto number = [&](std::int64_t least, std::int64_t most) {
        return std::to_string(random.whole(least, most));
    };
    const bool swapped = random.coin();
    const std::string tile = fmt::format(
        "{}x{}x{}", swapped ? 8 * random.whole(1, 32) : 64 * random.whole(1, 4),
        swapped ? 64 * random.whole(1, 4) : 16 * random.whole(1, 16), bytes_of(type) == 1 ? 128 : 64);
    const auto either = [&] { return std::string(random.coin() ? "on" : "off"); };
    return {{"order", random.one_of(orders)},
            {"group", number(1, 20)},
            {"tile", tile},
            {"stages", number(2, 8)},
            {"consumer_warpgroups", number(1, 4)},
            {"schedule", random.coin() ? "pingpong" : "cooperative"},
            {"cluster", random.coin() ? "2x1" : "1x2"},
            {"split_k", number(1, 8)},
            {"grid_split_k", number(1, 16)},
            {"ctas_per_sm", number(1, 4)},
            {"epilogue_tile_n", std::to_string(16 * random.whole(1, 8))},
            {"swap_ab", either()},
            {"overlapped_epilogue", either()},
            {"pack_a", either()},
            {"pack_b", either()},
            {"dynamic_scheduler", either()},
            {"reverse", either()},
            {"pdl", either()},
            {"epilogue_apart", either()}};
}

TEST(BestOfItsModel, NoFixedValueIsFaster) {
    Random random(470010);
    int compared = 0;
    for (int i = 0; i < 60; ++i) {
        const Drawn d = drawn(random);
        const double free = time_of(d, Given(Given::Named::by_key));
        for (const auto& [key, value] : drawn_values(random, d.problem.a_type)) {
            const double fixed = time_of(d, key, value);
            if (std::isnan(fixed)) continue;
            ++compared;
            EXPECT_GE(fixed, free * slack) << d.text() << " --" << key << " " << value;
        }
    }
    EXPECT_GT(compared, 600);
}

TEST(BestOfItsModel, EveryOrderIsTried) {
    Random random(470011);
    for (int i = 0; i < 60; ++i) {
        const Drawn d = drawn(random);
        const double free = time_of(d, Given(Given::Named::by_key));
        for (const char* order : {"row", "column", "grouped", "serpentine", "morton", "hilbert"})
            if (const double fixed = time_of(d, "order", order); !std::isnan(fixed)) {
                EXPECT_GE(fixed, free * slack) << d.text() << " " << order;
            }
    }
}

TEST(BestOfItsModel, DoesNotDependOnHowManyAreKept) {
    Random random(470012);
    for (int i = 0; i < 100; ++i) {
        const Drawn d = drawn(random);
        const double free = time_of(d, Given(Given::Named::by_key));
        for (const char* top : {"1", "3", "64"}) {
            const double other = time_of(d, "top", top);
            EXPECT_TRUE(other == free || (std::isnan(other) && std::isnan(free)))
                << d.text() << " --top " << top << ": " << free << ", " << other;
        }
    }
}

TEST(BestOfItsModel, IsNoSlowerWhereRulesLeaveOutNothing) {
    Random random(470013);
    for (int i = 0; i < 60; ++i) {
        const Drawn d = drawn(random);
        const double free = time_of(d, Given(Given::Named::by_key)), all = time_of(d, "exhaustive", "");
        if (std::isnan(free)) continue;
        EXPECT_LE(all, free * (1 + 1e-9)) << d.text();
    }
}

// "...; the best plan in tiles of 128x256x64 takes 12.34 us": four digits are said.
TEST(BestOfItsModel, WhatIsSaidOfAnAlternativeIsWhatItTakes) {
    Random random(470014);
    std::map<std::string, int> compared;
    for (int i = 0; i < 60; ++i) {
        const Drawn d = drawn(random);
        const Operation& op = gemm_operation();
        const PlanSet set =
            op.derive(d.machine, {&op, Own::of(d.problem)}, op.request(Given(Given::Named::by_key), {}));
        if (set.plans.empty() || !set.plans.front().parts.empty()) continue;
        const GemmConfig& c = set.plans.front().own.as<GemmPlan>().config;
        for (const Step& step : set.plans.front().derivation) {
            static const std::regex said(
                "the (?:other way the )?best plan(?: in tiles of (\\d+x\\d+x\\d+)| with (\\w+) = (\\d+)|) "
                "takes ([0-9.e+]+) us");
            std::smatch match;
            if (!std::regex_search(step.limit, match, said)) continue;
            std::string key = "swap_ab", value = c.swap_ab ? "off" : "on";
            if (match[1].matched) key = "tile", value = match[1];
            else if (match[2].matched) key = match[2], value = match[3];
            const double fixed = time_of(d, key, value);
            EXPECT_NEAR(std::stod(match[4]) / fixed, 1, 6e-4)
                << d.text() << " --" << key << " " << value << ": " << step.limit;
            ++compared[key];
        }
    }
    EXPECT_GT(compared["tile"], 40);
    EXPECT_GT(compared["swap_ab"], 20);
    EXPECT_GT(compared["split_k"], 20);
    EXPECT_GT(compared["grid_split_k"], 0);
}

}  // namespace
}  // namespace rooftile
