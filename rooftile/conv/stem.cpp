#include "rooftile/conv/stem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "rooftile/core/derivation.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/physics/roofs.hpp"

namespace rooftile {
namespace {

/// MMAs written out: some thousand instructions stay in the instruction cache.
constexpr int most_mmas = 1024;

std::int64_t filled_up(std::int64_t x, std::int64_t to) { return whole_parts(x, to) * to; }

std::int64_t tiles_of(const ConvProblem& p, const StemConvConfig& c) {
    return p.image.images * whole_parts(p.image.axes[1].places(), c.tile_y) * whole_parts(p.image.axes[0].places(), c.tile_x);
}
std::int64_t columns_of(const ConvProblem& p, const StemConvConfig& c) { return whole_parts(p.filters, c.cta_filters); }

/// Of a tile: what a warp multiplies at once.
std::int64_t parts_of(const StemConvConfig& c) { return whole_parts(c.places(), 16 * c.warp_tiles) * (c.cta_filters / c.warp_filters); }

/// Wavefronts of a load of A's fragments, in the mean over the first m16 tiles of a CTA: the most words that one bank has.
double fragment_wavefronts(const StemConvConfig& c) {
    int loads = 0, all = 0;
    for (int tile = 0; tile < std::min(2, (c.places() + 15) / 16); ++tile)
        for (int lower = 0; lower < 2; ++lower)
            for (int pair = 0; pair < 8 * c.steps(); pair += 4) {
                std::array<int, 32> words{}, of_bank{};
                for (int lane = 0; lane < 32; ++lane) {
                    const int place = std::min(tile * 16 + int(c.place_of(unsigned(lane) / 4, unsigned(lower))), c.places() - 1);
                    const int element = place / c.tile_x * c.stride_y * c.pitch() + place % c.tile_x * c.stride_x * c.channels;
                    words[std::size_t(lane)] = element / 2 + c.pair_word(pair + lane % 4);
                }
                std::ranges::sort(words);
                for (auto word = words.begin(), end = std::unique(word, words.end()); word != end; ++word) ++of_bank[std::size_t(*word % 32)];
                all += std::ranges::max(of_bank), ++loads;
            }
    return double(all) / loads;
}

/// Of a thread: sums, fragments of both operands, its windows' addresses; or then the epilogue's; and 52 for the tile's and the loops', with lanes'
/// own offsets and masks: held to fewer, 5 x 5 taps of 12 channels spill.
struct StemRegisters {
    int sums, fragments, windows, epilogue;
    int all() const { return sums + std::max(fragments + windows, epilogue) + 52; }
};
StemRegisters stem_registers(const ConvProblem& p, const StemConvConfig& c) {
    return {c.warp_tiles * c.warp_filters / 2, 4 * c.warp_tiles + 4, 2 * c.warp_tiles, p.direct_epilogue ? p.direct_epilogue->registers(false, false) : 0};
}

/// The widest access that divides rows of so many elements.
int access_bytes(std::int64_t elements) {
    int bytes = 16;
    while (2 * elements % bytes != 0) bytes /= 2;
    return bytes;
}

/// What a CTA takes before its first MMA: its first rows come from DRAM while it writes its weights, 30 instructions a pair.
double prologue_seconds(const Machine& machine, const StemConvConfig& c) {
    const auto partitions = machine.count("sm.partitions");
    const auto clock = machine.number<Clock>("clock.boost");
    const auto latency = latency_cycles(machine, "dram.latency", clock);
    if (!latency || !partitions || !clock) return 0;
    return std::max(latency->value, double(c.weight_bytes()) / 4 * 30 / 32 * c.ctas_per_sm / *partitions) / clock->value;
}

DirectWork work_of(const ConvProblem& p, const StemConvConfig& c) {
    const double tiles = double(tiles_of(p, c)) * double(columns_of(p, c));
    const double parts = tiles * double(parts_of(c)), steps = parts * c.steps();
    int moved = 0, masked = 0;  // groups of four pairs of which some are not beside the first, or not whole
    for (int pair = 0; pair < 8 * c.steps(); pair += 4) {
        moved += c.pair_word(pair + 3) != c.pair_word(pair) + 3;
        masked += (c.pair_mask(pair) & c.pair_mask(pair + 1) & c.pair_mask(pair + 2) & c.pair_mask(pair + 3)) != ~0u;
    }
    const double loads = 4.0 * c.warp_tiles * (c.odd_places() ? 1.5 : 1), eights = parts * 2 * c.warp_tiles * c.warp_filters / 32;
    return {.instructions = {{"MMAs", steps * c.warp_tiles * c.warp_filters / 8},
                             {"loads", steps * (loads + c.warp_filters / 16.0)},
                             {"masks", parts * (2.0 * c.warp_tiles * (moved + masked) + (c.odd_places() ? 2.0 * c.warp_tiles * c.steps() : 0))},
                             {"stores", eights * (4 + 16.0 / c.store_bytes + 8 + epilogue_instructions(p, 8))},
                             {"copies", tiles * c.pixel_bytes() / c.copy_bytes / 32 * 12}},  // with the bounds of each
            .wavefronts = {{"of A's fragments", steps * loads * fragment_wavefronts(c)},
                           {"of weights", steps * c.warp_filters / 16.0 * 4},
                           {"of copies", tiles * c.pixel_bytes() / std::min(wavefront_bytes, 32 * c.copy_bytes)}}};
}

}  // namespace

Demand demand_of(const ConvProblem& p, const StemConvConfig& c) {
    const std::int64_t tiles = tiles_of(p, c) * columns_of(p, c);
    return matrix_demand(p, work_of(p, c), tiles, double(tiles) * c.pixel_bytes());
}

TilePace tile_pace(const Machine& machine, const Demand&, const StemConvConfig& c) {
    const std::int64_t parts = parts_of(c);
    return {.unevenness = double(whole_parts(parts, c.warps) * c.warps) / double(parts), .start_seconds = prologue_seconds(machine, c), .ctas_per_sm = c.ctas_per_sm};
}

std::vector<DirectPlan> stem_plans(const Machine& machine, const ConvProblem& p, const StemRequest& fixed, Rejected& rejected) {
    std::vector<DirectPlan> out;
    const ImageAxis &x = p.image.axes[0], &y = p.image.axes[1];
    const auto room = machine.find("shared.per_cta");
    constexpr std::int64_t widest = 1024, most_places = 4096, most_grid_y = 65535;
    if (p.groups > 1 || p.axes == 3 || (x.dilation > 1 && x.taps > 1) || !machine.has("cp_async") || !room) return out;
    if (std::max({x.stride, y.stride, x.reach(), y.reach(), y.dilation}) > widest || too_long(x, p.image.channels) || too_long(y, 1)) return out;
    /// Fills in the rest, or says why not.
    const auto obstacle = [&](StemConvConfig& c) -> std::optional<Reason> {
        if (c.steps() > c.most_steps || c.steps() * c.warp_tiles * c.warp_filters / 8 > most_mmas) return Reason::instruction;
        if (2.0 * c.pitch() * c.pixel_rows() > room->value) return Reason::shared;
        // All filters, or as many as take a quarter of shared memory.
        const auto most_filters = std::int64_t(room->value / 4) / c.weight_bytes() * c.warp_filters;
        c.cta_filters = int(std::clamp<std::int64_t>(filled_up(p.filters, c.warp_filters), c.warp_filters, std::max<std::int64_t>(most_filters, c.warp_filters)));
        if (c.shared_bytes() > room->value) return Reason::shared;
        if (columns_of(p, c) > most_grid_y) return Reason::instruction;
        c.ctas_per_sm = ctas_an_sm(machine, c.threads(), stem_registers(p, c).all(), c.shared_bytes());
        if (c.ctas_per_sm < 1) return Reason::registers;
        // One multiplies while another waits for its rows or stores; and tiles that are mostly beside the image leave both idle.
        if (!fixed.any() && c.ctas_per_sm < 2) return Reason::latency;
        if (!fixed.any() && ((c.tile_x > 8 && c.tile_x >= 2 * x.places()) || (c.tile_y > 1 && c.tile_y >= 2 * y.places()) || c.places() > most_places)) return Reason::rule;
        StemConvConfig near = c;
        near.apart = 1;
        if (!c.odd_places() && fragment_wavefronts(near) <= fragment_wavefronts(c)) c = near;
        return {};
    };
    const int lead = int(x.padding * p.image.channels % 8), whole_row = int(std::min(filled_up(x.places(), 8), widest));
    const auto choices = [](const std::optional<int>& asked, std::set<int> all) { return asked ? std::set<int>{*asked} : std::move(all); };
    for (const int tile_x : choices(fixed.tile_x, {8, 16, 32, 64, whole_row}))
        for (const int tile_y : choices(fixed.tile_y, {1, 2, 4, 8, 16, 32}))
            for (const int warp_tiles : choices(fixed.warp_tiles, {1, 2, 4}))
                for (const int warp_filters : choices(fixed.warp_filters, {32, 64}))
                    for (const int warps : choices(fixed.warps, {4, 8})) {
                        if (tile_x % 8 != 0 || warp_filters % 32 != 0) continue;
                        StemConvConfig c{.type = p.type == "bf16" ? Type::bf16 : Type::fp16, .taps_y = int(y.taps), .taps_x = int(x.taps), .stride_y = int(y.stride), .stride_x = int(x.stride),
                                     .dilation_y = int(y.dilation), .channels = int(p.image.channels), .front = (8 - lead) % 8, .tile_y = tile_y, .tile_x = tile_x, .warps = warps,
                                     .warp_tiles = warp_tiles, .warp_filters = warp_filters, .cta_filters = warp_filters, .apart = 2,
                                     .copy_bytes = access_bytes(x.extent * p.image.channels), .store_bytes = access_bytes(p.filters), .ctas_per_sm = 1};
                        if (const auto reason = obstacle(c)) rejected.add(*reason);
                        else if (DirectPlan plan = timed(machine, p, {.config = c}); plan.time_us || fixed.any()) out.push_back(std::move(plan));
                    }
    sort_by_time(out);
    return out;
}

void add_steps(DirectSteps& steps, const StemConvConfig& c) {
    const ConvProblem& p = steps.problem;
    const StemRegisters registers = stem_registers(p, c);
    steps.add("k_steps", "rows of taps x whole pairs of (taps of a row x channels) / 8, rounded up", {steps.of_problem("rows of taps", c.taps_y), steps.of_problem("taps of a row", c.taps_x),
              steps.of_problem("channels", c.channels), steps.ours("pairs of a row", c.row_pairs())}, c.steps(), "", fmt::format("{} of {} elements of K are of the window, the rest are masked out", c.taps_y * c.row_elements(), 16 * c.steps()));
    steps.add("tile", "rows x columns of places, of all that are tried those with the least time", {steps.ours("rows", c.tile_y), steps.ours("columns", c.tile_x), steps.of_problem("places", double(p.image.rows()))}, c.places(), "",
              fmt::format("{} tiles, of which {:.0f} % are places of the result", tiles_of(p, c), 100 * double(p.image.rows()) / double(tiles_of(p, c)) / c.places()));
    steps.add("wavefronts", "words of the bank with the most, of a load of A's fragments, in the mean", {steps.ours("words between places", c.stride_x * c.channels / 2.0), steps.ours("places between rows", c.apart), steps.ours("words of a row of pixels", c.pitch() / 2.0)},
              fragment_wavefronts(c), "", c.odd_places() ? "every other row begins amid words and is loaded by halves" : "");
    steps.add("registers", "sums + the larger of (fragments + windows) and the epilogue's + 52", {steps.ours("sums", registers.sums), steps.ours("fragments", registers.fragments), steps.ours("windows", registers.windows),
              steps.ours("the epilogue's", registers.epilogue)}, registers.all(), "", fmt::format("{} CTAs of {} threads an SM", c.ctas_per_sm, c.threads()));
    steps.add("shared_bytes", "weights + 2 x rows of pixels x bytes of one", {steps.ours("weights", c.weight_bytes(), "B"), steps.ours("rows of pixels", c.pixel_rows()), steps.ours("bytes of one", 2 * c.pitch(), "B")}, c.shared_bytes(), "B", "");
    steps.units(work_of(p, c),
                "the longer of dram.latency and (pairs of weights x 30 instructions x CTAs an SM / 32 / sm.partitions), by the clock",
                {steps.fact("dram.latency"), steps.ours("pairs of weights", c.weight_bytes() / 4.0), steps.ours("CTAs an SM", c.ctas_per_sm), steps.fact("sm.partitions"), steps.fact("clock.boost")},
                "the first rows come while a CTA writes its weights");
}

}  // namespace rooftile
