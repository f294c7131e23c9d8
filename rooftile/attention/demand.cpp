#include "rooftile/attention/demand.hpp"

#include <algorithm>

#include "rooftile/attention/model.hpp"

namespace rooftile {

Demand attention_demand(const Machine& machine, const AttentionPlan& plan) {
    std::vector<std::string> unknown;
    const AttentionProblem& p = plan.problem;
    const AttentionHardware hw = attention_hardware(machine, p.type, unknown);
    const AttentionWork work = attention_work(hw, p, plan.config);
    Demand demand;
    if (!hw.family.empty())
        demand.matrix.push_back({hw.family, std::string(attention_type_name(p.type)), "fp32", work.matrix_flops});
    demand.exponentials = work.exponentials;
    demand.issue_slots = work.instructions;
    demand.shared_bytes = work.filled_bytes + work.shared_read_bytes;
    demand.filled_bytes = work.filled_bytes;
    demand.shared_read_bytes = work.shared_read_bytes;
    demand.l2_bytes = work.l2_bytes;
    if (plan.prediction.dram_bytes) demand.dram_bytes = double(*plan.prediction.dram_bytes);
    const auto again = [&](double bytes) -> std::optional<double> {
        if (!plan.prediction.dram_bytes) return std::nullopt;
        const double keys = double(p.k_bytes() + p.v_bytes());
        return keys == 0 ? 0 : bytes * (1 + std::max(0.0, work.dram_bytes - work.dram_lower_bound_bytes) / keys);
    };
    const auto once = [&](double bytes) -> std::optional<double> {
        return plan.prediction.dram_bytes ? std::optional(bytes) : std::nullopt;
    };
    for (const TensorInfo& t : attention_tensors(p)) {
        double bytes = t.element_bits / 8.0;
        for (const Extent& extent : t.extents) bytes *= double(extent.most);
        if (t.name == "Q") bytes = double(p.q_bytes());
        if (t.name == "K") bytes = double(p.k_bytes());
        if (t.name == "V") bytes = double(p.v_bytes());
        demand.tensors.push_back({t.name, t.role, bytes, t.name == "K" || t.name == "V" ? again(bytes) : once(bytes)});
    }
    demand.tiles = std::int64_t(work.tiles);
    return demand;
}

Predictor attention_predictor(std::span<const Plan> plans) {
    struct Timed {
        AttentionProblem problem;
        AttentionConfig config;
        double held_back;
    };
    std::vector<Timed> timed;
    for (const Plan& any : plans) {
        const auto& plan = any.own.as<AttentionPlan>();
        timed.push_back({plan.problem, plan.config, plan.held_back});
    }
    return [timed = std::move(timed)](const Machine& machine) {
        std::vector<std::string> unknown;
        std::vector<PredictedRun> runs;
        for (const Timed& plan : timed) {
            const AttentionHardware hw = attention_hardware(machine, plan.problem.type, unknown);
            const AttentionTime time = attention_time(hw, plan.problem, plan.config);
            runs.push_back({time.seconds * plan.held_back, time.clock_hz});
        }
        return runs;
    };
}

}  // namespace rooftile
