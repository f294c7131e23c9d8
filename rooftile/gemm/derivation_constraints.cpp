#include <algorithm>

#include "rooftile/gemm/derivation_writer.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

void intensity(DerivationWriter& w) {
    const GemmCandidate& t = w.candidate();
    const double flops = w.tile_flops(), bytes = w.tile_bytes();
    w.steps.add(gemm_formula::tile_flops,
                {w.config("tile_m", t.tile_m), w.config("tile_n", t.tile_n), w.config("tile_k", t.tile_k)},
                flops, "the work of one k-step of one tile");
    w.steps.add(gemm_formula::stage_bytes,
                {w.config("tile_m", t.tile_m), w.config("tile_n", t.tile_n), w.config("tile_k", t.tile_k),
                 w.element_input()},
                bytes,
                fmt::format("A {} B and B {} B a stage", t.tile_m * t.tile_k * w.element(),
                            t.tile_n * t.tile_k * w.element()));
    w.steps.add(gemm_formula::arithmetic_intensity,
                {w.step("F", flops, "FLOP"), w.step("D", bytes, "B")}, flops / bytes,
                "tile_k cancels: only a larger tile raises it");
    const double critical = w.hw().peak_flops / w.hw().dram_bandwidth;
    const std::string peak = peak_key(w.context.family, rate_name_of(w.problem().a_type), "fp32");
    std::vector<Input> inputs{
        Derivation::given("peak", w.hw().peak_flops, "FLOP/s",
                          w.machine().find(peak) ? w.machine().find(peak)->source : "SMs x rate x clock"),
        w.steps.fact(w.dram())};
    w.steps.add(gemm_formula::intensity_critical, std::move(inputs), critical,
                unless_unknown(critical, "a tile alone against DRAM is {}: I = {:.4g} {} {:.4g}",
                               flops / bytes >= critical ? "compute-bound" : "memory-bound", flops / bytes,
                               flops / bytes >= critical ? ">=" : "<", critical)
                    + (flops / bytes < critical
                           ? "; tiles that run together share operands in L2, see the levels below"
                           : ""));
}

/// A step of its own where the product has an epilogue; else 0.
int epilogue_registers(DerivationWriter& w) {
    const SharedEpilogue& e = w.context.problem.epilogue;
    if (!e) return 0;
    const bool turned = w.candidate().swap_ab;
    const bool staged = operand_staged(w.context.problem, w.candidate().k_parts());
    const int all = e->registers(turned, staged), pairs = e->pairs_in_flight(turned, staged), words = e->pair_registers(turned, staged);
    w.steps.add(gemm_formula::epilogue_registers,
                {w.config("pairs_in_flight", pairs), Derivation::given("pair_registers", words, "registers", "the epilogue's operands"),
                 Derivation::given("values", all - pairs * words, "registers", "held at once by two neighbours, and 8 for a function's steps: bisected with ptxas")},
                all, fmt::format("{}; {:.3g} issue slots an element, {:.4g} B read", e->graph.text, e->issue, e->bytes));
    return all;
}

void register_constraint(DerivationWriter& w) {
    const GemmCandidate& f = w.candidate();
    const GemmWords words = w.context.kernel->words(f);
    std::vector<Input> shared{w.config("tile_m", f.tile_m), w.config("tile_n", f.tile_n)};
    if (words.sharers > 0) shared.push_back(w.config(words.sharers_name, words.sharers));
    w.steps.add(*words.accumulators, std::move(shared), f.accumulators, "32-bit sums held by each multiplying thread");
    const std::string limit =
        f.consumer_registers > 0
            ? fmt::format("setmaxnreg gives consumers {} and leaves the producer {}", f.consumer_registers,
                          f.producer_registers)
            : std::string("registers an SM / threads on it, at most what an instruction can name");
    const int epilogue = epilogue_registers(w);
    std::vector<Input> inputs = {w.step("accumulator_registers", f.accumulators, "registers"),
                                 Derivation::given("rest", f.registers - f.accumulators - epilogue, "registers",
                                                   words.registers_source),
                                 w.config("threads", f.threads), w.config("ctas_per_sm", f.ctas_per_sm)};
    if (epilogue > 0) inputs.push_back(w.step("epilogue_registers", epilogue, "registers"));
    w.steps.add(epilogue > 0 ? gemm_formula::registers_with_epilogue : gemm_formula::registers_per_thread, std::move(inputs), f.registers,
                unless_unknown(f.registers_limit, "{} <= {}: {}", f.registers, f.registers_limit, limit));
    const bool moved = f.consumer_registers > 0;  // between warpgroups
    std::vector<Input> has{w.steps.fact("sm.registers"), w.config("threads", f.threads), w.config("ctas_per_sm", f.ctas_per_sm),
                           w.steps.fact("sm.max_registers_per_thread")};
    if (!moved) has.push_back(w.steps.fact("sm.register_allocation_unit"));
    w.steps.add(moved ? gemm_formula::setmaxnreg_limit : gemm_formula::registers_limit, std::move(has), f.registers_limit, limit);
    if (!std::isnan(f.sums_limit))
        w.steps.add(gemm_formula::sums_limit, {w.step("registers_limit", f.registers_limit, "registers")}, f.sums_limit,
                    fmt::format("{} <= {:.0f}: the instruction is unknown, and so is what it reads", f.accumulators, f.sums_limit));
}

