#include "rooftile/conv/depthwise.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

constexpr int sector_bytes = 32;
/// MMAs of a channel, written out: with the rest of the kernel they stay in the instruction cache.
constexpr int most_band_mmas = 256, most_sums = 64;

/// Tiles along an axis of `size` places each, and the pixels inside the image that all of them load, `more` beyond a pixel a place each.
struct Tiles {
    std::int64_t count, pixels = 0;
    Tiles(const ImageAxis& axis, std::int64_t size, std::int64_t more) : count(whole_parts(axis.places(), size)) {
        for (std::int64_t tile = 0; tile < count; ++tile) {
            const std::int64_t first = tile * size - axis.padding;
            pixels += std::max<std::int64_t>(0, std::min(first + size + more, axis.extent) - std::max<std::int64_t>(first, 0));
        }
    }
};
struct AllTiles {
    Tiles x, y;
    std::int64_t images;
    AllTiles(const ConvProblem& p, const DepthwiseConvConfig& c)
        : x(p.image.axes[0], c.tile_x(), 8), y(p.image.axes[1], c.tile_y(), c.taps_y - 1), images(whole_parts(p.image.images, c.images)) {}
    std::int64_t count() const { return x.count * y.count * images; }
};
std::int64_t columns_of(const ConvProblem& p, const DepthwiseConvConfig& c) { return whole_parts(p.filters, c.channels); }

/// Wavefronts of a row of taps' fragments, all parts': of a matrix's eight rows of 16 B as many as one of eight groups of banks has.
int fragment_wavefronts(const DepthwiseConvConfig& c) {
    int all = 0;
    for (int first = 0; first < 16 * c.parts(); first += 8) {
        std::set<unsigned> cells;
        for (int slot = first; slot < first + 8; ++slot) cells.insert(c.first_cell(unsigned(std::min(slot, c.slots() - 1))));
        std::array<int, 8> of_bank{};
        for (const unsigned cell : cells) ++of_bank[cell % 8];
        all += 2 * std::ranges::max(of_bank);
    }
    return all;
}

/// Of a thread: the bands of all rows of taps, and the most of what it multiplies (sums and some fragments of each part), what it loads (two pixels' vectors and an
/// address each) and what it stores (sums, and the epilogue's); and 40. ptxas loads more fragments ahead where there is room: tests/conv/compile draws kernels and finds no spill.
struct DepthwiseRegisters {
    int bands, sums, fragments, loads, epilogue;
    int all() const { return bands + std::max({sums + fragments, loads, 8 + epilogue}) + 40; }
};
DepthwiseRegisters registers_of(const ConvProblem& p, const DepthwiseConvConfig& c) {
    return {2 * c.taps_y, c.sums(), 16 * c.parts(), 9 * c.pixels().at_once(c.most_loads) * c.pixels().items_at_once(), p.direct_epilogue ? p.direct_epilogue->registers(false, false) : 0};
}

DirectWork work_of(const ConvProblem& p, const DepthwiseConvConfig& c) {
    const double tiles = double(AllTiles(p, c).count()), planes = tiles * double(p.filters), fragments = planes * (c.rows + c.taps_y - 1);
    const double pairs = planes / 8 * c.images * c.pixel_rows() * c.cells() * 4 / 32, vectors = planes / 8 * c.images * c.tile_y() * c.tile_x() / 32;
    const int halves = c.taps_x < 8 ? 1 : 2;  // of a band that a lane has some of
    return {.instructions = {{"MMAs", planes * c.parts() * c.rows * c.taps_y},
                             {"loads", fragments * c.parts()},
                             {"bands", planes * c.taps_y * (5 * halves + 2)},   // two loads a half, zeros where there is no tap, words of them
                             {"pixels", pairs * (2 + 3 * 8 + 36)},              // loads, words, a look at them and their stores, with the bounds and addresses of two pixels
                             {"sums", planes * (2 * c.parts() * c.rows + 40)},  // with what a channel begins with
                             {"stores", vectors * ((8 + 37) / c.neighbours() + 4 + 1 + epilogue_instructions(p, 8))}},
            .wavefronts = {{"of A's fragments", fragments * fragment_wavefronts(c)},
                           {"of weights", planes * 2 * halves * c.taps_y},
                           {"of pixels", pairs * (2 * 4 + 8)},
                           {"of sums", vectors * (2 * 2 * c.sum_bytes + 4)}}};
}

}  // namespace

Demand demand_of(const ConvProblem& p, const DepthwiseConvConfig& c) {
    const AllTiles tiles(p, c);
    return matrix_demand(p, work_of(p, c), tiles.count() * columns_of(p, c),
                         double(p.image.images) * double(tiles.x.pixels) * double(tiles.y.pixels) * double(columns_of(p, c)) * std::max(2 * c.channels, sector_bytes));
}

