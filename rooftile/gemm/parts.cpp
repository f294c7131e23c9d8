#include "rooftile/gemm/parts.hpp"

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"

namespace rooftile {

std::string_view name_of(Ablation part) {
    constexpr std::string_view names[] = {"nothing", "loads", "products", "store"};
    return names[static_cast<int>(part)];
}

GemmTime time_without(Ablation part, const TiledGemm& gemm, std::optional<double> clock) {
    TiledGemm g = gemm;
    const GemmProblem& p = g.problem;
    const auto [written, read] = shared_step_bytes(g.tile, bytes_of(p.a_type));
    const double result = p.c_bytes();
    if (part == Ablation::loads) {
        g.dram = result;
        g.step.l2 = g.step.port = 0;
        g.step.shared = read / g.hw.shared_bandwidth;
    } else if (part == Ablation::products) {
        g.step.tensor = 0;
        g.step.shared = written / g.hw.shared_bandwidth;
    } else if (part == Ablation::store) {
        g.dram -= result;
    }
    MatrixEnergy joules = gemm_energy(g.hw, g.tile, p, g.dram);
    if (part == Ablation::loads) joules.fill = 0;
    if (part == Ablation::products) joules.matrix = joules.shared_read = 0;
    GemmTimer timer(g.hw, g.tile, p, g.step, g.waves, g.stages);
    if (part == Ablation::loads) timer.leave_out_loads();
    if (part == Ablation::store) timer.leave_out_store();
    return clock ? timer.at(*clock, g.dram) : under_power(PowerLimit(g.hw), timer, joules.sum(), g.dram);
}

PartPrediction predict_without(const Machine& machine, const GemmPlan& plan, Ablation part,
                               std::optional<double> clock_mhz) {
    const std::optional<PlanEvaluation> r = evaluate_plan(machine, plan);
    if (!r) return {};
    const GemmTime time =
        time_without(part, r->gemm, clock_mhz ? std::optional(*clock_mhz * 1e6) : std::nullopt);
    return {known(time.seconds * 1e6), known(time.clock_hz / 1e6)};
}

}  // namespace rooftile
