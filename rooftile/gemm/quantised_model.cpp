#include "rooftile/gemm/quantised_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/quantised_error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

constexpr int warpgroup_warps = 4;
/// DRAM, L2 and unpacking overlap in part: t^n is the sum of the t^n. From three shapes on an H200 (docs/facts.md 380).
constexpr double overlap_exponent = 4;

std::int64_t stages_of_all(const GemmProblem& p, const GemmConfig& c) {
    return ceil_div(p.n, std::int64_t{c.tile_n}) * ceil_div(p.k, std::int64_t{c.tile_k});
}

double in_flight(const Sm90QuantisedConfig& c, double stages) {
    return (stages - 1) * c.packed_bytes() * c.ctas_per_sm;
}

Constraint warps_constraint(const GemmCandidate& c) {
    const int warps = warpgroup_warps * c.consumer_warpgroups,
              row_groups = c.tile_n / Sm90QuantisedConfig::mma_m;
    if (warps % row_groups != 0)
        return Constraint::at(
            Reason::instruction, row_groups, warps,
            "{available} warps for {needed} groups of 16 columns; take a multiple of these");
    if (const int spans = c.tile_k / Sm90QuantisedConfig::span_k, parts = warps / row_groups;
        spans % parts != 0)
        return Constraint::at(
            Reason::instruction, parts, spans,
            "{needed} warps share {available} times 64 of K; take a longer tile_k or fewer warps");
    return Constraint::none();
}

Constraint tile_constraint(const GemmCandidate& c, const GemmProblem& p) {
    constexpr int step = Sm90QuantisedConfig::mma_n;
    if (c.tile_m % step != 0 || c.tile_m > Sm90QuantisedConfig::most_rows || c.tile_m < p.m)
        return Constraint::at(
            Reason::instruction, double(ceil_div(p.m, std::int64_t{step}) * step), c.tile_m,
            "tile_m = {available}: a CTA has all rows of A, in steps of 8 up to 64; take {needed}");
    if (c.tile_n % QuantisedLayout::block_rows != 0 || c.tile_n > 256)
        return Constraint::at(
            Reason::instruction, QuantisedLayout::block_rows, c.tile_n,
            "tile_n = {available}: weights are packed in {needed} rows; take 64, 128 or 256");
    if (c.tile_k % QuantisedLayout::block_k != 0)
        return Constraint::at(Reason::instruction, QuantisedLayout::block_k, c.tile_k,
                              "tile_k = {available}: weights are packed in {needed} of K; take a multiple");
    return warps_constraint(c);
}

}  // namespace

double quantised_load_cycles(const GemmHardware& hw) { return hw.load_latency + max_known(hw.dram_latency - hw.l2_latency, 0); }

int quantised_stages_enough(const GemmHardware& hw, double stage_weights) {
    constexpr double slack = 1.5;
    const double stages = whole_up(slack * hw.dram_share * quantised_load_cycles(hw) / stage_weights) + 1;
    return std::isnan(stages) ? max_stages : std::max(3, int(std::min(stages, double(max_stages))));
}

Sm90QuantisedConfig quantised_config(const GemmProblem& p, const GemmConfig& c) {
    return {.tile_m = c.tile_m,
            .tile_n = c.tile_n,
            .tile_k = c.tile_k,
            .stages = c.stages,
            .consumer_warps = warpgroup_warps * c.consumer_warpgroups,
            .ctas_per_sm = c.ctas_per_sm,
            .type = p.b_type,
            .layout = p.quantised,
            .ragged_k = p.k % Sm90QuantisedConfig::span_k != 0,
            .epilogue_registers = p.epilogue ? p.epilogue->registers(false, false) : 0};
}

Constraint QuantisedFamily::examine(const GemmHardware& hw, const GemmProblem& p, GemmCandidate& c) const {
    if (const Constraint constraint = tile_constraint(c, p)) return constraint;
    if (c.grid_split_k != 1)
        return Constraint::at(Reason::instruction, c.grid_split_k, 1,
                              "{needed} pieces of K; CTAs share K out evenly, {available} is all there is");
    const Sm90QuantisedConfig config = quantised_config(p, c);
    c.warp_m = c.tile_m, c.warp_n = Sm90QuantisedConfig::mma_m;
    c.set_work(hw, p);
    c.exchange = 0;
    c.threads = config.threads();
    c.accumulators = config.accumulator_registers();
    c.registers = config.registers();
    c.registers_limit = launch_registers(hw, c.threads, c.ctas_per_sm);
    c.stage_bytes = config.stage_bytes();
    c.stage_overhead = 2 * 8;
    c.reserved_bytes = config.reserved_bytes();
    c.shared_limit = shared_limit(hw, c.ctas_per_sm);
    c.stages_enough = quantised_stages_enough(hw, double(config.packed_bytes()) * c.ctas_per_sm);
    return plain_constraints(hw, c);
}