TilePace tile_pace(const Machine& machine, const Demand& demand, const DepthwiseConvConfig& c) {
    const auto clock = machine.number<Clock>("clock.boost");
    const auto latency = latency_cycles(machine, "dram.latency", clock);
    const auto rate = flops_per_cycle_per_sm(machine, rate_key("mma_sync", demand.matrix.front().input, "fp32"), clock);
    const Fact* bandwidth = machine.find("shared.bandwidth");
    const auto partitions = machine.count("sm.partitions"), sms = machine.count("sm.count");
    const std::int64_t of_a_warp = whole_parts(c.channels, c.warps);
    TilePace pace{.unevenness = double(of_a_warp * c.warps) / c.channels, .ctas_per_sm = c.ctas_per_sm};
    if (!clock || !latency || !rate || !bandwidth || !partitions || !(sms > 0)) return pace;
    const double mmas = double(of_a_warp) * c.parts() * c.rows * c.taps_y * mma_flops / (rate->value / *partitions);
    pace.start_seconds = latency->value / clock->value;
    // CTAs that are resident together load, multiply and store one after the other, each by few warps: what one issues waits for what it issued.
    const auto start = latency_cycles(machine, "planes.start", clock);
    const Fact* stretch = machine.find("planes.stretch");
    const double resident = std::min(double(c.ctas_per_sm), std::max(1.0, double(demand.tiles) / *sms));
    const auto l2 = bytes_per_cycle_per_sm(machine, "l2.bandwidth", clock);
    const double sectors = (demand.filled_bytes + demand.loaded_bytes * std::max(2 * c.channels, sector_bytes) / (2 * c.channels)) / double(demand.tiles);
    const double through_l2 = l2 ? resident * sectors / l2->value : 0;
    const double issue = resident * pace.unevenness * demand.issue_slots / 32 / *partitions / double(demand.tiles);
    pace.tile_seconds = (start && stretch ? start->value + stretch->value * issue + through_l2 : latency->value + mmas + *demand.shared_bytes / double(demand.tiles) / bandwidth->value) / clock->value;
    return pace;
}

std::vector<DirectPlan> depthwise_plans(const Machine& machine, const ConvProblem& p, const DepthwiseRequest& fixed, Rejected& rejected) {
    std::vector<DirectPlan> out;
    const ImageAxis &x = p.image.axes[0], &y = p.image.axes[1];
    const auto room = machine.find("shared.per_cta");
    const bool channels_apart = p.groups == p.image.channels && p.groups == p.filters && p.filters % 8 == 0, plain = x.stride == 1 && y.stride == 1 && x.reach() == x.taps - 1 && y.reach() == y.taps - 1;
    if (p.axes == 3 || !channels_apart || !plain || std::max(x.taps, y.taps) > DepthwiseConvConfig::most_taps || !machine.has("cp_async") || !room) return out;
    if (too_long(x, p.filters) || too_long(y, 1)) return out;
    /// Fills in the rest, or says why not.
    const auto obstacle = [&](DepthwiseConvConfig& c) -> std::optional<Reason> {
        const bool all_of_image = c.tile_y() >= y.places() && c.tile_x() >= x.places();
        if (c.parts() * c.rows * c.taps_y > most_band_mmas) return Reason::instruction;
        if (c.sums() > most_sums) return Reason::registers;
        if (!fixed.any() && ((c.images > 1 && !all_of_image) || c.images > p.image.images || (c.groups - 1) * c.rows >= y.places() || 8 * (c.blocks - 1) >= x.places() || c.channels > p.filters)) return Reason::rule;
        const auto worse = [&](int pitch) {
            DepthwiseConvConfig other = c;
            return other.pitch = pitch, std::pair(fragment_wavefronts(other), pitch);
        };
        std::pair best = worse(c.cells());
        for (int pitch = c.cells() + 1; pitch < c.cells() + 8; ++pitch) best = std::min(best, worse(pitch));
        c.pitch = best.second;
        if (c.shared_bytes() > room->value) return Reason::shared;
        const std::int64_t of_image = whole_parts(x.places(), c.tile_x()) * whole_parts(y.places(), c.tile_y());
        if (of_image * whole_parts(p.image.images, c.images) * columns_of(p, c) > max_conv_extent) return Reason::instruction;  // a grid has no more
        c.ctas_per_sm = ctas_an_sm(machine, c.threads(), registers_of(p, c).all(), c.shared_bytes());
        if (c.ctas_per_sm < 1) return Reason::registers;
        return {};
    };
    const auto choices = [](const std::optional<int>& asked, std::set<int> all) { return asked ? std::set<int>{*asked} : std::move(all); };
    const int whole_row = int(std::min<std::int64_t>(whole_parts(x.places(), 8), 64));
    for (const int rows : choices(fixed.rows, {1, 2, 3, 4, 5, 6, 7, 8}))
        for (const int groups : choices(fixed.groups, {1, 2, 3, 4, 6, 8, int(std::min<std::int64_t>(whole_parts(y.places(), rows), 64))}))
            for (const int blocks : choices(fixed.blocks, {1, 2, 3, 4, 7, 8, 16, whole_row}))
                for (const int images : choices(fixed.images, {1, 2, 4, 8, 16}))
                    for (const int channels : choices(fixed.channels, {8, 16, 32, 64}))
                        for (const int warps : choices(fixed.warps, {4, 8})) {
                            DepthwiseConvConfig c{.type = p.type == "bf16" ? Type::bf16 : Type::fp16, .taps_y = int(y.taps), .taps_x = int(x.taps), .images = images, .groups = groups, .rows = rows,
                                                  .blocks = blocks, .channels = channels, .pitch = blocks + 1, .sum_bytes = p.direct_epilogue ? 4 : 2, .warps = warps, .ctas_per_sm = 1};
                            if (c.slots() > 64 || c.channels % 8 != 0) continue;
                            if (const auto reason = obstacle(c)) rejected.add(*reason);
                            else if (DirectPlan plan = timed(machine, p, {.config = c}); plan.time_us || fixed.any()) out.push_back(std::move(plan));
                        }
    sort_by_time(out);
    return out;
}

