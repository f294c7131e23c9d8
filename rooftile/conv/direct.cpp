#include "rooftile/conv/direct.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "rooftile/conv/stem.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/report/number.hpp"

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

std::int64_t ceil_of(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

/// The widest load that divides a thread's channels and every pixel's beginning.
int load_bytes(const ConvProblem& p, const DirectConvConfig& c) {
    int bytes = 16;
    while (bytes > 2 && ((2 * c.thread_channels()) % bytes != 0 || (2 * p.image.channels) % bytes != 0)) bytes /= 2;
    return bytes;
}

std::int64_t strips_of(const ConvProblem& p, const DirectConvConfig& c) {
    return p.image.images * ceil_of(p.image.axes[1].places(), c.rows) * ceil_of(p.image.axes[0].places(), c.strip);
}
std::int64_t filter_blocks(const ConvProblem& p, const DirectConvConfig& c) { return ceil_of(p.filters, c.cta_filters()); }

}  // namespace

bool is_direct(const ConvProblem& p) { return p.groups > 1 || p.image.channels % 8 != 0; }

DirectWork work_of(const DirectConvConfig& c, const SharedEpilogue& epilogue) {
    DirectWork w;
    const int rows = met_y(c), pixels = met_x(c);
    w.multiplies = double(c.rows) * c.strip * c.vector * c.taps() * c.group_channels;
    w.unpacked = double(rows) * pixels * c.thread_channels();
    // With the address and the bounds of each, and the zeros where it is outside; of channels loaded one by one two make a word.
    w.loads = double(rows) * (pixels * (c.loads_a_pixel() * (c.load_bytes == 2 && c.thread_channels() > 1 ? 2 : 1) + 5) + 20 + 2 * c.rows);
    w.weight_loads = double(c.rows) * c.taps() * c.group_channels * c.vector / c.together();
    if (epilogue) {
        // Neighbours are finished in pairs, one alone as a pair of which half is thrown away; an operand's load and its bounds are one of each.
        const double pairs = double(c.rows) * c.strip * std::max(1, c.vector / 2);
        w.epilogue = pairs * (2 * epilogue->issue + 2.0 * epilogue->pair_registers(c.vector == 1, false));
    }
    w.stores = double(c.rows) * c.strip * (c.vector + 8);  // rounding, its sums set to zero, the address and its bounds
    w.rest = 60;
    return w;
}

