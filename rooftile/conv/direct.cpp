#include "rooftile/conv/direct.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "rooftile/conv/depthwise.hpp"
#include "rooftile/conv/stem.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

constexpr int most_threads = 128;
/// Code is unrolled over a row's multiplications: some thousand instructions stay in the instruction cache.
constexpr int most_multiplies = 2048;
/// By the count below. ptxas computes ahead and takes up to 80 more, of the 255 that a thread can have: tests/conv/compile draws kernels and finds no spill.
constexpr int most_registers = 168;
/// Pixels along an axis that some tap of a thread's places meets; the others are not loaded.
int met(int pixels, const auto& is_met) {
    int count = 0;
    for (int i = 0; i < pixels; ++i) count += is_met(i);
    return count;
}
int met_x(const DirectConvConfig& c) { return met(c.pixels_x(), [&](int i) { return c.met_x(i); }); }
int met_y(const DirectConvConfig& c) { return met(c.pixels_y(), [&](int i) { return c.met_y(i); }); }
/// Of a thread: its sums; beside them a row's pixels in fp32, the next row's as they are in memory and a tap's weights, or then the epilogue's;
/// and addresses.
struct Registers {
    int sums, pixels, weights, epilogue;
    static constexpr int addresses = 40;
    int all() const { return sums + std::max(pixels + weights, epilogue) + addresses; }
};
Registers registers_of(const ConvProblem& p, const DirectConvConfig& c) {
    return {c.rows * c.strip * c.vector, met_x(c) * (c.thread_channels() + (c.thread_channels() + 1) / 2), c.together(),
            p.direct_epilogue ? p.direct_epilogue->registers(c.vector == 1, false) : 0};
}

/// The widest load that divides a thread's channels and every pixel's beginning.
int load_bytes(const ConvProblem& p, const DirectConvConfig& c) {
    int bytes = 16;
    while (bytes > 2 && ((2 * c.thread_channels()) % bytes != 0 || (2 * p.image.channels) % bytes != 0)) bytes /= 2;
    return bytes;
}

std::int64_t filter_blocks(const ConvProblem& p, const DirectConvConfig& c) { return whole_parts(p.filters, c.cta_filters()); }

/// MMAs by mma.sync and what goes through the warps' port, in part at once.
double on_chip(const Machine& machine, double tensor, double port) {
    if (tensor == 0) return port;
    const Fact* exponent = machine.find("mma_sync.overlap_exponent");
    return overlapped(std::max(tensor, port), std::min(tensor, port), exponent ? exponent->value : std::nan(""));
}

TilePace tile_pace(const Machine& machine, const Demand&, const DirectConvConfig&) {
    const Fact* stretch = machine.find("direct.stretch");
    return {.stretch = stretch ? stretch->value : 1};
}

}  // namespace

std::int64_t strips_of(const ConvProblem& p, const DirectConvConfig& c) {
    return p.image.images * whole_parts(p.image.axes[1].places(), c.rows) * whole_parts(p.image.axes[0].places(), c.strip);
}

bool is_direct(const ConvProblem& p) { return p.groups > 1 || p.image.channels % 8 != 0; }

double epilogue_instructions(const ConvProblem& p, int neighbours) {
    const SharedEpilogue& e = p.direct_epilogue;  // of one alone half a pair is thrown away
    return e ? std::max(1, neighbours / 2) * (2 * e->issue + 2.0 * e->pair_registers(neighbours == 1, false)) : 0;
}

DirectWork work_of(const ConvProblem& p, const DirectConvConfig& c) {
    const int rows = met_y(c), pixels = met_x(c);
    const double places = double(c.rows) * c.strip, multiplies = places * c.vector * c.taps() * c.group_channels;
    return {.instructions = {{"multiplications", multiplies},
                             {"unpacking", double(rows) * pixels * c.thread_channels()},
                             // With the address and the bounds of each, and the zeros where it is outside; of channels loaded one by one two make a word.
                             {"loads", double(rows) * (pixels * (c.loads_a_pixel() * (c.load_bytes == 2 && c.thread_channels() > 1 ? 2 : 1) + 5) + 20 + 2 * c.rows)},
                             {"weights", multiplies / c.strip / c.together()},
                             {"epilogue", places * epilogue_instructions(p, c.vector)},
                             {"stores", places * (c.vector + 8)},  // rounding, its sums set to zero, the address and its bounds
                             {"the rest", 60}},
            .wavefronts = {}};
}

