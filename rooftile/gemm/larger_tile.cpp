#include "rooftile/gemm/larger_tile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/gemm.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr int fewest_threads = 128;
constexpr double sum_bytes = 4;

/// What the larger tile's sums ask of registers.
struct Larger {
    const GemmContext& context;
    const Kept& kept;
    GemmConfig tile;

    double area() const { return double(tile.tile_m) * tile.tile_n; }
    /// Sums that a thread has room for; below 0 it has none for the rest.
    double room(double limit) const {
        const bool halved = !std::isnan(kept.candidate.sums_limit);
        return std::min(limit - rest(), halved ? std::floor((limit + 1) / 2) : INFINITY);
    }
    double most_sums(double limit) const { return std::max(0.0, room(limit)); }
    double rest() const { return kept.candidate.registers - kept.candidate.accumulators; }
    int most_threads() const { return int(known_or(context.hw.threads_per_cta, fewest_threads)); }
};

/// Sums by ever more threads, which each need the rest besides.
void more_threads(const Larger& l, Derivation& steps) {
    const GemmHardware& hw = l.context.hw;
    double least = INFINITY;
    std::string tried;
    for (int threads = fewest_threads; threads <= l.most_threads(); threads *= 2) {
        const double sums = std::ceil(l.area() / threads), limit = launch_registers(hw, threads, 1);
        least = std::min(least, sums - l.room(limit));
        tried += fmt::format("{}{} threads {:.0f} of {:.0f}", tried.empty() ? "" : ", ", threads, sums, l.most_sums(limit));
    }
    steps.add(gemm_formula::larger_by_threads,
              {given("tile_m", l.tile.tile_m, "", "next_larger_tile"), given("tile_n", l.tile.tile_n, "", "next_larger_tile"),
               given("rest", l.rest(), "registers", "an earlier step"), steps.fact("sm.registers"), steps.fact("sm.max_registers_per_thread"),
               steps.fact("sm.max_threads_per_cta")},
              least, fmt::format("sums a thread: {}; {}", tried, least > 0 ? "no number of threads holds them" : "so many threads hold them, and the tile is behind by other reasons"));
}

/// Sums beyond what registers hold, in shared memory: read and written in every k-step.
void in_shared_memory(const Larger& l, Derivation& steps) {
    const GemmHardware& hw = l.context.hw;
    double held = 0;
    for (int threads = fewest_threads; threads <= l.most_threads(); threads *= 2)
        held = std::max(held, threads * l.most_sums(launch_registers(hw, threads, 1)));
    const double bytes = sum_bytes * std::max(0.0, l.area() - held), moved = 2 * bytes;
    const GemmCandidate& f = l.kept.candidate;
    const double operands = double(f.stage_bytes) * (l.tile.tile_m + l.tile.tile_n) / (l.kept.candidate.tile_m + l.kept.candidate.tile_n);
    const double needed = min_stages * operands + bytes, limit = hw.shared_per_cta;
    std::string limit_text = fmt::format("registers hold {:.0f} of {:.0f} sums; the rest and two stages are {:.0f} B", std::min(held, l.area()), l.area(), needed);
    if (std::isnan(limit)) limit_text += ", of shared memory that is not known";
    else limit_text += fmt::format(" {} {:.0f} B of shared memory{}", needed > limit ? ">" : "<=", limit, needed > limit ? ": they do not fit" : "");
    if (needed <= limit) {
        const double products = 2 * l.area() * l.tile.tile_k / hw.flops_per_cycle, shared = (moved + operands) / hw.shared_bandwidth;
        limit_text += fmt::format("; a k-step moves {:.0f} B of sums beside {:.0f} B of operands: ", moved, operands);
        if (std::isnan(products) || std::isnan(shared)) limit_text += "what that takes is not known without shared.bandwidth and an SM's rate";
        else
            limit_text += fmt::format("{:.0f} cycles of shared memory where products take {:.0f}, {}", shared, products,
                                      shared > products ? "so that shared memory binds: not taken" : "which hide them; no kernel here does it");
    }
    steps.add(gemm_formula::larger_in_shared,
              {given("tile_m", l.tile.tile_m, "", "next_larger_tile"), given("tile_n", l.tile.tile_n, "", "next_larger_tile"),
               given("held", held, "sums", "the most of threads * sums a thread"), steps.fact("shared.per_cta"), steps.fact("shared.bandwidth")},
              bytes, std::move(limit_text));
}

