#include "rooftile/gemm/attainability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

std::string_view name_of(Term term) {
    constexpr std::string_view names[term_count] = {
        "datasheet_roof", "measured_roof", "whole_tiles", "waves",    "shared", "l2",    "dram",
        "latency",        "turn",          "exchange",    "epilogue", "fill",   "launch", "packing"};
    return names[static_cast<int>(term)];
}

namespace {

constexpr double no_limit = 1e30;  // B/clk: finite, so that nothing times it is still nothing

double roof_seconds(const GemmProblem& p, double flops, double bytes_per_second) {
    return max_known(p.flops().value / flops, p.compulsory_bytes().value / bytes_per_second);
}

// The products of all tiles, whatever of them stands outside C or beyond K, on all SMs at once.
double tiles_seconds(const TiledGemm& g, double clock) {
    const double steps = double(g.waves.tiles) * g.tile.k_parts() * double(k_steps(g.tile, g.problem));
    return steps * g.step.tensor / (g.hw.sms * clock);
}

// The GPU as it is up to `term`, and beyond it as no GPU is.
TiledGemm up_to(Term term, TiledGemm g) {
    const auto off = [&](Term other) { return term < other; };
    if (off(Term::shared)) g.step.shared = 0;
    if (off(Term::l2)) {
        g.step.l2 = g.step.port = 0;
        g.hw.l2_share = no_limit;
    }
    if (off(Term::dram)) {
        g.dram = g.problem.compulsory_bytes().value;
        g.hw.dram_per_sm = g.hw.dram_per_sm_alone = unknown_number;
    }
    if (off(Term::latency)) {
        g.hw.loaded_latency = g.hw.l2_loaded_latency = 0;
        g.hw.step_floor = unknown_number;
    }
    if (off(Term::turn)) g.hw.tile_turn = unknown_number;
    // No time, but copies that L2 holds (held_by_l2).
    if (off(Term::packing) && g.hw.packing_seconds > 0) g.hw.packing_seconds = std::numeric_limits<double>::min();
    if (off(Term::launch)) g.hw.launch_seconds = unknown_number;
    return g;
}

}  // namespace

double seconds_with(Term term, const TiledGemm& gemm, const DatasheetRoof& roof, double clock) {
    if (term == Term::datasheet) return roof_seconds(gemm.problem, roof.flops, roof.bytes_per_second);
    const GemmHardware& hw = gemm.hw;
    const double measured =
        roof_seconds(gemm.problem, hw.sms * hw.flops_per_cycle * clock, hw.dram_bandwidth);
    if (term == Term::measured) return measured;
    if (term == Term::tiles) return max_known(measured, tiles_seconds(gemm, clock));
    const TiledGemm g = up_to(term, gemm);
    GemmTimer timer(g.hw, g.tile, g.problem, g.step, g.waves, g.stages);
    if (term < Term::exchange) timer.leave_out_exchange();
    if (term < Term::epilogue) timer.leave_out_store();
    if (term < Term::fill) timer.leave_out_fill();
    return timer.at(clock, g.dram).seconds;
}

std::vector<AttainStep> attainability(const TiledGemm& gemm, const DatasheetRoof& roof, double clock) {
    if (std::isnan(seconds_with(Term::packing, gemm, roof, clock))) return {};
    std::vector<AttainStep> steps;
    const int count = gemm.hw.packing_seconds > 0 ? term_count : term_count - 1;
    for (int i = std::isnan(roof.flops + roof.bytes_per_second) ? 1 : 0; i < count; ++i) {
        const Term term = static_cast<Term>(i);
        steps.push_back({term, std::llround(seconds_with(term, gemm, roof, clock) * 1e9), 0});
    }
    // A term that costs nothing may round to a nanosecond less: two sums of the same figure.
    for (std::size_t i = steps.size() - 1; i > 0 && steps[i - 1].term >= Term::measured; --i)
        steps[i - 1].time_ns = std::min(steps[i - 1].time_ns, steps[i].time_ns);
    for (std::size_t i = 0; i < steps.size(); ++i)
        steps[i].cost_ns = steps[i].time_ns - (i > 0 ? steps[i - 1].time_ns : 0);
    return steps;
}

}  // namespace rooftile