void QuantisedFamily::enumerate(const GemmHardware& hw, const GemmProblem& p, const GemmRequest& request,
                                GemmVisitor& visitor) const {
    constexpr int step = Sm90QuantisedConfig::mma_n;
    const int tile_ms[] = {int(
        std::min<std::int64_t>(ceil_div(p.m, std::int64_t{step}) * step, Sm90QuantisedConfig::most_rows))};
    static constexpr int narrow[] = {64}, wide[] = {128}, both[] = {64, 128}, tile_ks[] = {256, 512}, all_warpgroups[] = {4, 2, 1}, ctas[] = {2, 1};
    // Zero points that are numbers take sums of their own, for which many rows leave room only where few warps share the registers.
    const std::span<const int> warpgroups = p.quantised.zeros == ZeroType::real ? std::span(all_warpgroups) : std::span(all_warpgroups).first(2);
    const auto among = [&](std::span<const int> tile_ns, std::span<const int> of_k, std::span<const int> of_warps) {
        enumerate_plain_tiles(*this, {tile_ms, tile_ns, of_k, of_warps, ctas}, hw, p, request, visitor);
    };
    if (request.tile_n || request.consumer_warpgroups || request.exhaustive) return among(both, tile_ks, warpgroups);
    // A warp that has less than four spans of 64 of K by 16 columns of a stage waits for its products (docs/facts.md 432).
    const std::span of_256 = std::span(tile_ks).first(1), of_512 = std::span(tile_ks).last(1);
    GemmConfig two_stages;
    two_stages.tile_m = tile_ms[0], two_stages.tile_n = narrow[0], two_stages.tile_k = of_512[0], two_stages.stages = 2, two_stages.consumer_warpgroups = 2;
    const bool fits = !(quantised_config(p, two_stages).shared_bytes() > hw.shared_per_cta);
    among(narrow, fits ? of_512 : of_256, warpgroups.subspan(1));
    // By more rows 128 columns take a fifth to a third longer than these numbers say, and 64 less (docs/facts.md 433).
    constexpr int most_rows_by_wide = 16;
    if (tile_ms[0] > most_rows_by_wide) return;
    among(wide, of_256, warpgroups.subspan(1));
    among(wide, of_512, warpgroups);
}

std::int64_t quantised_ctas(const GemmHardware& hw, const GemmProblem& p, const GemmConfig& c) {
    if (takes_many_rows(c)) return many_quantised_ctas(hw, p, c);
    if (std::isnan(hw.sms)) return 0;
    return std::min(std::int64_t(hw.sms) * c.ctas_per_sm, stages_of_all(p, c));
}

QuantisedWorkspace quantised_workspace(std::int64_t n, const GemmConfig& c, std::int64_t ctas) {
    if (takes_many_rows(c)) return many_quantised_workspace(c, ctas);
    constexpr std::int64_t word = 4, line = 128;
    const std::int64_t tiles = ceil_div(n, std::int64_t{c.tile_n});
    return {ceil_div(tiles * word, line) * line, 2 * ctas * c.tile_m * c.tile_n * word};
}