void capacity_constraint(DerivationWriter& w) {
    const GemmCandidate& f = w.candidate();
    const GemmWords words = w.context.kernel->words(f);
    const double per_stage = f.stage_bytes + f.stage_overhead;
    const double most = std::floor((f.shared_limit - f.reserved_bytes) / per_stage);
    const int ctas = w.candidate().ctas_per_sm;
    std::vector<Input> asked{w.steps.fact("shared.per_cta")};
    if (ctas > 1) {
        asked.push_back(w.steps.fact("shared.per_sm"));
        asked.push_back(w.config("ctas_per_sm", ctas));
        asked.push_back(w.steps.fact("shared.allocation_unit"));
        asked.push_back(w.steps.fact("shared.reserved_per_cta"));
    }
    w.steps.add(ctas > 1 ? gemm_formula::shared_limit_of_several : gemm_formula::shared_limit, std::move(asked), f.shared_limit,
                unless_unknown(f.shared_limit, "what one CTA may use"));
    std::string limit = "not checked: shared.per_cta is unknown";
    if (const int fit = int(known_or(most, 0)); !std::isnan(most))
        limit = fmt::format("{} stages fit; {} x {} = {} B + {} B > {:.0f} B{}", fit, fit + 1, f.stage_bytes,
                            std::int64_t{fit + 1} * f.stage_bytes,
                            f.reserved_bytes + (fit + 1) * f.stage_overhead, f.shared_limit, w.on());
    w.steps.add(
        gemm_formula::stages_max,
        {w.step("shared_limit", f.shared_limit, "B"),
         Derivation::given("reserved", f.reserved_bytes, "B", words.reserved_source),
         w.step("stage_bytes", f.stage_bytes, "B"),
         Derivation::given("barriers", f.stage_overhead, "B", words.overhead_source)},
        most, std::move(limit));
    if (f.has_stages_limit())
        w.steps.add(gemm_formula::stages_limit, {w.step("stages_max", most, "stages")}, f.stages_limit, "of this kernel");
    w.context.kernel->explain_capacity(w);
}

// How many k-steps of the ring a load's latency spans [M5].
void latency_constraint(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const double compute = std::ceil(w.candidate().step.tensor);
    std::vector<Input> asked{w.step("F", w.tile_flops(), "FLOP"), w.steps.fact(w.rate())};
    if (w.promotes()) asked.push_back(w.step("promoting_step_cycles", promoting_step_cycles(hw, w.candidate()), "cycles"));
    if (w.warps_share_a_port()) {
        asked.push_back(w.step("D", w.candidate().stage_bytes, "B"));
        asked.push_back(w.read_input());
        asked.push_back(w.steps.fact("shared.bandwidth"));
        asked.push_back(w.steps.fact("mma_sync.overlap_exponent"));
    }
    w.steps.add(w.promotes()               ? gemm_formula::tile_compute_cycles_promoted
                : w.warps_share_a_port() ? gemm_formula::tile_compute_cycles_shared
                                           : gemm_formula::tile_compute_cycles,
                std::move(asked), compute,
                "the matrix units' time for one k-step; a load must be hidden behind (stages - 1) of these");
    const double stages_min = min_stages_for_latency(w);
    w.steps.add(gemm_formula::stages_min,
                {w.steps.fact("dram.latency"), w.step("T", compute, "cycles")}, stages_min,
                "with the machine's stated latency taken as the whole time from issue to use");

    const GemmCandidate& t = w.candidate();
    const bool short_k = double(w.problem().k_blocks(t.tile_k)) < stages_min;
    w.steps.add(
        gemm_formula::stages_needed,
        {w.steps.fact("dram.latency"), w.step("pace", w.candidate().pace(), "cycles"), w.config("ctas_per_sm", t.ctas_per_sm),
         w.config("k_steps", double(w.candidate().k_steps))},
        std::isnan(hw.dram_latency) ? std::nan("")
                                    : t.stages_against_latency(hw.dram_latency),
        short_k ? "the constraint: K has fewer steps than the ring would need"
                : "the constraint: at the pace of the slowest resource, not of the matrix units alone");
}

