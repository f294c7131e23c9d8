#include "rooftile/gemm/derivation_choices.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/apart.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/larger_tile.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

// Score in a reader's unit: microseconds, or cycles per product where the time is unknown.
std::string score_text(const Kept& kept) {
    if (!std::isnan(kept.time.seconds)) return fmt::format("{:.4g} us", kept.time.seconds * 1e6);
    if (std::isnan(kept.time.step)) return "nothing: the rank decides";
    return fmt::format(
        "{:.4g} cycles a product",
        kept.time.step
            / (double(kept.candidate.tile_m) * kept.candidate.tile_n * kept.candidate.tile_k));
}

// The best plan kept whose tile is another, for comparison.
const Kept* other_tile(const GemmContext& context, const Kept& kept) {
    for (const Kept& runner_up : context.kept)
        if (runner_up.candidate.tile_m != kept.candidate.tile_m
            || runner_up.candidate.tile_n != kept.candidate.tile_n)
            return &runner_up;
    return nullptr;
}

void tile(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    std::string limit = fmt::format("predicted {}", score_text(kept));
    if (const Kept* runner_up = other_tile(context, kept)) {
        const GemmCandidate& t = runner_up->candidate;
        const double other = seconds_with(
            context, [&](GemmRequest& r) { r.tile_m = t.tile_m, r.tile_n = t.tile_n, r.tile_k = t.tile_k; });
        limit +=
            fmt::format("; the best plan in tiles of {}x{}x{} takes {}", t.tile_m, t.tile_n, t.tile_k,
                        std::isnan(other) ? score_text(*runner_up) : fmt::format("{:.4g} us", other * 1e6));
    }
    const std::vector<Input> inputs{given("m", double(context.problem.m), "", "problem"),
                                    given("n", double(context.problem.n), "", "problem"),
                                    given("wave efficiency", kept.waves.efficiency, "", "waves, above")};
    steps.add_chosen(context.request.tile_m.has_value(), gemm_formula::tile_m, inputs, c.tile_m, limit);
    steps.add_chosen(context.request.tile_n.has_value(), gemm_formula::tile_n, inputs, c.tile_n, std::move(limit));
    const GemmWords words = context.kernel->words(c);
    steps.add(*words.tile_k, {given("b", bytes_of(context.problem.a_type), "B", std::string(name_of(context.problem.a_type)))},
              c.tile_k, words.tile_k_limit);
    write_larger_tile(context, kept, steps);
}

void warpgroups(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& f = kept.candidate;
    const bool pingpong = f.schedule == Schedule::pingpong;
    steps.add_chosen(
        context.request.consumer_warpgroups.has_value(), gemm_formula::consumer_warpgroups,
        {given("registers_per_thread", f.registers, "registers", "an earlier step"),
         given("registers_limit", f.registers_limit, "registers", "an earlier step")},
        f.consumer_warpgroups, fmt::format("{} threads a CTA", f.threads));
    steps.add_chosen(
        context.request.schedule.has_value(), gemm_formula::schedule,
        {given("turn and epilogue that show",
               kept.time.tile_cycles - double(k_steps(kept.candidate, context.problem)) * kept.time.step
                   - max_known(kept.time.exchange, 0),
               "cycles", "tile_cycles, below")},
        pingpong ? 1 : f.consumer_warpgroups,
        pingpong ? "pingpong: the epilogue runs during the other warpgroup's products"
                 : "cooperative: the larger tile asks less of L2, and the epilogue shows");
    if (f.consumer_registers > 0) {
        const std::vector<Input> inputs{steps.fact("sm.registers"),
                                        given("threads", f.threads, "", "an earlier step"),
                                        given("ctas_per_sm", f.ctas_per_sm, "", "this plan")};
        steps.add(gemm_formula::setmaxnreg_consumer, inputs, f.consumer_registers, fmt::format("{} are needed", f.registers));
        steps.add(gemm_formula::setmaxnreg_producer, inputs, f.producer_registers, "one thread that issues copies needs few");
    }
    steps.add_chosen(context.request.ctas_per_sm.has_value(), gemm_formula::ctas_per_sm,
              {given("shared memory of a CTA", f.shared_bytes(kept.candidate.stages), "B", "an earlier step"),
               steps.fact("shared.per_sm")},
              f.ctas_per_sm,
              f.ctas_per_sm > 1 ? "one stores while another multiplies, as fast as its own ring feeds it"
                                     : "more would share the SM's registers and shared memory");
}

