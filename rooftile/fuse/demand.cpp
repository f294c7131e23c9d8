#include "rooftile/fuse/demand.hpp"

#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {

Demand fuse_demand(const FusePlan& plan) {
    const ExpressionGraph& graph = plan.problem;
    Demand demand;
    const OpCost cost = double(plan.program.rows) * double(plan.program.columns)
                        * program_work(graph, plan.program).first;
    demand.issue_slots = cost.issue;
    demand.exponentials = cost.mufu;
    if (plan.prediction.dram_bytes) demand.dram_bytes = double(*plan.prediction.dram_bytes);
    if (plan.prediction.moved_bytes) demand.l2_bytes = double(*plan.prediction.moved_bytes);
    demand.loaded_bytes = demand.l2_bytes.value_or(0);
    // Every input is read once and every output written once, unless rows are read again from DRAM.
    std::optional<double> again;
    if (plan.prediction.dram_bytes && plan.prediction.moved_bytes)
        again = double(*plan.prediction.dram_bytes) - double(*plan.prediction.moved_bytes);
    const auto add = [&](const std::string& name, int node, TensorRole role) {
        const double bytes = double(bytes_of(graph.nodes[std::size_t(node)]));
        demand.tensors.push_back({name, role, bytes, again && *again == 0 ? std::optional(bytes) : std::nullopt});
    };
    for (const int input : graph.inputs) add(graph.nodes[std::size_t(input)].name, input, TensorRole::in);
    for (const GraphOutput& output : graph.outputs) add(output.name, output.node, TensorRole::out);
    demand.tiles = std::max<std::int64_t>(1, plan.config.grid);
    return demand;
}

}  // namespace rooftile