// One load alone, and the step that a full pipe settles into [M36].
void loads(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const double bytes = w.candidate().stage_bytes, compute = std::ceil(w.candidate().step.tensor);
    const double l2 = bytes / l2_rate(w), dram = bytes / hw.dram_share;
    const Input of_l2 = Derivation::given("share_l2", l2_rate(w), "B/clk/SM", "l2.bandwidth and l2.port"),
                of_dram = Derivation::given("share_dram", hw.dram_share, "B/clk/SM", w.dram());
    w.steps.add(gemm_formula::load_l2_isolated, {w.steps.fact("l2.latency"), w.step("D", bytes, "B"), of_l2},
                std::round(hw.l2_latency + l2), "one load alone that hits L2");
    w.steps.add(gemm_formula::load_dram_isolated, {w.steps.fact("dram.latency"), w.step("D", bytes, "B"), of_dram},
                std::round(hw.dram_latency + dram),
                "one load alone that misses L2. The trip through L2 is inside it: adding the L2 time on top "
                "would count it twice, "
                "since the legs are pipelined");
    // Unlike a constraint, a maximum is unknown as soon as one of its terms is.
    const bool all_known = !std::isnan(w.candidate().step.tensor) && !std::isnan(l2) && !std::isnan(dram);
    const double steady = all_known ? std::max({w.candidate().step.tensor, l2, dram}) : std::nan("");
    std::string binding = "not known: a rate is unknown";
    if (all_known)
        binding = fmt::format(
            "compute {:.0f}, L2 {:.0f}, DRAM {:.0f} cycles a step in a full pipe, where no latency is paid: "
            "{}; "
            "DRAM carries it only if all bytes miss L2",
            compute, l2, dram,
            steady == dram ? "DRAM-bound unless enough of the bytes hit L2"
            : steady == l2 ? "L2-bound"
                           : "compute-bound");
    const std::vector<Input> transfers{w.step("T", compute, "cycles"), w.step("D", bytes, "B"), of_l2, of_dram};
    w.steps.add(gemm_formula::steady_step_all_miss, transfers, std::round(steady), std::move(binding));
    const double needed = all_known ? std::max(0.0, 1 - std::max(w.candidate().step.tensor, l2) / dram) : unknown_number;
    w.steps.add(gemm_formula::hit_share_needed, transfers, needed,
                unless_unknown(needed, "{:.0f} % of the bytes must hit L2, so that DRAM does not bind", 100 * needed));
}

// The ring's depth: what full rate would want, and what is taken [M5, M14].
void depth(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const double bytes = w.candidate().stage_bytes, compute = std::ceil(w.candidate().step.tensor);
    const double l2 = bytes / l2_rate(w);
    const double load = hw.dram_latency + hw.tma_latency + l2;
    const double full_rate = std::ceil(load / w.candidate().step.tensor) + 1;
    std::string limit = "not known: T_load needs a rate and the SM count";
    if (!std::isnan(full_rate)) limit = fmt::format("(stages - 1) * {:.0f} >= {:.0f}", compute, load);
    else if (std::isnan(hw.sms) && !std::isnan(hw.peak_flops / hw.flops_per_cycle * hw.clock_hz * hw.dram_bandwidth * hw.dram_latency)) {
        const double sms = hw.peak_flops / (hw.flops_per_cycle * hw.sustained_hz);
        const double transfer = bytes / (hw.dram_bandwidth / hw.clock_hz / sms);
        limit += fmt::format(
            ". Were there peak / (rate x clock) = {:.0f} SMs, {:.0f} cycles of bare latency + {:.0f} of "
            "transfer "
            "would ask for {:.0f} stages",
            sms, hw.dram_latency, transfer,
            std::ceil((hw.dram_latency + transfer) / w.candidate().step.tensor) + 1);
    }
    const bool by_tma = w.context.family != "mma_sync";
    std::vector<Input> waits{w.steps.fact("dram.latency")};
    if (by_tma) waits.push_back(w.steps.fact("tma.latency_extra"));
    waits.push_back(w.step("T_load", l2, "cycles"));
    waits.push_back(w.step("T", compute, "cycles"));
    w.steps.add(by_tma ? gemm_formula::full_rate_by_tma : gemm_formula::full_rate, std::move(waits), full_rate, std::move(limit));
    const std::optional<std::int64_t> most = w.candidate().known_stages_max();
    w.steps.add_chosen(w.context.request.stages.has_value(), gemm_formula::stages,
                {w.step("stages_min", min_stages_for_latency(w), "stages"),
                 w.step("stages_max", most ? double(*most) : unknown_number, "stages")},
                w.candidate().stages,
                fmt::format("{} B of shared memory", w.candidate().shared_bytes(w.candidate().stages)));
}

}  // namespace

void write_constraints(DerivationWriter& w) {
    intensity(w);
    register_constraint(w);
    capacity_constraint(w);
    latency_constraint(w);
    loads(w);
    depth(w);
}

}  // namespace rooftile