void sharing(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    // As the step l2_bytes_per_cycle has it.
    const auto reaches_l2 = [&](const GemmConfig& tile) {
        const Neighbours n = neighbours(context.problem, tile, tile.order, tile.group);
        const auto [a, b] = l2_rows(context.hw, tile, context.problem, n);
        return (a + b) * tile.tile_k * bytes_of(context.problem.a_type) / kept.candidate.step.tensor;
    };
    GemmConfig single = c;
    single.cluster_m = single.cluster_n = 1;
    const double alone = reaches_l2(single), shared = reaches_l2(c);
    const bool clustered = c.cluster_m * c.cluster_n > 1;
    std::string limit = "not compared: a rate is unknown";
    if (!std::isnan(alone) && !std::isnan(context.hw.l2_share))
        limit = clustered ? fmt::format(
                    "{:.3g} B/clk of an SM reach L2 instead of {:.3g} without a cluster, of "
                    "{:.3g}",
                    shared, alone, context.hw.l2_share)
                          : fmt::format("without a cluster {:.3g} B/clk of an SM reach L2, of {:.3g}", alone,
                                        context.hw.l2_share);
    const std::vector<Input> inputs{given("l2_bytes_per_cycle", shared, "B/clk", "an earlier step"),
                                    steps.fact("l2.bandwidth")};
    steps.add_chosen(context.request.cluster_m.has_value(), gemm_formula::cluster_m, inputs, c.cluster_m, limit);
    steps.add_chosen(context.request.cluster_n.has_value(), gemm_formula::cluster_n, inputs, c.cluster_n, std::move(limit));
    steps.add_chosen(context.request.order.has_value(), gemm_formula::order,
              {steps.fact("l2.size"), steps.fact("l2.partitions"),
               given("slots", kept.waves.slots, "", "waves, above")},
              kept.dram, std::string(name_of(kept.candidate.order)));
    steps.add_chosen(context.request.group.has_value(), gemm_formula::group,
              {given("dram_bytes", kept.dram, "B", "an earlier step"), steps.fact("l2.size"),
               steps.fact("l2.partitions")},
              kept.candidate.group, fmt::format("order {}", name_of(kept.candidate.order)));
}

}  // namespace

double seconds_with(const GemmContext& context, const std::function<void(GemmRequest&)>& change) {
    GemmRequest request = context.request;
    change(request);
    request.top = 1;
    try {
        PlanSet set = gemm_plan_set(derive(context.machine, context.problem, request));
        weigh_apart(set, context.machine, context.problem, request);
        return set.plans.empty() ? unknown_number : set.plans.front().time_us.value_or(unknown_number) * 1e-6;
    } catch (const RequestError&) { return unknown_number; }
}

void explain_early_weights(const GemmContext& context, const GemmConfig& config, int blocks, Derivation& steps) {
    if (!context.request.early_weights.value_or(false)) return;
    const double bytes = double(blocks) * config.tile_n * config.tile_k * bytes_of(context.problem.b_type) * config.ctas_per_sm;
    std::vector<Input> inputs{given("B", context.problem.b_bytes(), "B", "the problem")};
    for (const char* key : {"launch.gap_stream", "dram.latency", "l2.latency"})
        if (context.machine->find(key)) inputs.push_back(steps.fact(key));
    inputs.push_back(given("of B before the wait", bytes, "B an SM", "the ring, as far as a tile's K fills it"));
    steps.add(gemm_formula::early_saving, std::move(inputs), context.hw.early_saving * 1e6,
              "B was complete before the kernel in front began, by the request");
}

