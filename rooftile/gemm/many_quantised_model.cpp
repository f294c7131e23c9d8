#include "rooftile/gemm/many_quantised_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/tiled/pipeline.hpp"
#include "rooftile/tiled/registers.hpp"

namespace rooftile {

const GemmKernel& sm90_many_quantised();

namespace {

/// The producer's one thread, and the warps beside it that sum rows of A.
int quantised_producer(const GemmProblem& p) { return p.quantised.zeros == ZeroType::real ? 40 : tight_producer; }

std::int64_t quantised_tiles(const GemmProblem& p, const GemmConfig& c) {
    const std::int64_t rows = p.groups ? p.groups->tiles(c.tile_m) : ceil_div(p.m, std::int64_t{c.tile_m});
    return rows * ceil_div(p.n, std::int64_t{c.tile_n});
}
std::int64_t quantised_units(const GemmProblem& p) { return ceil_div(p.k, std::int64_t{Sm90ManyQuantisedConfig::tile_k}); }

double weights_in_flight(const Sm90ManyQuantisedConfig& c, double stages) { return (stages - 1) * c.packed_bytes(); }

Constraint many_tile_constraint(const GemmCandidate& c, const GemmProblem& p) {
    const int most = many_quantised_config(p, c, 0, 0).scales_last() ? 256 : 160;
    if (c.tile_m % Sm90ManyQuantisedConfig::row_step != 0 || c.tile_m > most)
        return Constraint::at(Reason::instruction, most, c.tile_m, "tile_m = {available}: rows of A go in steps of 32 up to {needed}");
    if (c.tile_n != Sm90ManyQuantisedConfig::wgmma_m * c.consumer_warpgroups)
        return Constraint::at(Reason::instruction, Sm90ManyQuantisedConfig::wgmma_m * c.consumer_warpgroups, c.tile_n,
                              "tile_n = {available}: each consumer warpgroup has 64 columns; take {needed}, or other warpgroups");
    if (c.tile_k != Sm90ManyQuantisedConfig::tile_k)
        return Constraint::at(Reason::instruction, Sm90ManyQuantisedConfig::tile_k, c.tile_k,
                              "tile_k = {available}: weights are packed in {needed} of K");
    if (c.ctas_per_sm != 1)
        return Constraint::at(Reason::instruction, c.ctas_per_sm, 1,
                              "{needed} CTAs an SM; this kernel has one, whose warpgroups share its registers");
    if (c.grid_split_k != 1)
        return Constraint::at(Reason::instruction, c.grid_split_k, 1,
                              "{needed} pieces of K; CTAs share K out evenly, {available} is all there is");
    return Constraint::none();
}

}  // namespace

bool takes_many_rows(const GemmConfig& config) { return config.kernel == &sm90_many_quantised(); }

Sm90ManyQuantisedConfig many_quantised_config(const GemmProblem& p, const GemmConfig& c, int producer, int consumer) {
    return {.tile_m = c.tile_m,
            .tile_n = c.tile_n,
            .stages = c.stages,
            .producer_registers = producer,
            .consumer_registers = consumer,
            .type = p.b_type,
            .layout = p.quantised,
            .ragged_k = p.k % Sm90ManyQuantisedConfig::span_k != 0,
            .group_slots = p.groups ? group_slots(p.groups->count()) : 0,
            .epilogue_registers = p.epilogue ? p.epilogue->registers(false, false) : 0};
}

Sm90ManyQuantisedConfig many_quantised_config(const GemmPlan& plan) {
    const auto of = [](const std::optional<std::int64_t>& registers) { return int(registers.value_or(0)); };
    return many_quantised_config(plan.problem, plan.config, of(plan.resources.producer_registers), of(plan.resources.consumer_registers));
}

int quantised_band(const GemmConfig& config, std::int64_t m) {
    const std::int64_t rows = ceil_div(m, std::int64_t{config.tile_m});
    if (config.order == Order::grouped) return int(std::min(std::int64_t{config.group}, rows));
    return config.order == Order::column ? int(rows) : 1;
}

Constraint ManyQuantisedFamily::examine(const GemmHardware& hw, const GemmProblem& p, GemmCandidate& c) const {
    c.kernel = &sm90_many_quantised();
    if (const Constraint constraint = many_tile_constraint(c, p)) return constraint;
    const RegisterSplit split =
        split_registers(hw.registers_per_sm, known_or(hw.registers_per_thread, 255), c.consumer_warpgroups, 1, quantised_producer(p));
    const Sm90ManyQuantisedConfig config = many_quantised_config(p, c, split.producer, split.consumer);
    c.warp_m = c.tile_m, c.warp_n = Sm90ManyQuantisedConfig::wgmma_m;
    c.set_work(hw, p);
    c.exchange = 0;
    c.threads = config.threads();
    c.accumulators = config.accumulator_registers();
    c.registers = config.registers();
    c.producer_registers = split.producer, c.consumer_registers = split.consumer;
    c.registers_limit = split.launch < 0 ? unknown_number : split.consumer > 0 ? split.consumer : split.launch;
    c.stage_bytes = config.stage_bytes();
    c.stage_overhead = config.barriers() * 8;
    c.reserved_bytes = config.reserved_bytes();
    c.shared_limit = shared_limit(hw, 1);
    c.stages_enough = quantised_stages_enough(hw, config.packed_bytes());
    return plain_constraints(hw, c);
}

void ManyQuantisedFamily::enumerate(const GemmHardware& hw, const GemmProblem& p, const GemmRequest& request, GemmVisitor& visitor) const {
    static constexpr int sides[] = {32, 64, 96, 128, 160, 192, 224, 256}, two[] = {2}, three[] = {3}, both[] = {2, 3},
                         tile_ks[] = {Sm90ManyQuantisedConfig::tile_k}, one[] = {1};
    static constexpr int of_two[] = {128}, of_three[] = {192}, of_both[] = {128, 192};
    // Taller than A are only rows of nothing; where each group of K has sums of its own, 160 rows are as many as registers hold.
    const bool long_sums = p.quantised.group == 0 && p.quantised.zeros != ZeroType::real;
    const std::size_t held = long_sums ? std::size(sides) : 5;
    const std::size_t count = std::min(held, std::size_t(ceil_div(p.groups ? p.groups->longest() : p.m, std::int64_t{Sm90ManyQuantisedConfig::row_step})));
    const auto among = [&](std::span<const int> tile_ns, std::span<const int> warpgroups) {
        enumerate_plain_tiles(*this, {std::span(sides).first(count), tile_ns, tile_ks, warpgroups, one}, hw, p, request, visitor);
    };
    if (request.tile_n || request.consumer_warpgroups) return among(of_both, both);
    among(of_two, two);
    among(of_three, three);
}

std::int64_t many_quantised_ctas(const GemmHardware& hw, const GemmProblem& p, const GemmConfig& c) {
    if (std::isnan(hw.sms)) return 0;
    return std::min(std::int64_t(hw.sms), quantised_tiles(p, c) * quantised_units(p));
}

// Tiles that are cut are fewer than CTAs, and the first ones: as many counters do for any number of rows, so that sums never lie where a
// launch of more rows counts.
QuantisedWorkspace many_quantised_workspace(const GemmConfig& c, std::int64_t ctas) {
    constexpr std::int64_t word = 4, line = 128;
    return {ceil_div(ctas * c.consumer_warpgroups * word, line) * line, 2 * ctas * c.tile_m * c.tile_n * word};
}

QuantisedSeconds many_quantised_seconds(const GemmHardware& hw, const GemmConfig& choices, const GemmProblem& p, double stages,
                                        double clock, double dram) {
    const Sm90ManyQuantisedConfig c = many_quantised_config(p, choices, 0, 0);
    const double units = double(quantised_units(p)), all = double(quantised_tiles(p, choices)),
                 ctas = min_known(hw.sms, all * units);
    const double whole_tiles = whole(all / ctas), cut = all - whole_tiles * ctas, shared_units = whole_up(cut * units / ctas);
    QuantisedSeconds t{};
    t.units_a_cta = whole_tiles * units + shared_units;
    const double latency = quantised_load_cycles(hw) / hw.clock_hz, warpgroups = c.warpgroups();
    // Rows of A are summed by products of their own, 8 wide; a load and a product for each 16 rows of 16 of K.
    constexpr double lanes_of_warp = 32, sum_columns = 8, sum_rows = 16;
    const double sums = c.sums_rows() ? c.tile_m / sum_rows * (2 * Sm90ManyQuantisedConfig::steps + 4 * c.groups()) : 0;
    const double slots =
        (warpgroups * Sm90ManyQuantisedConfig::warpgroup_warps * c.warp_instructions() + sums) * lanes_of_warp / hw.issue_lanes;
    const double tensor =
        2.0 * c.tile_m * (c.tile_n + (c.sums_rows() ? sum_columns : 0)) * Sm90ManyQuantisedConfig::tile_k / hw.flops_per_cycle;
    // Each warpgroup's products read all rows of A, and each warp its own weights.
    const double shared = (warpgroups * c.activation_bytes() + c.packed_bytes() + c.layout.looked_up_bytes(c.tile_n, c.tile_k)) / hw.shared_bandwidth;
    Pace busiest{tensor, Bound::tensor};
    busiest.beside(slots, Bound::issue);
    busiest.beside(shared, Bound::shared);
    t.busiest_cycles = busiest.time, t.busiest = busiest.bound;
    // One warpgroup by itself: products whose operand is in registers are issued when they run (docs/facts.md 272), so that what it does
    // between them stands beside them, and the way from the ring to the first product and from the last one to sums. Warpgroups wait for each
    // other by chance: the squares add up.
    const double ends = c.scales_last() ? 1 : c.groups();
    const double chain = tensor / warpgroups + c.warp_instructions() + ends * max_known(hw.wgmma_latency, 0) + Sm90QuantisedConfig::hand_over_cycles;
    if (chain > busiest.time) t.busiest = Bound::latency;
    t.stage_cycles = std::hypot(t.busiest_cycles, chain);
    const double in_ring = (latency * clock + t.stage_cycles) / stages;
    // A warpgroup stores its columns while the others multiply, but for the last tile's.
    const double tiles = whole_tiles + (cut > 0 ? 1 : 0), store = double(c.tile_m) / 4 * Sm90ManyQuantisedConfig::pair_instructions;
    const double stored = store * (1 + (tiles - 1) / warpgroups);
    t.launch = max_known(hw.launch_seconds, 0), t.packing = max_known(hw.packing_seconds, 0);
    t.fill = latency;
    t.dram = dram / min_known(hw.dram_bandwidth, hw.sms * weights_in_flight(c, stages) / latency);
    t.unpack = (t.units_a_cta * max_known(t.stage_cycles, in_ring) + stored) / clock;
    t.l2 = t.units_a_cta * (c.packed_bytes() + c.activation_bytes()) / min_known(hw.l2_share, hw.l2_port) / hw.clock_hz;
    if (p.epilogue) t.express = tiles * (double(c.tile_m) * c.tile_n * p.epilogue->issue / hw.issue_lanes + hw.l2_latency) / clock;
    t.combine = tiles * (max_known(hw.quantised_tile, 0) + c.tile_m * max_known(hw.quantised_tile_row, 0)) / clock;
    // Parts are written, counted and read; a CTA leaves one behind its first tile and one behind its last.
    if (cut > 0) t.combine += 2 * (3 * hw.l2_latency + 2.0 * c.part_floats() * 4 / hw.l2_port) / hw.clock_hz;
    return t;
}

std::vector<Step> many_quantised_derivation(const GemmContext& context, const Kept& kept) {
    const GemmProblem& p = context.problem;
    const GemmHardware& hw = context.hw;
    const GemmCandidate& c = kept.candidate;
    const Sm90ManyQuantisedConfig config = many_quantised_config(p, c, c.producer_registers, c.consumer_registers);
    const QuantisedSeconds t = many_quantised_seconds(hw, c, p, c.stages, kept.time.clock_hz, kept.dram);
    const auto given = [](std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    };
    const Input one = given("ctas_per_sm", c.ctas_per_sm, "", "this plan"), threads = given("threads", c.threads, "", "this plan");
    const double latency = quantised_load_cycles(hw);
    Derivation steps(*context.machine);
    add_packed_steps(steps, hw, p);
    steps.add(gemm_formula::registers_per_thread,
              {given("accumulator_registers", c.accumulators, "registers", "tile_m / 2 a thread"),
               given("rest", c.registers - c.accumulators, "registers",
                     config.scales_last() ? "two bursts of fragments, addresses; tried with ptxas"
                                          : "sums of a group, two bursts of fragments, addresses; tried with ptxas"),
               threads, one},
              c.registers, unless_unknown(c.registers_limit, "{} <= {}", c.registers, c.registers_limit));
    if (c.consumer_registers > 0) {
        steps.add(gemm_formula::setmaxnreg_limit,
                  {steps.fact("sm.registers"), steps.fact("sm.max_registers_per_thread"), threads, one}, c.registers_limit,
                  fmt::format("setmaxnreg gives consumers {} and leaves the producer {}", c.consumer_registers, c.producer_registers));
        steps.add(gemm_formula::setmaxnreg_consumer, {steps.fact("sm.registers"), threads, one}, c.consumer_registers,
                  fmt::format("{} are needed", c.registers));
        steps.add(
            gemm_formula::setmaxnreg_producer, {steps.fact("sm.registers"), threads, one}, c.producer_registers,
            config.sums_rows() ? "one thread that issues copies, and warps that sum rows of A" : "one thread that issues copies needs few");
    }
    steps.add(gemm_formula::stages_max,
              {given("shared_limit", c.shared_limit, "B", context.machine->id),
               given("reserved", c.reserved_bytes, "B", p.quantised.is_table() ? "32 rows of sums on their way out, of each warpgroup, and the pairs of the table" : "32 rows of sums on their way out, of each warpgroup"),
               given("stage_bytes", c.stage_bytes, "B", "packed weights and rows of A"),
               given("barriers", c.stage_overhead, "B", "mbarriers of a stage")},
              c.known_stages_max() ? double(*c.known_stages_max()) : unknown_number, "what shared memory holds of them");
    const Input weights = given("stage_weights", config.packed_bytes(), "B", "the layout");
    steps.add(gemm_formula::quantised_stages,
              {given("share", hw.dram_share, "B/clk/SM", "dram.sustained_read or dram.bandwidth, of one SM"),
               given("latency", latency, "cycles", "tma.latency_loaded_l2 + dram.latency - l2.latency"), weights, one},
              c.stages_enough, "more would wait in L2");
    steps.add(gemm_formula::quantised_in_flight, {given("stages", c.stages, "", "this plan"), weights, one},
              weights_in_flight(config, c.stages),
              unless_unknown(hw.dram_share * hw.dram_latency, "the SM's share of DRAM takes {:.4g} B, its rate times the latency",
                             hw.dram_share * hw.dram_latency));
    steps.add(gemm_formula::quantised_dram_us,
              {given("dram_bytes", kept.dram, "B", fmt::format("tiles in bands of {} rows", quantised_band(c, p.m))),
               steps.fact(context.machine->find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth"), steps.fact("sm.count"),
               given("bytes_in_flight", weights_in_flight(config, c.stages), "B", "an earlier step"),
               given("latency", latency / hw.clock_hz * 1e6, "us", "tma.latency_loaded_l2 + dram.latency - l2.latency")},
              t.dram * 1e6, "what DRAM takes for the order's traffic");
    steps.add(gemm_formula::many_quantised_units,
              {given("tiles", double(quantised_tiles(p, c)), "", p.groups ? "rows of tiles of all groups * ceil(n / tile_n)" : "ceil(m / tile_m) * ceil(n / tile_n)"),
               given("units", double(quantised_units(p)), "", "ceil(k / 128)"),
               given("ctas", double(many_quantised_ctas(hw, p, c)), "", "this plan")},
              t.units_a_cta, "whole tiles, and an even share of those left");
    steps.add(gemm_formula::many_quantised_multiply_us,
              {given("units_a_cta", t.units_a_cta, "", "an earlier step"),
               given("busiest", t.busiest_cycles, "cycles", "of a stage: its issue slots, matrix units or shared memory"),
               given("stage", t.stage_cycles, "cycles", "the busiest unit, or one warpgroup's chain"),
               given("clock", kept.time.clock_hz, "Hz", "this plan"), given("stages", c.stages, "", "this plan"),
               given("latency", latency / hw.clock_hz * 1e6, "us", "an earlier step")},
              t.unpack * 1e6, "products of all warpgroups, and their stores");
    steps.add(gemm_formula::quantised_l2_us,
              {given("units_a_cta", t.units_a_cta, "", "an earlier step"), one,
               given("stage_bytes", config.packed_bytes() + config.activation_bytes(), "B", "this plan"), steps.fact("l2.bandwidth"),
               steps.fact("l2.port")},
              t.l2 * 1e6, "rows of A again for each column of tiles, weights for each row");
    explain_in_front(context, steps);
    add_quantised_time(steps, p, t, kept);
    return steps.take();
}

}  // namespace rooftile
