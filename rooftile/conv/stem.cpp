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
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

/// MMAs written out: some thousand instructions stay in the instruction cache.
constexpr int most_mmas = 1024, mma_flops = 2 * 16 * 8 * 16, wavefront_bytes = 128;

std::int64_t whole_parts(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
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

/// MMAs by mma.sync and what goes through the warps' port, in part at once.
double on_chip(const Machine& machine, double tensor, double port) {
    const Fact* exponent = machine.find("mma_sync.overlap_exponent");
    return overlapped(std::max(tensor, port), std::min(tensor, port), exponent ? exponent->value : std::nan(""));
}

/// What a CTA takes before its first MMA: its first rows come from DRAM while it writes its weights, 30 instructions a pair.
double prologue_seconds(const Machine& machine, const StemConvConfig& c) {
    const auto partitions = machine.count("sm.partitions");
    const auto clock = machine.number<Clock>("clock.boost");
    const auto latency = latency_cycles(machine, "dram.latency", clock);
    if (!latency || !partitions || !clock) return 0;
    return std::max(latency->value, double(c.weight_bytes()) / 4 * 30 / 32 * c.ctas_per_sm / *partitions) / clock->value;
}

}  // namespace

StemWork work_of(const ConvProblem& p, const StemConvConfig& c) {
    const double tiles = double(tiles_of(p, c)) * double(columns_of(p, c));
    const double parts = tiles * double(parts_of(c)), steps = parts * c.steps();
    int moved = 0, masked = 0;  // groups of four pairs of which some are not beside the first, or not whole
    for (int pair = 0; pair < 8 * c.steps(); pair += 4) {
        moved += c.pair_word(pair + 3) != c.pair_word(pair) + 3;
        masked += (c.pair_mask(pair) & c.pair_mask(pair + 1) & c.pair_mask(pair + 2) & c.pair_mask(pair + 3)) != ~0u;
    }
    const double loads = 4.0 * c.warp_tiles * (c.odd_places() ? 1.5 : 1);
    StemWork w;
    w.multiplies = steps * c.warp_tiles * c.warp_filters / 8;
    w.loads = steps * (loads + c.warp_filters / 16.0);
    w.masks = parts * (2.0 * c.warp_tiles * (moved + masked) + (c.odd_places() ? 2.0 * c.warp_tiles * c.steps() : 0));
    const double eights = parts * 2 * c.warp_tiles * c.warp_filters / 32;
    w.stores = eights * (4 + 16.0 / c.store_bytes + 8);
    if (const SharedEpilogue& e = p.direct_epilogue) w.stores += eights * 4 * (2 * e->issue + 2.0 * e->pair_registers(false, false));
    w.copies = tiles * c.pixel_bytes() / c.copy_bytes / 32 * 12;  // with the bounds of each
    w.fragment_wavefronts = steps * loads * fragment_wavefronts(c);
    w.weight_wavefronts = steps * c.warp_filters / 16.0 * 4;
    w.copy_wavefronts = tiles * c.pixel_bytes() / std::min(wavefront_bytes, 32 * c.copy_bytes);
    return w;
}

Demand stem_demand(const ConvProblem& p, const DirectPlan& plan) {
    const StemConvConfig& c = *plan.stem;
    const StemWork work = work_of(p, c);
    Demand out = tensor_demand(p);
    out.matrix = {{"mma_sync", p.type, "fp32", work.multiplies * mma_flops}};
    out.issue_slots = work.instructions() * 32;
    out.shared_bytes = work.wavefronts() * wavefront_bytes;
    out.tiles = tiles_of(p, c) * columns_of(p, c);
    const double copied = double(out.tiles) * c.pixel_bytes();
    out.l2_bytes = copied + p.result_bytes() + p.operand_bytes;
    out.filled_bytes = copied, out.shared_read_bytes = (work.fragment_wavefronts + work.weight_wavefronts) * wavefront_bytes;
    out.loaded_bytes = p.result_bytes() + p.operand_bytes;
    return out;
}