Demand tensor_demand(const ConvProblem& p) {
    Demand out;
    const double image = double(p.image.elements_read()) * p.element_bytes();
    const auto add = [&](const char* name, TensorRole role, double bytes) { out.tensors.push_back({name, role, bytes, bytes}); };
    add("x", TensorRole::in, image);
    add("w", TensorRole::in, p.filter_bytes());
    add(p.direct_epilogue ? p.direct_epilogue->output().c_str() : "y", TensorRole::out, p.result_bytes());
    if (p.direct_epilogue)
        for (const EpilogueOperand& o : p.direct_epilogue->operands)
            add(o.name.c_str(), TensorRole::in, double(o.elements(1, p.image.rows(), p.filters)) * bytes_of(o.element));
    out.dram_bytes = image + p.filter_bytes() + p.result_bytes() + p.operand_bytes;
    return out;
}

Demand matrix_demand(const ConvProblem& p, const DirectWork& work, std::int64_t tiles, double filled_bytes) {
    Demand out = tensor_demand(p);
    out.matrix = {{"mma_sync", p.type, "fp32", work.instructions[0].second * mma_flops}};
    out.issue_slots = DirectWork::sum(work.instructions) * 32;
    out.shared_bytes = DirectWork::sum(work.wavefronts) * wavefront_bytes;
    out.shared_read_bytes = (work.wavefronts[0].second + work.wavefronts[1].second) * wavefront_bytes;
    out.tiles = tiles, out.filled_bytes = filled_bytes, out.loaded_bytes = p.result_bytes() + p.operand_bytes;
    out.l2_bytes = out.filled_bytes + out.loaded_bytes;
    return out;
}

Demand demand_of(const ConvProblem& p, const DirectConvConfig& c) {
    Demand out = tensor_demand(p);
    const double vectors = double(whole_parts(p.filters, c.vector)) * double(strips_of(p, c)), image = out.tensors[0].footprint_bytes;
    out.issue_slots = vectors * DirectWork::sum(work_of(p, c).instructions);
    // Rows that strips one below the other share come again; what is beside each other L1 has.
    const double again = double(met_y(c)) / (double(c.rows) * c.stride_y);
    out.l2_bytes = image * std::max(1.0, again) + p.result_bytes() + p.operand_bytes;
    out.loaded_bytes = *out.l2_bytes;
    out.tiles = filter_blocks(p, c) * whole_parts(strips_of(p, c), c.slots);
    return out;
}

Demand direct_demand(const ConvProblem& p, const DirectPlan& plan) {
    return plan.visit([&](const auto& c) { return demand_of(p, c); });
}

DirectPlan timed(const Machine& machine, const ConvProblem& p, DirectPlan plan) {
    const Demand demand = direct_demand(p, plan);
    const TilePace pace = plan.visit([&](const auto& c) { return tile_pace(machine, demand, c); });
    const RoofTime roof = roof_time(demand, machine, {.sustained = true});
    DirectPlan out{.config = std::move(plan.config), .bound = roof.bound()};
    const auto gap = machine.number<Seconds>("launch.gap_stream");
    const auto sms = machine.count("sm.count");
    if (!roof.unknown.empty() || !gap || !sms) return out;
    // SMs take turns of whole tiles: the last turn may have fewer.
    const double turns = double(demand.tiles) / *sms, last = (turns >= 1 ? std::ceil(turns) / turns : 1) * pace.unevenness;
    const std::tuple<Bound, std::optional<double>&, double> units[] = {
        {Bound::tensor, out.tensor_us, last}, {Bound::shared, out.shared_us, last}, {Bound::issue, out.issue_us, last}, {Bound::l2, out.l2_us, 1.0}, {Bound::dram, out.dram_us, 1.0}};
    for (const UnitTime& unit : roof.units)
        for (const auto& [bound, us, factor] : units)
            if (unit.bound == bound) us = unit.seconds * factor * 1e6;
    const double tensor = out.tensor_us.value_or(0), shared = out.shared_us.value_or(0), issue = *out.issue_us, port = std::max(shared, issue);
    const double memory = std::max(*out.l2_us, *out.dram_us), by_tiles = std::ceil(turns / std::max(1, pace.ctas_per_sm)) * pace.tile_seconds * 1e6;
    // The first tiles of all CTAs come from DRAM while nothing is stored.
    out.fill_us = *out.dram_us * demand.tensors[0].footprint_bytes / *demand.dram_bytes * std::min(1.0, *sms * pace.ctas_per_sm / double(demand.tiles));
    const double chip = on_chip(machine, tensor, port), rest = memory - *out.fill_us;
    if (std::max(chip, by_tiles) < memory) out.bound = *out.l2_us >= *out.dram_us ? Bound::l2 : Bound::dram;
    else if (chip < by_tiles) out.bound = Bound::latency;
    else out.bound = tensor >= port ? Bound::tensor : shared >= issue ? Bound::shared : Bound::issue;
    out.start_us = pace.start_seconds * 1e6;
    out.time_us = gap->value * 1e6 + *out.start_us + *out.fill_us + pace.stretch * std::max({chip, rest, by_tiles});
    return out;
}