QuantisedSeconds quantised_seconds(const GemmHardware& hw, const GemmConfig& choices, const GemmProblem& p, double stages, double clock, double dram) {
    const Sm90QuantisedConfig c = quantised_config(p, choices);
    const double ctas = min_known(hw.sms * c.ctas_per_sm, double(stages_of_all(p, choices)));
    QuantisedSeconds t{};
    t.units_a_cta = whole_up(double(stages_of_all(p, choices)) / ctas);
    const double an_sm = min_known(double(c.ctas_per_sm), max_known(1, ctas / hw.sms)), latency = quantised_load_cycles(hw) / hw.clock_hz;
    // Every warp reads all rows of its part of A, and its own weights.
    constexpr double lanes_of_warp = 32, fragment_bytes = 512;
    const double slots = double(c.consumer_warps) * c.warp_instructions() * lanes_of_warp / hw.issue_lanes;
    const double tensor = 2.0 * c.products() * c.tile_m * c.tile_n * c.tile_k / hw.flops_per_cycle;
    const double shared = (double(c.consumer_warps) * c.own_spans() * c.row_tiles() * 2 * fragment_bytes + c.packed_bytes() + c.layout.looked_up_bytes(c.tile_n, c.tile_k)) / hw.shared_bandwidth;
    t.busiest_cycles = max_known(slots, max_known(tensor, shared));
    // A warp loads, unpacks and multiplies one after the other, and there are few warps: half of what is shorter shows.
    t.stage_cycles = Sm90QuantisedConfig::hand_over_cycles + t.busiest_cycles + (slots + tensor + shared - t.busiest_cycles) / 2;
    const double in_ring = (latency * clock + t.stage_cycles) / stages;
    t.launch = max_known(hw.launch_seconds, 0), t.packing = max_known(hw.packing_seconds, 0);
    t.fill = latency;
    t.dram = dram / min_known(hw.dram_bandwidth, hw.sms * in_flight(c, stages) / latency);
    t.unpack = t.units_a_cta * max_known(an_sm * t.busiest_cycles, max_known(t.stage_cycles, in_ring)) / clock;
    t.l2 = t.units_a_cta * an_sm * (c.packed_bytes() + c.activation_bytes()) / min_known(hw.l2_share, hw.l2_port) / hw.clock_hz;
    // A CTA's tiles one after the other, and nothing is multiplied meanwhile.
    const double tiles = whole_up(t.units_a_cta * choices.tile_k / double(p.k));
    if (p.epilogue) t.express = tiles * (double(p.m) * choices.tile_n * p.epilogue->issue / hw.issue_lanes + hw.l2_latency) / clock;
    t.combine = 3 * hw.l2_latency / hw.clock_hz + 2 * Sm90QuantisedConfig::hand_over_cycles / clock + (max_known(hw.quantised_end, 0) + c.tile_m * (c.tile_n / 64.0) * max_known(hw.quantised_row, 0)) / clock;
    return t;
}

GemmTime quantised_time(const GemmHardware& hw, const GemmConfig& config, const GemmProblem& p, double stages, double clock, double dram) {
    const double bytes = std::isnan(dram) ? p.compulsory_bytes().value : dram;
    const QuantisedSeconds t =
        takes_many_rows(config) ? many_quantised_seconds(hw, config, p, stages, clock, bytes) : quantised_seconds(hw, config, p, stages, clock, bytes);
    GemmTime out{};
    Pace longest{t.dram, Bound::dram};
    longest.beside(t.unpack, t.busiest);
    longest.beside(t.l2, Bound::l2);
    out.bound = longest.bound;
    if (t.rest() > longest.time) out.bound = t.launch > t.fill + t.combine ? Bound::launch : Bound::latency;
    const auto power = [](double x) { return std::pow(x, overlap_exponent); };
    out.seconds = t.rest() + std::pow(power(t.dram) + power(t.unpack) + power(t.l2), 1 / overlap_exponent);
    out.least = out.seconds;
    out.step = t.stage_cycles, out.tile_cycles = t.stage_cycles * double(ceil_div(p.k, std::int64_t{config.tile_k}));
    out.clock_hz = clock;
    if (std::isnan(dram)) out.seconds = unknown_number;
    return out;
}

void add_packed_steps(Derivation& steps, const GemmHardware& hw, const GemmProblem& p) {
    const auto given = [](std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    };
    const std::int64_t columns = p.n * p.b_matrices_read();
    const Input n = given("n", double(columns), "", p.groups ? "the columns of all groups that have rows" : "problem"),
                k = given("k", double(p.k), "", "problem");
    const double packed = double(p.quantised.bytes(columns, p.k));
    steps.add(gemm_formula::packed_bytes,
              {n, k, given("block", p.quantised.block_bytes(), "B", "the layout"),
               given("header", QuantisedLayout::header_bytes, "B", "the layout")},
              packed, "all of W with its scales and zero points, read once");
    steps.add(gemm_formula::bits_a_weight, {given("packed_bytes", packed, "B", "an earlier step"), n, k}, p.b_element_bytes() * 8,
              fmt::format("{} of them the weight", p.quantised.bits()));
    const std::array held = weights_held(p);
    const double of_16_bits = 2 * double(columns) * double(p.k);
    std::vector<Input> bytes = {given("16 bits", of_16_bits, "B", "problem")}, errors;
    for (const WeightsHeld& each : held)
        bytes.push_back(given(each.bits, each.bytes, "B", "the layout")),
            errors.push_back(given(each.bits, each.error, "", "normal weights"));
    const auto us = [&](double of) { return of / hw.dram_bandwidth * 1e6; };
    steps.add(gemm_formula::bits_compared, std::move(bytes), packed,
              unless_unknown(hw.dram_bandwidth, "from DRAM in {:.4g}, {:.4g}, {:.4g} and {:.4g} us", us(of_16_bits), us(held[0].bytes),
                             us(held[1].bytes), us(held[2].bytes)));
    steps.add(gemm_formula::quantised_error, std::move(errors), rounding_error(p.quantised, p.k),
              "of these weights, where they are normal and rounded to the nearest");
}