Demand tensor_demand(const ConvProblem& p) {
    Demand out;
    const double image = double(p.image.elements_read()) * ConvProblem::element_bytes;
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

Demand direct_demand(const ConvProblem& p, const DirectPlan& plan) {
    if (plan.stem) return stem_demand(p, plan);
    const DirectConvConfig& c = plan.config;
    Demand out = tensor_demand(p);
    const double vectors = double(ceil_of(p.filters, c.vector)) * double(strips_of(p, c)), image = out.tensors[0].footprint_bytes;
    out.issue_slots = vectors * work_of(c, p.direct_epilogue).all();
    // Rows that strips one below the other share come again; what is beside each other L1 has.
    const double again = double(met_y(c)) / (double(c.rows) * c.stride_y);
    out.l2_bytes = image * std::max(1.0, again) + p.result_bytes() + p.operand_bytes;
    out.loaded_bytes = *out.l2_bytes;
    out.tiles = filter_blocks(p, c) * ceil_of(strips_of(p, c), c.slots);
    return out;
}

DirectPlan timed(const Machine& machine, const ConvProblem& p, DirectPlan plan) {
    if (plan.stem) return stem_timed(machine, p, std::move(plan));
    const Demand demand = direct_demand(p, plan);
    const RoofTime roof = roof_time(demand, machine, {.sustained = true});
    plan.time_us.reset(), plan.issue_us.reset(), plan.l2_us.reset(), plan.dram_us.reset(), plan.bound = roof.bound();
    const auto gap = machine.number<Seconds>("launch.gap_stream");
    const auto sms = machine.count("sm.count");
    if (!roof.unknown.empty() || !gap || !sms) return plan;
    double longest = 0;
    for (const UnitTime& unit : roof.units) {
        double seconds = unit.seconds;
        if (unit.bound == Bound::issue) {
            // SMs take turns of whole CTAs: the last turn may have fewer.
            const double turns = double(demand.tiles) / *sms;
            seconds *= turns >= 1 ? std::ceil(turns) / turns : 1;
            plan.issue_us = seconds * 1e6;
        }
        if (unit.bound == Bound::l2) plan.l2_us = seconds * 1e6;
        if (unit.bound == Bound::dram) plan.dram_us = seconds * 1e6;
        if (unit.bound == Bound::launch) continue;
        if (seconds > longest) longest = seconds, plan.bound = unit.bound;
    }
    plan.time_us = (gap->value + longest) * 1e6;
    return plan;
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
                DirectPlan plan{.config = c};
                plan.strips = strips_of(p, c);
                if (filter_blocks(p, c) > most_grid_y) {
                    out.rejected.add(Reason::instruction);
                    fewest_columns = std::min(fewest_columns, filter_blocks(p, c));
                    continue;
                }
                found.push_back(timed(machine, p, plan));
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

std::vector<Step> direct_steps(const Machine& machine, const ConvProblem& p, const DirectPlan& plan) {
    if (plan.stem) return stem_steps(machine, p, plan);
    Derivation steps(machine);
    const DirectConvConfig& c = plan.config;
    const DirectWork work = work_of(c, p.direct_epilogue);
    const Registers registers = registers_of(p, c);
    const Demand demand = direct_demand(p, plan);
    const auto ours = [](std::string name, double value, const char* unit = "") { return Derivation::given(std::move(name), value, unit, "the plan"); };
    const auto of_problem = [](std::string name, double value, const char* unit = "") { return Derivation::given(std::move(name), value, unit, "the problem"); };
    const auto above = [](std::string name, std::optional<double> value, const char* unit) {
        return Derivation::given(std::move(name), value.value_or(std::nan("")), unit, "an earlier step");
    };
    std::vector<Input> bytes;
    for (const TensorTraffic& tensor : demand.tensors) bytes.push_back(of_problem(tensor.tensor, tensor.footprint_bytes, "B"));
    steps.add("group", "channels / groups x filters / groups", {of_problem("channels", double(p.image.channels)), of_problem("filters", double(p.filters)), of_problem("groups", double(p.groups))},
              double(c.group_channels) * c.group_filters, "", fmt::format("{} x {}: a matrix unit's smallest step is 16 deep and 8 wide", c.group_channels, c.group_filters));
    steps.add("vector", "filters of a thread: whole groups, or a part of one, of all that are tried those with the least time", {of_problem("filters", double(p.filters)),
              of_problem("filters of a group", c.group_filters), ours("load", c.load_bytes, "B")}, c.vector, "", fmt::format("{} of {} B for the channels of a pixel", c.loads_a_pixel(), c.load_bytes));
    steps.add("pixels_loaded", "rows of pixels that some tap meets x pixels of a row that some tap meets   [M18]", {ours("strip", c.strip), ours("rows", c.rows), ours("rows of pixels", met_y(c)), ours("pixels of a row", met_x(c))},
              double(met_x(c)) * met_y(c), "", fmt::format("for {} places; L1 has what strips beside each other share", c.strip * c.rows));
    steps.add("registers", "sums + the larger of (rows of pixels + weights) and the epilogue's + 40", {ours("sums", registers.sums), ours("rows of pixels", registers.pixels),
              ours("weights", registers.weights), ours("the epilogue's", registers.epilogue)}, registers.all(), "", fmt::format("at most {} a thread; what ptxas computes ahead comes on top", most_registers));
    steps.add("shared_bytes", "taps x group channels x filters of a CTA x 4 B", {of_problem("taps", c.taps()), of_problem("group channels", c.group_channels), ours("filters of a CTA", c.cta_filters())},
              c.shared_bytes(), "B", "weights in fp32");
    steps.add("instructions", "multiplications + unpacking + loads + weights + epilogue + stores + 60", {ours("multiplications", work.multiplies), ours("unpacking", work.unpacked),
              ours("loads", work.loads), ours("weights", work.weight_loads), ours("epilogue", work.epilogue), ours("stores", work.stores)}, work.all(), "", "of a thread for its places, counted in the kernel's loops");
    steps.add("issue_us", "instructions x threads' pieces / (sm.count x sm.partitions x 32 x clock), in whole turns of CTAs", {above("instructions", work.all(), ""), ours("threads' pieces", demand.issue_slots / work.all()),
              ours("CTAs' pieces", double(demand.tiles)), steps.fact("sm.count"), steps.fact("sm.partitions"), steps.fact("clock.boost")}, plan.issue_us.value_or(std::nan("")), "us", "");
    const double again = std::max(1.0, double(met_y(c)) / (double(c.rows) * c.stride_y));
    std::vector<Input> l2 = bytes;
    std::erase_if(l2, [](const Input& input) { return input.name == "w"; });  // once a CTA, and seldom again
    l2.push_back(ours("rows of pixels for each row of places", again)), l2.push_back(steps.fact("l2.bandwidth"));
    steps.add("l2_us", "the image as often as rows of pixels come for a row of places + the result + what the epilogue reads, once", std::move(l2), plan.l2_us.value_or(std::nan("")), "us", "");
    bytes.push_back(steps.fact(machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth"));
    steps.add("dram_us", "every tensor once", std::move(bytes), plan.dram_us.value_or(std::nan("")), "us", "");
    steps.add("time_us", "launch.gap_stream + the longest of them", {steps.fact("launch.gap_stream"), above("issue_us", plan.issue_us, "us"), above("l2_us", plan.l2_us, "us"), above("dram_us", plan.dram_us, "us")},
              plan.time_us.value_or(std::nan("")), "us", plan.bound ? fmt::format("limited by {}", name_of(*plan.bound)) : "");
    return steps.take();
}

}  // namespace rooftile