DirectPlan stem_timed(const Machine& machine, const ConvProblem& p, DirectPlan plan) {
    const Demand demand = stem_demand(p, plan);
    const RoofTime roof = roof_time(demand, machine, {.sustained = true});
    plan.time_us.reset(), plan.tensor_us.reset(), plan.shared_us.reset(), plan.issue_us.reset(), plan.l2_us.reset(), plan.dram_us.reset(), plan.fill_us.reset(), plan.bound = roof.bound();
    const auto gap = machine.number<Seconds>("launch.gap_stream");
    const auto sms = machine.count("sm.count");
    if (!roof.unknown.empty() || !gap || !sms) return plan;
    const double turns = double(demand.tiles) / *sms, parts = double(parts_of(*plan.stem)), warps = plan.stem->warps;
    // The last turn may have fewer tiles, and of a tile not every warp as many parts.
    const double last = (turns >= 1 ? std::ceil(turns) / turns : 1) * std::ceil(parts / warps) * warps / parts;
    const std::tuple<Bound, std::optional<double>&, double> units[] = {{Bound::tensor, plan.tensor_us, last}, {Bound::shared, plan.shared_us, last}, {Bound::issue, plan.issue_us, last},
                                                                       {Bound::l2, plan.l2_us, 1.0}, {Bound::dram, plan.dram_us, 1.0}};
    for (const UnitTime& unit : roof.units)
        for (const auto& [bound, us, factor] : units)
            if (unit.bound == bound) us = unit.seconds * factor * 1e6;
    const double port = std::max(*plan.shared_us, *plan.issue_us), chip = on_chip(machine, *plan.tensor_us, port), memory = std::max(*plan.l2_us, *plan.dram_us);
    if (chip >= memory) plan.bound = *plan.tensor_us >= port ? Bound::tensor : *plan.shared_us >= *plan.issue_us ? Bound::shared : Bound::issue;
    else plan.bound = *plan.l2_us >= *plan.dram_us ? Bound::l2 : Bound::dram;
    // Every CTA's first tile comes from DRAM while nothing is stored.
    const double fill = *plan.dram_us * demand.tensors[0].footprint_bytes / *demand.dram_bytes * std::min(1.0, *sms * plan.stem->ctas_per_sm / double(demand.tiles));
    plan.fill_us = fill;
    plan.time_us = (gap->value + prologue_seconds(machine, *plan.stem)) * 1e6 + fill + std::max(chip, memory - fill);
    return plan;
}

std::vector<DirectPlan> stem_plans(const Machine& machine, const ConvProblem& p, const StemRequest& fixed, Rejected& rejected) {
    std::vector<DirectPlan> out;
    const ImageAxis &x = p.image.axes[0], &y = p.image.axes[1];
    const auto room = machine.find("shared.per_cta"), of_sm = machine.find("shared.per_sm"), reserved = machine.find("shared.reserved_per_cta");
    const auto registers = machine.count("sm.registers");
    constexpr std::int64_t widest = 1024, most_places = 4096, most_grid_y = 65535;
    if (p.groups > 1 || p.axes == 3 || (x.dilation > 1 && x.taps > 1) || !machine.has("cp_async") || !room || !of_sm || !registers) return out;
    const auto too_long = [&](const ImageAxis& axis, std::int64_t by) { return axis.extent + 2 * axis.padding > max_conv_extent / by; };  // elements of a row are counted in ints
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
        // As many CTAs as find room, of up to 16 warps together.
        const int needed = stem_registers(p, c).all(), by_registers = int(*registers) / (c.threads() * int(filled_up(needed, 8)));
        c.ctas_per_sm = std::min({by_registers, int(of_sm->value / (c.shared_bytes() + (reserved ? reserved->value : 0))), 16 / c.warps});
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
                        DirectPlan plan;
                        plan.stem = {.type = p.type == "bf16" ? Type::bf16 : Type::fp16, .taps_y = int(y.taps), .taps_x = int(x.taps), .stride_y = int(y.stride), .stride_x = int(x.stride),
                                     .dilation_y = int(y.dilation), .channels = int(p.image.channels), .front = (8 - lead) % 8, .tile_y = tile_y, .tile_x = tile_x, .warps = warps,
                                     .warp_tiles = warp_tiles, .warp_filters = warp_filters, .cta_filters = warp_filters, .apart = 2,
                                     .copy_bytes = access_bytes(x.extent * p.image.channels), .store_bytes = access_bytes(p.filters), .ctas_per_sm = 1};
                        if (const auto reason = obstacle(*plan.stem)) rejected.add(*reason);
                        else if (plan = stem_timed(machine, p, std::move(plan)); plan.time_us || fixed.any()) out.push_back(std::move(plan));
                    }
    // Of equal times the one that asks less of an SM, and begins to store sooner.
    std::ranges::stable_sort(out, {}, [](const DirectPlan& plan) { return std::pair(plan.time_us, plan.fill_us.value_or(0) + std::max({plan.tensor_us, plan.shared_us, plan.issue_us}).value_or(0)); });
    return out;
}

