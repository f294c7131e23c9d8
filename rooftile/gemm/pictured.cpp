#include "rooftile/gemm/pictured.hpp"

#include <cmath>
#include <set>

#include "rooftile/core/map_cell.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

std::optional<PipelineCycles> gemm_pipeline(const Machine& machine, const GemmPlan& plan) {
    const auto r = evaluate_plan(machine, plan);
    if (!r || std::isnan(r->time.seconds) || r->gemm.problem.is_quantised()) return std::nullopt;
    const TiledGemm& g = r->gemm;
    // Latencies, L2 and the ports are of time, not of the SMs' cycles.
    const double scale = r->time.clock_hz / g.hw.clock_hz;
    const double l2 = known_or(g.step.l2, 0) * scale, port = known_or(g.step.port, 0) * scale;
    const double dram_latency =
        std::isnan(g.hw.loaded_latency) ? max_known(g.hw.dram_latency, 0) + max_known(g.hw.tma_latency, 0) : g.hw.loaded_latency;
    PipelineCycles out{.stages = g.stages,
                       .steps = k_steps(g.tile, g.problem),
                       .step = r->time.step,
                       .load = min_known(g.hw.l2_loaded_latency, dram_latency) * scale + port,
                       .first_load = dram_latency * scale + std::max(l2, port),
                       .interval = port,
                       .turn = known_or(g.hw.tile_turn, 0),
                       .epilogue = r->time.epilogue,
                       .epilogue_overlapped = g.tile.epilogue_overlapped,
                       .clock_hz = r->time.clock_hz,
                       .units = {{"MMA", g.step.tensor}}};
    if (!std::isnan(g.step.shared)) out.units.push_back({"shared memory", g.step.shared});
    if (l2 > 0) out.units.push_back({"L2 share", l2});
    return out;
}

PlanMap gemm_map(const std::shared_ptr<const Machine>& machine, const Plan& first, const GemmAsk& ask) {
    const GemmConfig& chosen = first.own.as<GemmPlan>().config;
    std::set<int> across(searched_tile_ms.begin(), searched_tile_ms.end()), down(searched_tile_ns.begin(), searched_tile_ns.end());
    across.insert(chosen.tile_m), down.insert(chosen.tile_n);
    PlanMap map{"tile_m", "tile_n", {}};
    for (const int n : down)
        for (const int m : across) {
            GemmAsk one{.request = ask.request, .sample = 0, .orders = {}};
            one.request.tile_m = m, one.request.tile_n = n, one.request.top = 1;
            map.cells.push_back(map_cell(m, n, gemm_operation().derive(machine, first.problem, Own::of(std::move(one)))));
        }
    return map;
}

}  // namespace rooftile
