#include "rooftile/gemm/evaluate_plan.hpp"

#include "rooftile/core/operation.hpp"
#include "rooftile/gemm/kernel.hpp"

namespace rooftile {
namespace {

// What the kernel makes of the plan's tile; empty where a constraint is violated.
std::optional<GemmCandidate> tile_of(const GemmHardware& hw, const GemmPlan& plan, const GemmProblem& problem) {
    GemmCandidate candidate{plan.config, {plan.config.overlapped_epilogue, plan.config.epilogue_tile_n}};
    if (plan.config.kernel->examine(hw, problem, candidate)) return std::nullopt;
    return candidate;
}

StepCycles step_in_order(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                         const OrderChoice& order) {
    return step_cycles(hw, tile, problem, neighbours(problem, tile, order.order, order.group));
}

void set_time(PlanEvaluation& r) {
    const TiledGemm& g = r.gemm;
    r.time = gemm_time_under_power(g.hw, g.tile, g.problem, g.step, g.waves, g.dram, g.stages);
}

}  // namespace

std::optional<PlanEvaluation> evaluate_plan(const Machine& machine, const GemmPlan& plan) {
    if (plan.config.epilogue_apart) return std::nullopt;  // its times are its parts'
    const GemmProblem p = multiplied(plan);
    const std::string family = plan.config.kernel->instruction(machine, p.a_type);
    std::vector<std::string> unknown;
    GemmHardware hw = gemm_hardware(machine, family, p.a_type, unknown);
    const Following follows = following(*plan.config.kernel, plan.config.programmatic_launch, plan.config.early_weights);
    hw = as_launched(hw, follows, p.b_bytes());
    const PackedOperands packed = packed_operands(plan.config);
    hw = with_operands(hw, p, packed);
    const std::optional<GemmCandidate> tile = tile_of(hw, plan, p);
    if (!tile) return std::nullopt;
    PlanEvaluation r{.gemm = {.hw = hw,
                              .tile = *tile,
                              .problem = p,
                              .step = step_in_order(hw, *tile, p, {plan.config.order, plan.config.group}),
                              .waves = waves(hw, *tile, p),
                              .dram = unknown_number,
                              .stages = plan.config.stages},
                     .family = family,
                     .order = {plan.config.order, plan.config.group},
                     .following = follows,
                     .packed = packed,
                     .time = {}};
    if (plan.prediction.dram_bytes)
        r.gemm.dram = double(*plan.prediction.dram_bytes) - packing_traffic(p, packed);
    set_time(r);
    return r;
}

PlanEvaluation on_hardware(const GemmHardware& hw, const PlanEvaluation& evaluation) {
    PlanEvaluation r = evaluation;
    TiledGemm& g = r.gemm;
    const auto simulated = [&] {
        return ScheduleTraffic(g.hw, g.tile, g.problem).dram(r.order.order, r.order.group);
    };
    const double before = simulated();
    g.hw = with_operands(as_launched(hw, r.following, g.problem.b_bytes()), g.problem, r.packed);
    if (const double now = simulated(); !std::isnan(now / before)) g.dram *= now / before;
    g.step = step_in_order(g.hw, g.tile, g.problem, r.order);
    g.waves = waves(g.hw, g.tile, g.problem);
    set_time(r);
    return r;
}

Predictor gemm_predictor(const Machine& machine, std::span<const Plan> plans) {
    std::vector<std::optional<PlanEvaluation>> evaluated;
    std::vector<std::vector<Predictor>> parts;  // of plans of several launches
    std::string family;
    for (const Plan& plan : plans) {
        evaluated.push_back(evaluate_plan(machine, plan.own.as<GemmPlan>()));
        parts.emplace_back();
        for (const Plan& part : plan.parts) parts.back().push_back(part.operation->predictor(machine, std::span(&part, 1)));
        if (evaluated.back()) family = evaluated.back()->family;
    }
    const Type type = plans.front().own.as<GemmPlan>().problem.b_type;
    return [evaluated = std::move(evaluated), parts = std::move(parts), family, type](const Machine& other) {
        std::vector<std::string> unknown;
        const GemmHardware hw = family.empty() ? GemmHardware{} : gemm_hardware(other, family, type, unknown);
        std::vector<PredictedRun> runs(evaluated.size(), {unknown_number, unknown_number});
        for (std::size_t i = 0; i < runs.size(); ++i) {
            if (!parts[i].empty()) {
                double seconds = 0;
                for (const Predictor& part : parts[i]) seconds += part(other).front().seconds;
                runs[i].seconds = seconds;
            }
            if (!evaluated[i]) continue;
            const GemmTime time = on_hardware(hw, *evaluated[i]).time;
            runs[i] = {time.seconds, time.clock_hz};
        }
        return runs;
    };
}

}  // namespace rooftile
