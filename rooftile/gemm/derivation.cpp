#include "rooftile/gemm/derivation.hpp"

#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/derivation_writer.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/pieces.hpp"

namespace rooftile {
namespace {

Prediction predict(const DerivationWriter& w, PackedOperands packed) {
    const GemmHardware& hw = w.hw();
    const double load = hw.dram_latency + hw.tma_latency + w.footprint().stage_bytes / l2_rate(w);
    const double packing = packing_traffic(w.problem(), packed);
    Prediction p;
    p.time_us = known(w.kept.time.seconds * 1e6);
    if (p.time_us) p.tflops = known(w.problem().flops().value / w.kept.time.seconds / 1e12);
    if (p.time_us) p.bound = w.kept.time.bound;
    p.arithmetic_intensity = known(w.tile_flops() / w.tile_bytes());
    p.tile_compute_cycles = known_count(std::ceil(w.kept.footprint.step.tensor));
    p.stages_min = known_count(min_stages_for_latency(w));
    p.stages_for_full_rate = known_count(std::ceil(load / w.kept.footprint.step.tensor) + 1);
    p.waves = known_count(w.kept.waves.waves);
    p.wave_efficiency = known(w.kept.waves.efficiency);
    p.moved_bytes = known_count(w.problem().compulsory_bytes().value);
    p.l2_bytes = known_count(l2_bytes(w.tile(), w.problem()) + packing);
    p.dram_bytes = known_count(w.kept.dram + packing);
    p.dram_lower_bound_bytes = known_count(dram_lower_bound_bytes(hw, w.problem()));
    p.l2_lower_bound_bytes = known_count(l2_lower_bound_bytes(hw, w.tile(), w.problem()));
    p.shared_traffic_bytes = known_count(shared_traffic_bytes(w.tile(), w.problem()));
    p.shared_lower_bound_bytes = known_count(shared_lower_bound_bytes(hw, w.problem()));
    return p;
}

std::vector<Step> write_derivation(const GemmContext& context, const Kept& kept, const GemmConfig& config) {
    DerivationWriter writer{context, kept, Derivation(*context.machine)};
    write_constraints(writer);
    write_levels(writer);
    write_choices(context, kept, config, writer.steps);
    write_time(writer);
    return writer.steps.take();
}

}  // namespace

GemmPlan write_plan(const std::shared_ptr<const GemmContext>& shared, std::size_t index) {
    const GemmContext& context = *shared;
    const Kept& kept = context.kept[index];
    const GemmCandidate& c = kept.candidate;
    const Footprint& f = kept.footprint;
    GemmPlan plan;
    plan.arch = context.machine->arch;
    plan.problem = context.problem;
    plan.config.kernel = context.kernel;
    GemmKnobs::each([&](const auto& knob) { plan.config.*knob.value = (context.request.*knob.fixed).value_or(knob.preset()); });
    give_choices(plan.config, kept);
    context.kernel->complete(context, kept, plan.config);
    Resources& r = plan.resources;
    r.threads = f.threads;
    r.accumulator_registers = f.accumulators;
    if (f.consumer_registers > 0) {
        r.producer_registers = f.producer_registers;
        r.consumer_registers = f.consumer_registers;
    }
    r.stage_bytes = f.stage_bytes;
    r.stages_max = f.known_stages_max();
    r.shared_bytes = f.shared_bytes(kept.stages);
    r.ctas_per_sm = c.tile.ctas_per_sm;
    r.workspace_bytes = packed_bytes(context.problem, packed_operands(plan.config))
                        + pieces_workspace(plan.config, context.problem.m, context.problem.n, context.problem.batch).bytes();

    plan.prediction = predict({context, kept, Derivation(*context.machine)}, packed_operands(plan.config));
    plan.derivation = Steps([shared, index, config = plan.config] {
        return write_derivation(*shared, shared->kept[index], config);
    });
    return plan;
}

}  // namespace rooftile