void explain_in_front(const GemmContext& context, Derivation& steps) {
    const GemmProblem& p = context.problem;
    if (p.narrow) {
        std::vector<Input> rows{given("narrow", p.as_asked().a_bytes(), "B", fmt::format("{} x {} of {}", p.m, p.k, name_of(p.narrow->type))),
                                given("widened", double(copy_of_a(p).read_bytes()), "B", std::string(name_of(p.a_type))),
                                given("workspace", double(copy_of_a(p).bytes()), "B", "these, lines 128 B aligned")};
        for (const char* key : {"dram.sustained_copy", "launch.gap_stream", "dram.latency"})
            if (context.machine->find(key)) rows.push_back(steps.fact(key));
        steps.add_chosen(context.request.pack_a.has_value(), gemm_formula::widen_a, std::move(rows), 1,
                         fmt::format("{} for all that the launch in front does", time_or_unknown(known(context.hw.packing_seconds * 1e6))));
    }
    if (!p.is_unpacked()) return;
    const PackedCopy copy = copy_of_b(p);
    std::vector<Input> inputs{
        given("packed weights", double(p.unpacked.bytes(p.n, p.k)), "B", "the layout, with scales and zero points"),
        given("unpacked", double(copy.read_bytes()), "B", fmt::format("{} x {} of {}", p.n, p.k, name_of(p.b_type))),
        given("workspace", double(copy.bytes()), "B", "these, rows 128 B aligned, until the product has ended: no second copy is kept")};
    for (const char* key : {"dram.sustained_copy", "launch.gap_stream", "dram.latency"})
        if (context.machine->find(key)) inputs.push_back(steps.fact(key));
    double fragments = unknown_number;
    GemmRequest others;
    others.top = 1, others.pack_b = false;
    const auto found = derive(context.machine, p.as_asked(), others);
    if (const auto* plans = std::get_if<Plans>(&found)) fragments = plans->plans.front().prediction.time_us.value_or(unknown_number);
    std::string limit = fmt::format("{} to unpack them once, and the product at its full rate", time_or_unknown(known(context.hw.packing_seconds * 1e6)));
    if (!std::isnan(fragments)) limit += fmt::format("; the best plan that unpacks them for each row of tiles takes {:.4g} us", fragments);
    steps.add_chosen(context.request.pack_b.has_value(), gemm_formula::unpack_b, std::move(inputs), 1, std::move(limit));
}

GemmWords plain_words(const GemmCandidate& f) {
    return {.tile_k = &gemm_formula::tile_k,
            .tile_k_limit = "the rank above decides",
            .accumulators = &gemm_formula::accumulators,
            .sharers_name = "threads",
            .sharers = f.threads,
            .registers_source = "fragments, and 40 as the method has it",
            .reserved_source = "C epilogue tiles and other barriers of this kernel"};
}

std::vector<Input> split_inputs(const GemmContext& context, const Kept& kept) {
    const double k_blocks = double(context.problem.k_blocks(kept.candidate.tile_k));
    return {given("tiles", double(kept.waves.tiles), "", "waves, above"),
            given("slots", kept.waves.slots, "", "waves, above"),
            given("k_steps", k_blocks, "", std::string(k_blocks_text(context.problem)))};
}

void write_whole_k(const GemmContext& context, const Kept& kept, Derivation& steps) {
    steps.add(gemm_formula::whole_k, split_inputs(context, kept), 1, "this kernel has no clusters");
}

void write_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                   Derivation& steps) {
    tile(context, kept, steps);
    warpgroups(context, kept, steps);
    sharing(context, kept, steps);
    context.kernel->explain_choices(context, kept, config, steps);
}

}  // namespace rooftile
