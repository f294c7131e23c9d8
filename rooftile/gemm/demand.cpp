#include "rooftile/gemm/demand.hpp"

#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

/// What is asked of L2: of loads of one line by neighbours few reach it.
double l2_bytes_of(const PlanEvaluation& r) {
    const GemmProblem& p = r.gemm.problem;
    const GemmConfig& tile = r.gemm.tile;
    const L2Rows own = own_rows(tile, p),
                 reaching = l2_rows(r.gemm.hw, tile, p, neighbours(p, tile, r.order.order, r.order.group));
    const TileGrid clusters = cluster_grid(p, tile);
    const double products = double(p.batch);
    return products * matrix_bytes(p.m, p.k, p.a_type) * double(clusters.columns) * reaching.a / own.a
           + products * p.b_loaded_bytes() * double(clusters.rows) * reaching.b / own.b + p.c_bytes() + p.beside_bytes();
}

/// What the simulated L2 found of an order without a closed form, where the plan has it, is known as a whole only.
void add_tensors(Demand& demand, const GemmPlan& plan, const OperandBytes& dram) {
    const GemmProblem &p = plan.problem, read = multiplied(plan);
    const double a_packing = packing_traffic(read, {.a = plan.config.pack_a}),
                 b_packing = packing_traffic(read, {.b = plan.config.pack_b});
    const bool as_planned =
        plan.prediction.dram_bytes
        && std::abs(dram.sum() + a_packing + b_packing - double(*plan.prediction.dram_bytes)) < 1;
    const auto part = [&](double of) { return as_planned ? known(of) : std::nullopt; };
    demand.tensors = {{"a", TensorRole::in, p.a_bytes(), part(dram.a + a_packing)},
                      {"b", TensorRole::in, p.b_bytes(), part(dram.b + b_packing)},
                      {p.epilogue ? p.epilogue->output() : "c", TensorRole::out, p.c_bytes() / double(p.results()),
                       part((dram.c - (p.epilogue ? p.epilogue->bytes : 0)) / double(p.results()))}};
    if (!p.epilogue) return;
    for (const GraphOutput& other : std::span(p.epilogue->graph.outputs).subspan(1)) {
        demand.tensors.push_back(demand.tensors[2]);
        demand.tensors.back().tensor = other.name;
    }
    for (const EpilogueOperand& o : p.epilogue->operands) {
        const double once = double(o.elements(p.epilogue->batch, p.m, p.result_n())) * bytes_of(o.element);
        demand.tensors.push_back({o.name, TensorRole::in, once, part(once)});
    }
}

}  // namespace

Demand gemm_demand(const Machine& machine, const GemmPlan& plan) {
    const GemmProblem& p = plan.problem;
    Demand demand;
    if (plan.config.kernel)
        demand.matrix = {{plan.config.kernel->instruction(machine, p.b_type), std::string(rate_name_of(p.b_type)),
                          std::string(name_of(p.accumulate_type)), p.flops().value}};
    if (const auto n = plan.prediction.shared_traffic_bytes) demand.shared_bytes = double(*n);
    OperandBytes dram{std::nan(""), std::nan(""), std::nan("")};
    if (const auto r = evaluate_plan(machine, plan)) {
        dram = ScheduleTraffic(r->gemm.hw, r->gemm.tile, r->gemm.problem)
                   .dram_by_operand(plan.config.order, plan.config.group);
        const double packing = packing_traffic(r->gemm.problem, r->packed);
        if (r->packed.any()) demand.launches = 2;
        const GemmCandidate& tile = r->gemm.tile;
        demand.l2_bytes = known(l2_bytes_of(*r) + packing);
        demand.tiles = r->gemm.waves.tiles * tile.k_parts();
        demand.dram_bytes = known(r->gemm.dram + packing);
        const GemmProblem& computed = r->gemm.problem;
        const TileGrid tiles = cluster_grid(computed, tile.tile_m, tile.tile_n, 1, 1);
        const OperandLines lines = operand_lines(r->gemm.hw, tile, computed, tiles);
        demand.filled_bytes = lines.filled * lines.bytes;
        demand.loaded_bytes = demand.filled_bytes * (sent_off_line(r->gemm.hw, tile, computed, tiles) - 1) + computed.c_bytes()
                              + bytes_across_l2(r->gemm.hw, tile, computed, r->gemm.dram);
        demand.shared_read_bytes = lines.read * lines.bytes;
    }
    add_tensors(demand, plan, dram);
    return demand;
}

}  // namespace rooftile