void add_quantised_time(Derivation& steps, const GemmProblem& p, const QuantisedSeconds& t, const Kept& kept) {
    const auto given = [](std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    };
    steps.add(gemm_formula::quantised_time_us,
              {steps.fact("launch.gap_stream"), given("packing", t.packing * 1e6, "us", p.narrow ? "A is widened" : "no launch in front"), given("fill", t.fill * 1e6, "us", "this plan"),
               given("dram_us", t.dram * 1e6, "us", "an earlier step"), given("unpack_us", t.unpack * 1e6, "us", "an earlier step"),
               given("l2_us", t.l2 * 1e6, "us", "an earlier step"), given("combine", t.combine * 1e6, "us", "this plan"),
               given("express", t.express * 1e6, "us", p.epilogue ? "the epilogue's slots and loads, of a CTA's tiles" : "no epilogue")},
              kept.time.seconds * 1e6, std::string(name_of(kept.time.bound)));
}

std::vector<std::string> quantised_notes(const GemmProblem& p, const GemmHardware& hw) {
    std::vector<std::string> out = weight_notes(p, hw);
    if (!p.groups) out.insert(out.begin(), "weights are read before the kernel before this one has ended: it must not write them");
    return out;
}

std::vector<std::string> weight_notes(const GemmProblem& p, const GemmHardware& hw) {
    std::vector<std::string> out;
    std::string held;
    for (const WeightsHeld& each : weights_held(p)) {
        held += fmt::format("{}{} {:.2g}", held.empty() ? "" : "; ", each.bits, each.error);
        if (!std::isnan(hw.dram_bandwidth)) held += fmt::format(" ({:.3g} us from DRAM)", each.bytes / hw.dram_bandwidth * 1e6);
    }
    out.push_back(fmt::format("normal weights rounded to the nearest err by {:.2g} of their variance, mean squared; in other bits: {}",
                              rounding_error(p.quantised, p.k), held));
    if (p.quantised.group == 0) out.emplace_back("a row's scale is stored with each 128 of K");
    return out;
}

std::optional<Refusal> refuse_rows_of_quantised(const GemmProblem& p) {
    constexpr int step = copy_elements;
    if (p.a_major != Major::k)
        return Refusal{Reason::instruction, "A is m-major: packed weights meet rows along K so far; give it k-major", 1, 0};
    for (const auto& [name, value] : {std::pair{"k", p.k}, {"lda", p.lda}, {"a_offset", p.a_offset}})
        if (value % step != 0)
            return Refusal{Reason::alignment,
                           fmt::format("{} = {}: TMA takes rows of A in multiples of {} elements (16 B); pad it to {}", name, value, step,
                                       ceil_div(value, std::int64_t{step}) * step),
                           step, double(value % step)};
    return std::nullopt;
}