/// The best plan in a tile, all else as it was asked for; without a time where there is none.
Prediction best_in(const GemmContext& context, const GemmConfig& tile) {
    GemmRequest request = context.request;
    request.tile_m = tile.tile_m, request.tile_n = tile.tile_n, request.tile_k = tile.tile_k, request.top = 1;
    try {
        const auto result = derive(context.machine, context.problem, request);
        if (const auto* plans = std::get_if<Plans>(&result)) return plans->plans.front().prediction;
    } catch (const RequestError&) {}
    return {};
}

/// The next longer side that the kernel's instruction has.
void next_tile(const GemmContext& context, const Kept& kept, int GemmConfig::*side, const Formula& formula, Derivation& steps) {
    constexpr int unit = 8;  // no instruction has a finer step
    const int now = kept.candidate.*side;
    Constraint first, wall;  // not only that some sides are no multiple of a unit
    for (int longer = now + unit; longer <= 2 * now + 64; longer += unit) {
        GemmCandidate c = kept.candidate;
        c.*side = longer, c.asked = {};
        const Constraint constraint = context.kernel->examine(context.hw, context.problem, c);
        if (!first) first = wall = constraint;
        else if (wall.rule == first.rule && constraint.rule != first.rule) wall = constraint;
        if (constraint && constraint.reason == Reason::instruction) continue;
        const std::string tile = fmt::format("{}x{}x{}", c.tile_m, c.tile_n, c.tile_k);
        const Prediction best = constraint ? Prediction{} : best_in(context, c);
        std::string limit = constraint ? ": " + words_of(constraint) : best.time_us ? fmt::format(" takes {:.4g} us", *best.time_us) : std::string(" has no plan, or no time");
        if (best.time_us && best.wave_efficiency && *best.wave_efficiency < 0.98 * kept.waves.efficiency)
            limit += fmt::format(", its waves {:.0f} % full, not {:.0f} %", 100 * *best.wave_efficiency, 100 * kept.waves.efficiency);
        steps.add(formula, {given("side", longer, "", "the next that the instruction has")}, best.time_us.value_or(unknown_number), tile + limit);
        return;
    }
    steps.add(formula, {given("side", now + unit, "", "the next")}, unknown_number, words_of(wall));
}

}  // namespace

void write_larger_tile(const GemmContext& context, const Kept& kept, Derivation& steps) {
    if (&kept == &context.kept.front()) {
        next_tile(context, kept, &GemmConfig::tile_m, gemm_formula::next_tile_m, steps);
        next_tile(context, kept, &GemmConfig::tile_n, gemm_formula::next_tile_n, steps);
    }
    GemmConfig tile = kept.candidate;
    (tile.tile_m <= tile.tile_n ? tile.tile_m : tile.tile_n) *= 2;
    const Larger l{context, kept, tile};
    GemmRequest request = context.request;
    request.tile_m = tile.tile_m, request.tile_n = tile.tile_n, request.tile_k = tile.tile_k;
    // Whatever else was asked for with the smaller one.
    request.stages.reset(), request.consumer_warpgroups.reset(), request.top = 1;
    std::string why;
    bool by_registers = false;
    try {
        const auto result = derive(context.machine, context.problem, request);
        if (const auto* none = std::get_if<Infeasible>(&result)) {
            by_registers = none->reason == Reason::registers;
            why = by_registers ? std::string("registers forbid it: no thread has room for its share of the sums") : none->message;
        } else {
            const std::optional<double> time = std::get<Plans>(result).plans.front().prediction.time_us;
            why = time ? fmt::format("{} x {} can be had: {:.4g} us at best", tile.tile_m, tile.tile_n, *time)
                       : fmt::format("{} x {} can be had; the rank decides", tile.tile_m, tile.tile_n);
        }
    } catch (const RequestError& error) { why = error.what(); }
    const double b_a = bytes_of(context.problem.a_type), b_b = bytes_of(context.problem.b_type);
    steps.add(gemm_formula::next_larger_tile,
              {given("tile_m", tile.tile_m, "", "the shorter side doubled"), given("tile_n", tile.tile_n, "", "the shorter side doubled"),
               given("b", b_a, "B", std::string(name_of(context.problem.a_type)))},
              2 * l.area() / (tile.tile_m * b_a + tile.tile_n * b_b), std::move(why));
    if (!by_registers || std::isnan(context.hw.registers_per_sm)) return;
    more_threads(l, steps);
    in_shared_memory(l, steps);
}

}  // namespace rooftile
