#include "rooftile/attention/pictured.hpp"

#include <cmath>

#include "rooftile/attention/model.hpp"
#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

std::optional<PipelineCycles> attention_pipeline(const Machine& machine, const AttentionPlan& plan) {
    std::vector<std::string> unknown;
    const AttentionHardware hw = attention_hardware(machine, plan.problem.type, unknown);
    const AttentionTime t = attention_time(hw, plan.problem, plan.config);
    if (std::isnan(t.seconds)) return std::nullopt;
    const BlockCycles& b = t.block;
    const double way = max_known(max_known(b.port, b.l2), 0), latency = known_or(hw.few_loads_latency(), 0);
    const double first = known_or(first_load_cycles(hw, plan.problem), 0);
    PipelineCycles out{.stages = plan.config.stages,
                       .steps = std::int64_t(t.work.longest),
                       .step = b.all,
                       .load = latency + way,
                       .first_load = first + way,
                       .interval = way,
                       .turn = t.tile_turn - t.store,
                       .epilogue = t.store,
                       .epilogue_overlapped = false,
                       .clock_hz = t.clock_hz,
                       .units = {{"MMA", b.tensor}, {"exponentials", b.exponential}}};
    if (!std::isnan(b.shared)) out.units.push_back({"shared memory", b.shared});
    if (way > 0) out.units.push_back({"L2 share", way});
    return out;
}

}  // namespace rooftile