std::vector<Step> quantised_derivation(const GemmContext& context, const Kept& kept) {
    if (takes_many_rows(kept.candidate)) return many_quantised_derivation(context, kept);
    const GemmProblem& p = context.problem;
    const GemmHardware& hw = context.hw;
    const GemmCandidate& c = kept.candidate;
    const Sm90QuantisedConfig config = quantised_config(p, c);
    const QuantisedSeconds t = quantised_seconds(hw, c, p, c.stages, kept.time.clock_hz, kept.dram);
    const auto given = [](std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    };
    const Input n = given("n", double(p.n), "", "problem"), k = given("k", double(p.k), "", "problem");
    const Input ctas = given("ctas_per_sm", c.ctas_per_sm, "", "this plan");
    Derivation steps(*context.machine);
    add_packed_steps(steps, hw, p);
    steps.add(gemm_formula::registers_per_thread,
              {given("accumulator_registers", c.accumulators, "registers", "tile_m / 2 a thread"),
               given("rest", c.registers - c.accumulators, "registers",
                     "sums of a group, fragments of A and W, addresses; tried with ptxas"),
               given("threads", c.threads, "", "this plan"), ctas},
              c.registers, unless_unknown(c.registers_limit, "{} <= {}", c.registers, c.registers_limit));
    steps.add(gemm_formula::registers_limit,
              {steps.fact("sm.registers"), given("threads", c.threads, "", "this plan"), ctas,
               steps.fact("sm.register_allocation_unit"), steps.fact("sm.max_registers_per_thread")},
              c.registers_limit, "registers an SM / threads on it, at most what an instruction can name");
    steps.add(gemm_formula::stages_max,
              {given("shared_limit", c.shared_limit, "B", context.machine->id),
               given("reserved", c.reserved_bytes, "B", p.quantised.is_table() ? "sums on their way out, and the pairs of the table" : "sums on their way out"),
               given("stage_bytes", c.stage_bytes, "B", "packed weights and rows of A"),
               given("barriers", c.stage_overhead, "B", "full and empty mbarrier")},
              c.known_stages_max() ? double(*c.known_stages_max()) : unknown_number,
              "what shared memory holds of them");
    steps.add(gemm_formula::quantised_stages,
              {given("share", hw.dram_share, "B/clk/SM", "dram.sustained_read or dram.bandwidth, of one SM"),
               given("latency", quantised_load_cycles(hw), "cycles", "tma.latency_loaded_l2 + dram.latency - l2.latency"),
               given("stage_weights", config.packed_bytes(), "B", "the layout"), ctas},
              c.stages_enough, "more would wait in L2");
    steps.add(gemm_formula::quantised_in_flight,
              {given("stages", c.stages, "", "this plan"),
               given("stage_weights", config.packed_bytes(), "B", "the layout"), ctas},
              in_flight(config, c.stages),
              unless_unknown(hw.dram_share * hw.dram_latency,
                             "the SM's share of DRAM takes {:.4g} B, its rate times the latency",
                             hw.dram_share * hw.dram_latency));
    steps.add(
        gemm_formula::quantised_dram_us,
        {given("dram_bytes", kept.dram, "B", "each once"),
         steps.fact(context.machine->find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth"),
         steps.fact("sm.count"),
         given("bytes_in_flight", in_flight(config, c.stages), "B", "an earlier step"),
         given("latency", quantised_load_cycles(hw) / hw.clock_hz * 1e6, "us", "tma.latency_loaded_l2 + dram.latency - l2.latency")},
        t.dram * 1e6, "what DRAM takes for every byte once");
    steps.add(gemm_formula::quantised_units,
              {n, k, given("tile_n", c.tile_n, "", "this plan"), given("tile_k", c.tile_k, "", "this plan"),
               given("ctas", double(quantised_ctas(hw, p, c)), "", "this plan")},
              t.units_a_cta, "even shares of all stages, one after the other");
    steps.add(gemm_formula::quantised_issue_us,
              {given("units_a_cta", t.units_a_cta, "", "an earlier step"), ctas,
               given("busiest", t.busiest_cycles, "cycles", "of a stage: its issue slots, matrix units or shared memory"),
               given("chain", t.stage_cycles, "cycles", "hand-over, busiest, half of the others"), given("clock", kept.time.clock_hz, "Hz", "this plan"),
               given("stages", c.stages, "", "this plan"), given("latency", quantised_load_cycles(hw) / hw.clock_hz * 1e6, "us", "an earlier step")},
              t.unpack * 1e6, "unpacking and products of all warps");
    steps.add(gemm_formula::quantised_l2_us,
              {given("units_a_cta", t.units_a_cta, "", "an earlier step"), ctas,
               given("stage_bytes", config.packed_bytes() + config.activation_bytes(), "B", "this plan"),
               steps.fact("l2.bandwidth"), steps.fact("l2.port")},
              t.l2 * 1e6, "rows of A again for each tile");
    explain_in_front(context, steps);
    add_quantised_time(steps, p, t, kept);
    return steps.take();
}

}  // namespace rooftile