std::vector<Step> stem_steps(const Machine& machine, const ConvProblem& p, const DirectPlan& plan) {
    Derivation steps(machine);
    const StemConvConfig& c = *plan.stem;
    const StemWork work = work_of(p, c);
    const StemRegisters registers = stem_registers(p, c);
    const Demand demand = stem_demand(p, plan);
    const auto ours = [](std::string name, double value, const char* unit = "") { return Derivation::given(std::move(name), value, unit, "the plan"); };
    const auto of_problem = [](std::string name, double value, const char* unit = "") { return Derivation::given(std::move(name), value, unit, "the problem"); };
    const auto above = [](std::string name, std::optional<double> value, const char* unit) { return Derivation::given(std::move(name), value.value_or(std::nan("")), unit, "an earlier step"); };
    const auto us = [&](const char* name, const char* formula, std::vector<Input> inputs, std::optional<double> value, std::string limit = "") {
        steps.add(name, formula, std::move(inputs), value.value_or(std::nan("")), "us", std::move(limit));
    };
    steps.add("k_steps", "rows of taps x whole pairs of (taps of a row x channels) / 8, rounded up", {of_problem("rows of taps", c.taps_y), of_problem("taps of a row", c.taps_x),
              of_problem("channels", c.channels), ours("pairs of a row", c.row_pairs())}, c.steps(), "", fmt::format("{} of {} elements of K are of the window, the rest are masked out", c.taps_y * c.row_elements(), 16 * c.steps()));
    steps.add("tile", "rows x columns of places, of all that are tried those with the least time", {ours("rows", c.tile_y), ours("columns", c.tile_x), of_problem("places", double(p.image.rows()))}, c.places(), "",
              fmt::format("{} tiles, of which {:.0f} % are places of the result", tiles_of(p, c), 100 * double(p.image.rows()) / double(tiles_of(p, c)) / c.places()));
    steps.add("wavefronts", "words of the bank with the most, of a load of A's fragments, in the mean", {ours("words between places", c.stride_x * c.channels / 2.0), ours("places between rows", c.apart), ours("words of a row of pixels", c.pitch() / 2.0)},
              fragment_wavefronts(c), "", c.odd_places() ? "every other row begins amid words and is loaded by halves" : "");
    steps.add("registers", "sums + the larger of (fragments + windows) and the epilogue's + 52", {ours("sums", registers.sums), ours("fragments", registers.fragments), ours("windows", registers.windows),
              ours("the epilogue's", registers.epilogue)}, registers.all(), "", fmt::format("{} CTAs of {} threads an SM", c.ctas_per_sm, c.threads()));
    steps.add("shared_bytes", "weights + 2 x rows of pixels x bytes of one", {ours("weights", c.weight_bytes(), "B"), ours("rows of pixels", c.pixel_rows()), ours("bytes of one", 2 * c.pitch(), "B")}, c.shared_bytes(), "B", "");
    us("tensor_us", "MMAs x 4096 FLOP / (sm.count x rate x clock), in whole turns of CTAs and of warps", {ours("MMAs", work.multiplies), steps.fact("rate.mma_sync." + p.type + ".fp32"), steps.fact("sm.count"), steps.fact("clock.boost")}, plan.tensor_us);
    us("shared_us", "(wavefronts of A's fragments + of weights + of copies) x 128 B / (sm.count x bandwidth x clock)", {ours("wavefronts of A's fragments", work.fragment_wavefronts), ours("of weights", work.weight_wavefronts),
       ours("of copies", work.copy_wavefronts), steps.fact("shared.bandwidth"), steps.fact("sm.count"), steps.fact("clock.boost")}, plan.shared_us);
    us("issue_us", "(MMAs + loads + masks + stores + copies) / (sm.count x sm.partitions x clock)", {ours("MMAs", work.multiplies), ours("loads", work.loads), ours("masks", work.masks), ours("stores", work.stores), ours("copies", work.copies),
       steps.fact("sm.count"), steps.fact("sm.partitions"), steps.fact("clock.boost")}, plan.issue_us);
    us("l2_us", "rows of pixels of all tiles + the result + what the epilogue reads", {ours("copied", demand.filled_bytes, "B"), of_problem("the others", demand.loaded_bytes, "B"), steps.fact("l2.bandwidth")}, plan.l2_us);
    std::vector<Input> bytes = {steps.fact(machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth")};
    for (const TensorTraffic& tensor : demand.tensors) bytes.push_back(of_problem(tensor.tensor, tensor.footprint_bytes, "B"));
    us("dram_us", "every tensor once", std::move(bytes), plan.dram_us);
    us("start_us", "the longer of dram.latency and (pairs of weights x 30 instructions x CTAs an SM / 32 / sm.partitions), by the clock", {steps.fact("dram.latency"), ours("pairs of weights", c.weight_bytes() / 4.0), ours("CTAs an SM", c.ctas_per_sm),
       steps.fact("sm.partitions"), steps.fact("clock.boost")}, prologue_seconds(machine, c) * 1e6, "the first rows come while a CTA writes its weights");
    us("time_us", "launch.gap_stream + start_us + the first tiles + the longest of (tensor beside the larger of shared and issue, by mma_sync.overlap_exponent), l2 and dram less the first tiles", {steps.fact("launch.gap_stream"),
       above("start_us", prologue_seconds(machine, c) * 1e6, "us"), ours("the first tiles", plan.fill_us.value_or(std::nan("")), "us"), steps.fact("mma_sync.overlap_exponent"), above("tensor_us", plan.tensor_us, "us"), above("shared_us", plan.shared_us, "us"),
       above("issue_us", plan.issue_us, "us"), above("l2_us", plan.l2_us, "us"), above("dram_us", plan.dram_us, "us")}, plan.time_us, plan.bound ? fmt::format("limited by {}", name_of(*plan.bound)) : "");
    return steps.take();
}

}  // namespace rooftile