void add_steps(DirectSteps& steps, const DepthwiseConvConfig& c) {
    const ConvProblem& p = steps.problem;
    const DepthwiseRegisters registers = registers_of(p, c);
    const AllTiles tiles(p, c);
    const double places = double(c.images) * c.tile_y() * c.tile_x();
    steps.add("slots", "images x groups of rows x blocks of 8 places: rows of A, 16 pixels each", {steps.ours("images", c.images), steps.ours("groups", c.groups), steps.ours("blocks", c.blocks)}, c.slots(), "",
              fmt::format("{} of {} rows; a filter's row of {} taps fills {} of 16 x 8 of a band", c.slots(), 16 * c.parts(), c.taps_x, 8 * c.taps_x));
    steps.add("tile", "images x groups x rows x 8 x blocks, of all that are tried those with the least time", {steps.ours("slots", c.slots()), steps.ours("rows", c.rows), steps.of_problem("places", double(p.image.rows()))}, places, "",
              fmt::format("{} tiles by {} of channels, of which {:.0f} % are places of the result", tiles.count(), columns_of(p, c), 100 * double(p.image.rows()) / double(tiles.count()) / places));
    steps.add("halo", "pixels loaded / pixels of the image", {steps.ours("rows of all tiles", double(tiles.y.pixels)), steps.ours("columns of all tiles", double(tiles.x.pixels)), steps.of_problem("pixels", double(p.image.pixels() / p.image.images))},
              double(tiles.y.pixels) * double(tiles.x.pixels) * double(p.image.images) / double(p.image.pixels()), "", "from L2: what tiles share is asked for at about the same time");
    steps.add("wavefronts", "of a row of pixels' fragments: of eight rows of 16 B as many as one of eight groups of banks has", {steps.ours("parts", c.parts()), steps.ours("cells between rows of pixels", c.pitch), steps.ours("rows", c.rows)}, fragment_wavefronts(c), "",
              fmt::format("{} rows of pixels for {} x {} MMAs", c.rows + c.taps_y - 1, c.rows, c.taps_y));
    steps.add("registers", "bands + the most of (sums + fragments), loads and (8 + the epilogue's) + 40", {steps.ours("bands", registers.bands), steps.ours("sums", registers.sums), steps.ours("fragments", registers.fragments), steps.ours("loads", registers.loads),
              steps.ours("the epilogue's", registers.epilogue)}, registers.all(), "", fmt::format("{} CTAs of {} threads an SM", c.ctas_per_sm, c.threads()));
    steps.add("shared_bytes", "channels x the larger of pixels x 2 B and sums x their bytes (2, 4 where an epilogue reads them), and what keeps vectors of channels in different banks", {steps.ours("channels", c.channels), steps.ours("rows of pixels", c.images * c.pixel_rows()), steps.ours("bytes of one", 16 * c.pitch, "B"), steps.ours("sums", places)},
              c.shared_bytes(), "B", "");
    steps.us("tile_us", "planes.start + planes.stretch x what resident CTAs issue of a tile each + their sectors through l2.bandwidth; where these are unknown dram.latency, MMAs and wavefronts of one", {steps.fact("planes.start"), steps.fact("planes.stretch"), steps.fact("l2.bandwidth"), steps.ours("CTAs an SM", c.ctas_per_sm)},
             tile_pace(steps.machine, direct_demand(p, steps.plan), c).tile_seconds * 1e6, "of CTAs that are resident together, one round after the other");
    steps.units(work_of(p, c), "dram.latency, by the clock", {steps.fact("dram.latency"), steps.fact("clock.boost"), steps.ours("CTAs an SM", c.ctas_per_sm)}, "the first pixels");
}

}  // namespace rooftile
