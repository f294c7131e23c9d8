#include "rooftile/gemm/derivation.hpp"

#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/derivation_writer.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/pieces.hpp"
#include "rooftile/gemm/quantised_model.hpp"

namespace rooftile {
namespace {

Prediction predict(const DerivationWriter& w, PackedOperands packed) {
    const GemmHardware& hw = w.hw();
    const double load = hw.dram_latency + hw.tma_latency + w.candidate().stage_bytes / l2_rate(w);
    const double packing = packing_traffic(w.problem(), packed);
    const GemmProblem asked = w.problem().as_asked();
    Prediction p;
    p.time_us = known(w.kept.time.seconds * 1e6);
    if (p.time_us) p.tflops = known(w.problem().flops().value / w.kept.time.seconds / 1e12);
    if (p.time_us) p.bound = w.kept.time.bound;
    p.arithmetic_intensity = known(w.tile_flops() / w.tile_bytes());
    p.tile_compute_cycles = known_count(std::ceil(w.candidate().step.tensor));
    p.stages_min = known_count(min_stages_for_latency(w));
    p.stages_for_full_rate = known_count(std::ceil(load / w.candidate().step.tensor) + 1);
    p.waves = known_count(w.kept.waves.waves);
    p.wave_efficiency = known(w.kept.waves.efficiency);
    p.moved_bytes = known_count(asked.compulsory_bytes().value);
    p.l2_bytes = known_count(l2_bytes(w.candidate(), w.problem()) + packing);
    p.dram_bytes = known_count(w.kept.dram + packing);
    p.dram_lower_bound_bytes = known_count(dram_lower_bound_bytes(hw, asked));
    p.l2_lower_bound_bytes = known_count(l2_lower_bound_bytes(hw, w.candidate(), w.problem()));
    if (w.problem().is_quantised()) return p;  // fragments are unpacked in registers: no tiling of whole elements bounds what they read
    p.shared_traffic_bytes = known_count(shared_traffic_bytes(w.candidate(), w.problem()));
    p.shared_lower_bound_bytes = known_count(shared_lower_bound_bytes(hw, w.problem()));
    return p;
}

std::vector<Step> write_derivation(const GemmContext& context, const Kept& kept, const GemmConfig& config) {
    if (context.problem.is_quantised()) return quantised_derivation(context, kept);
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
    GemmPlan plan;
    plan.arch = context.machine->arch;
    plan.problem = context.problem.as_asked();
    plan.config = c;
    plan.config.kernel = context.kernel;
    context.kernel->complete(context, kept, plan.config);
    Resources& r = plan.resources;
    r.threads = c.threads;
    r.accumulator_registers = c.accumulators;
    if (c.consumer_registers > 0) {
        r.producer_registers = c.producer_registers;
        r.consumer_registers = c.consumer_registers;
    }
    r.stage_bytes = c.stage_bytes;
    r.stages_max = c.known_stages_max();
    r.shared_bytes = c.shared_bytes(kept.candidate.stages);
    r.ctas_per_sm = c.ctas_per_sm;
    r.workspace_bytes = packed_bytes(context.problem, packed_operands(plan.config))
                        + pieces_workspace(plan.config, context.problem.m, context.problem.n, context.problem.batch).bytes();
    if (context.problem.is_quantised()) {
        r.grid_ctas = quantised_ctas(context.hw, context.problem, c);
        r.workspace_bytes = quantised_workspace(context.problem.n, c, r.grid_ctas).bytes() + packed_bytes(context.problem, packed_operands(plan.config));
    }

    plan.prediction = predict({context, kept, Derivation(*context.machine)}, packed_operands(plan.config));
    plan.derivation = Steps([shared, index, config = plan.config] {
        return write_derivation(*shared, shared->kept[index], config);
    });
    return plan;
}

}  // namespace rooftile
