// Plan 1 is the fastest of its own model: no value that a request may fix makes the prediction faster, and what a
// derivation says of an alternative is what a request for it gets. Over problems of every law.
#include "tests/core/best_of_model.hpp"

#include <fmt/format.h>

#include <regex>

#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {
namespace {

BestOfModel::Values drawn_values(Random& random, const Problem& problem) {
    const Type type = problem.own.as<GemmProblem>().a_type;
    static constexpr const char* orders[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};
    const auto number = [&](std::int64_t least, std::int64_t most) {
        return std::to_string(random.whole(least, most));
    };
    const bool swapped = random.coin();
    const std::string tile = fmt::format(
        "{}x{}x{}", swapped ? 8 * random.whole(1, 32) : 64 * random.whole(1, 4),
        swapped ? 64 * random.whole(1, 4) : 16 * random.whole(1, 16), bytes_of(type) == 1 ? 128 : 64);
    const auto either = [&] { return std::string(random.coin() ? "on" : "off"); };
    static constexpr const char* evicted[] = {"none", "a", "bc", "abc"};
    return {{"kernel", "sm90_gemm"},  // kernels do not compete by their models: docs/facts.md 349
            {"evict_first", random.one_of(evicted)},
            {"order", random.one_of(orders)},
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

Problem drawn_problem(Random& random) {
    static constexpr const char* laws[] = {"draw", "draw", "any", "fp8", "fp8_blocks", "epilogue", "batch", "group", "experts"};
    GemmProblem p;
    do p = drawn_gemm(random, {random.one_of(laws)});
    while (p.flops().value > 5e12);  // the largest take a tenth of a second each
    return {&gemm_operation(), Own::of(p)};
}

BestOfModel best() { return {gemm_operation(), drawn_values, drawn_problem}; }

TEST(BestOfItsModel, NoFixedValueIsFaster) { best().no_fixed_value_is_faster(470010, 200, 2000); }
TEST(BestOfItsModel, TellsNoNan) { best().tells_no_nan(480064, 40); }
TEST(BestOfItsModel, DoesNotDependOnHowManyAreKept) { best().does_not_depend_on_how_many_are_kept(470012, 200); }
TEST(BestOfItsModel, IsNoSlowerWhereRulesLeaveOutNothing) { best().is_no_slower_without_rules(470013, 200); }

// "...; the best plan in tiles of 128x256x64 takes 12.34 us": four digits are said.
TEST(BestOfItsModel, WhatIsSaidOfAnAlternativeIsWhatItTakes) {
    Random random(470014);
    std::map<std::string, int> compared;
    for (int i = 0; i < 200; ++i) {
        const BestOfModel::Drawn d = best().drawn(random);
        const PlanSet set = gemm_operation().derive(d.machine, d.problem, gemm_operation().request(Given(Given::Named::by_key), {}));
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
            const double fixed = best().planned(d, key, value).us;
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