void sort_by_time(std::vector<DirectPlan>& plans) {
    std::ranges::stable_sort(plans, {}, [](const DirectPlan& plan) { return std::pair(plan.time_us, plan.fill_us.value_or(0) + std::max({plan.tensor_us, plan.shared_us, plan.issue_us}).value_or(0)); });
}

int ctas_an_sm(const Machine& machine, int threads, int registers, int shared_bytes) {
    const auto file = machine.count("sm.registers");
    const Fact *shared = machine.find("shared.per_sm"), *reserved = machine.find("shared.reserved_per_cta");
    if (!file || !shared) return 0;
    return std::min({int(*file) / (threads * ((registers + 7) / 8 * 8)), int(shared->value / (shared_bytes + (reserved ? reserved->value : 0))), 16 * 32 / threads});
}

DirectPlans direct_plans(const Machine& machine, const ConvProblem& p, int top, const DirectRequest& fixed) {
    DirectPlans out;
    const auto refuse = [&](Reason reason, std::string why) { out.refusal = Refusal{reason, std::move(why), {}, {}}; };
    // A thread's code has every pixel of its window by number, and a configuration counts in ints.
    constexpr std::int64_t widest = 1024, most_grid_y = 65535;
    for (const ImageAxis& axis : p.image.axes)
        if (axis.stride > widest || axis.reach() > widest)
            refuse(Reason::instruction, fmt::format("direct kernels write out a window's pixels, {} at most along an axis; the stride is {} and the filter reaches {} on", widest, axis.stride, axis.reach()));
    const std::int64_t group_channels = p.image.channels / p.groups, group_filters = p.filters / p.groups;
    if (p.axes == 3) refuse(Reason::instruction, "groups, or channels that are no multiple of 8, of three axes are not planned yet");
    if (out.refusal) return out;
    const auto room = machine.find("shared.per_cta");
    const ImageAxis &x = p.image.axes[0], &y = p.image.axes[1];
    std::vector<DirectPlan> found;
    std::int64_t fewest_columns = std::numeric_limits<std::int64_t>::max();  // of the grid, of those refused for it
    const auto is_asked = [](const std::optional<int>& number, int value) { return number.value_or(value) == value; };
    for (const int vector : {8, 4, 2, 1})
        for (const int strip : {8, 4, 2, 1})
            for (const int rows : {4, 2, 1}) {
                if (!is_asked(fixed.vector, vector) || !is_asked(fixed.strip, strip) || !is_asked(fixed.rows, rows)) continue;
                DirectConvConfig c{.type = p.type == "bf16" ? Type::bf16 : Type::fp16,
                                   .taps_y = int(y.taps), .taps_x = int(x.taps), .stride_y = int(y.stride), .stride_x = int(x.stride),
                                   .dilation_y = int(y.dilation), .dilation_x = int(x.dilation), .group_channels = int(group_channels),
                                   .group_filters = int(group_filters), .vector = vector, .strip = strip, .rows = rows, .lanes = 1, .slots = 1, .load_bytes = 2};
                const bool whole = p.filters % vector == 0 && (group_filters % vector == 0 || vector % group_filters == 0);
                if (!whole) {
                    out.rejected.add(Reason::alignment);
                    continue;
                }
                c.load_bytes = load_bytes(p, c);
                if (registers_of(p, c).all() > most_registers || c.rows * c.strip * c.vector * c.taps_x * c.group_channels > most_multiplies) {
                    out.rejected.add(Reason::registers);
                    continue;
                }
                // As many filters beside each other as there are, or as weights of them find room; the rest of a CTA are other places.
                const std::int64_t vectors = p.filters / vector;
                c.lanes = int(std::min<std::int64_t>(vectors, 32));
                const double per_cta = room ? room->value / 2 : 1 << 16;
                while (c.lanes > 1 && c.shared_bytes() > per_cta) c.lanes /= 2;
                if (c.shared_bytes() > per_cta) {
                    out.rejected.add(Reason::shared);
                    continue;
                }
                c.slots = std::max(1, most_threads / c.lanes);
                if (filter_blocks(p, c) > most_grid_y) {
                    out.rejected.add(Reason::instruction);
                    fewest_columns = std::min(fewest_columns, filter_blocks(p, c));
                    continue;
                }
                found.push_back(timed(machine, p, {.config = c}));
            }
    if (found.empty()) {
        const auto asked = [](const std::optional<int>& number) { return number ? std::to_string(*number) : "any"; };
        if (fewest_columns < std::numeric_limits<std::int64_t>::max())
            refuse(Reason::instruction, fmt::format("direct kernels have a column of the grid for a CTA's filters, {} columns at most; {} filters take {}: convolve parts of them",
                                                    most_grid_y, p.filters, fewest_columns));
        else if (fixed.any())
            refuse(Reason::instruction, fmt::format("no direct kernel of this convolution has vector {}, strip {} and rows {}: vectors of 8, 4, 2, 1 filters in whole groups or "
                                                    "parts of one, strips of 8, 4, 2, 1 and 4, 2, 1 rows that fit {} registers; leave one off",
                                                    asked(fixed.vector), asked(fixed.strip), asked(fixed.rows), most_registers));
        else refuse(Reason::registers, fmt::format("{} taps of {} channels a group do not fit a thread's registers, whatever its places", p.image.taps(), group_channels));
        return out;
    }
    out.unknown = roof_time(direct_demand(p, found.front()), machine, {.sustained = true}).unknown;
    // Of equal times the one that asks less of L2, then the one with fewer instructions.
    struct Placed {
        std::tuple<double, double, double> by;
        DirectPlan plan;
    };
    std::vector<Placed> placed;
    for (DirectPlan& plan : found) {
        const Demand demand = direct_demand(p, plan);
        placed.push_back({{plan.time_us.value_or(0), *demand.l2_bytes, demand.issue_slots}, std::move(plan)});
    }
    std::ranges::stable_sort(placed, {}, &Placed::by);
    for (Placed& next : placed) {
        if (int(out.plans.size()) < top) out.plans.push_back(std::move(next.plan));
        else out.rejected.add(Reason::dominated);
    }
    return out;
}

Input DirectSteps::above(std::string name, std::optional<double> value, const char* unit) { return given(std::move(name), value.value_or(std::nan("")), unit, "an earlier step"); }

void DirectSteps::us(const char* name, const char* formula, std::vector<Input> inputs, std::optional<double> value, std::string limit) {
    add(name, formula, std::move(inputs), value.value_or(std::nan("")), "us", std::move(limit));
}

std::vector<Input> DirectSteps::bytes(std::string_view but) const {
    std::vector<Input> out;
    for (const TensorTraffic& tensor : tensor_demand(problem).tensors)
        if (tensor.tensor != but) out.push_back(of_problem(tensor.tensor, tensor.footprint_bytes, "B"));
    return out;
}

void DirectSteps::dram() {
    std::vector<Input> inputs = bytes();
    inputs.push_back(fact(machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth"));
    us("dram_us", "every tensor once", std::move(inputs), plan.dram_us);
}

std::vector<Input> DirectSteps::counts(const DirectWork::Counts& of, std::initializer_list<const char*> keys) const {
    std::vector<Input> out;
    for (const auto& [name, count] : of) out.push_back(ours(name, count));
    for (const char* key : keys) out.push_back(fact(key));
    return out;
}

void DirectSteps::units(const DirectWork& work, const char* start_formula, std::vector<Input> start, const char* start_limit) {
    const Demand demand = direct_demand(problem, plan);
    us("tensor_us", "MMAs x 4096 FLOP / (sm.count x rate x clock), in whole turns of CTAs and of warps", {ours("MMAs", work.instructions[0].second), fact("rate.mma_sync." + problem.type + ".fp32"), fact("sm.count"), fact("clock.boost")}, plan.tensor_us);
    us("shared_us", "wavefronts x 128 B / (sm.count x bandwidth x clock)", counts(work.wavefronts, {"shared.bandwidth", "sm.count", "clock.boost"}), plan.shared_us);
    us("issue_us", "instructions / (sm.count x sm.partitions x clock)", counts(work.instructions, {"sm.count", "sm.partitions", "clock.boost"}), plan.issue_us);
    us("l2_us", "pixels of all tiles + the result + what the epilogue reads", {ours("pixels", demand.filled_bytes, "B"), of_problem("the others", *demand.l2_bytes - demand.filled_bytes, "B"), fact("l2.bandwidth")}, plan.l2_us);
    dram();
    us("start_us", start_formula, std::move(start), plan.start_us, start_limit);
    us("time_us", "launch.gap_stream + start_us + the first tiles + the longest of (tensor beside the larger of shared and issue, by mma_sync.overlap_exponent), l2 and dram less the first tiles, and the tiles of a CTA's place one after the other",
       {fact("launch.gap_stream"), above("start_us", plan.start_us), ours("the first tiles", plan.fill_us.value_or(std::nan("")), "us"), fact("mma_sync.overlap_exponent"), above("tensor_us", plan.tensor_us),
        above("shared_us", plan.shared_us), above("issue_us", plan.issue_us), above("l2_us", plan.l2_us), above("dram_us", plan.dram_us)},
       plan.time_us, plan.bound ? fmt::format("limited by {}", name_of(*plan.bound)) : "");
}

namespace {

void add_steps(DirectSteps& steps, const DirectConvConfig& c) {
    const ConvProblem& p = steps.problem;
    const DirectPlan& plan = steps.plan;
    const DirectWork work = work_of(p, c);
    const double instructions = DirectWork::sum(work.instructions);
    const Registers registers = registers_of(p, c);
    const Demand demand = direct_demand(p, plan);
    steps.add("group", "channels / groups x filters / groups", {steps.of_problem("channels", double(p.image.channels)), steps.of_problem("filters", double(p.filters)), steps.of_problem("groups", double(p.groups))},
              double(c.group_channels) * c.group_filters, "", fmt::format("{} x {}: a matrix unit's smallest step is 16 deep and 8 wide", c.group_channels, c.group_filters));
    steps.add("vector", "filters of a thread: whole groups, or a part of one, of all that are tried those with the least time", {steps.of_problem("filters", double(p.filters)),
              steps.of_problem("filters of a group", c.group_filters), steps.ours("load", c.load_bytes, "B")}, c.vector, "", fmt::format("{} of {} B for the channels of a pixel", c.loads_a_pixel(), c.load_bytes));
    steps.add("pixels_loaded", "rows of pixels that some tap meets x pixels of a row that some tap meets   [M18]", {steps.ours("strip", c.strip), steps.ours("rows", c.rows), steps.ours("rows of pixels", met_y(c)), steps.ours("pixels of a row", met_x(c))},
              double(met_x(c)) * met_y(c), "", fmt::format("for {} places; L1 has what strips beside each other share", c.strip * c.rows));
    steps.add("registers", "sums + the larger of (rows of pixels + weights) and the epilogue's + 40", {steps.ours("sums", registers.sums), steps.ours("rows of pixels", registers.pixels),
              steps.ours("weights", registers.weights), steps.ours("the epilogue's", registers.epilogue)}, registers.all(), "", fmt::format("at most {} a thread; what ptxas computes ahead comes on top", most_registers));
    steps.add("shared_bytes", "taps x group channels x filters of a CTA x 4 B", {steps.of_problem("taps", c.taps()), steps.of_problem("group channels", c.group_channels), steps.ours("filters of a CTA", c.cta_filters())},
              c.shared_bytes(), "B", "weights in fp32");
    steps.add("instructions", "multiplications + unpacking + loads + weights + epilogue + stores + the rest", steps.counts(work.instructions, {}), instructions, "", "of a thread for its places, counted in the kernel's loops");
    steps.us("issue_us", "instructions x threads' pieces / (sm.count x sm.partitions x 32 x clock), in whole turns of CTAs", {steps.above("instructions", instructions, ""), steps.ours("threads' pieces", demand.issue_slots / instructions),
             steps.ours("CTAs' pieces", double(demand.tiles)), steps.fact("sm.count"), steps.fact("sm.partitions"), steps.fact("clock.boost")}, plan.issue_us);
    std::vector<Input> l2 = steps.bytes("w");  // once a CTA, and seldom again
    l2.push_back(steps.ours("rows of pixels for each row of places", std::max(1.0, double(met_y(c)) / (double(c.rows) * c.stride_y)), "")), l2.push_back(steps.fact("l2.bandwidth"));
    steps.us("l2_us", "the image as often as rows of pixels come for a row of places + the result + what the epilogue reads, once", std::move(l2), plan.l2_us);
    steps.dram();
    steps.us("time_us", "launch.gap_stream + direct.stretch (1 where it is unknown) x the longest of them", {steps.fact("launch.gap_stream"), steps.fact("direct.stretch"), steps.above("issue_us", plan.issue_us), steps.above("l2_us", plan.l2_us), steps.above("dram_us", plan.dram_us)},
             plan.time_us, plan.bound ? fmt::format("limited by {}", name_of(*plan.bound)) : "");
}

}  // namespace

std::vector<Step> direct_steps(const Machine& machine, const ConvProblem& p, const DirectPlan& plan) {
    DirectSteps steps(machine, p, plan);
    plan.visit([&](const auto& c) { add_steps(steps, c); });
    return steps.take();
}

}  // namespace rooftile
