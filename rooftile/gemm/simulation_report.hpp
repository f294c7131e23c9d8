// A plan's walks over C, simulated: the document `rooftile/simulation/1` (docs/schema/simulation-1.json), its
// CSV, a table, and a picture of one walk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile {

struct SimulatedOrder {
    WalkOrder order;
    bool planned = false;  ///< the one the plan walks in
    GemmTraffic traffic;
    std::optional<std::int64_t> model_dram_bytes;  ///< by the planner's closed form, where it has one
};

struct Simulation {
    std::string machine_id, machine_name;
    GemmPlan plan;
    GemmWalk walk;  ///< in the planned order
    L2Model l2;
    std::optional<double> dram_bound, l2_bound;  ///< B; empty where unknown
    std::vector<SimulatedOrder> orders;          ///< the least DRAM traffic first
    std::vector<std::string> unknown, notes;
};

Json simulation_document(const DocumentContext& context, const Simulation& simulation);
/// Of a document: the header and one line an order; lines end in CR LF.
std::string simulation_csv(const Json& document);
std::string simulation_text(const Simulation& simulation, const Terminal& terminal);

/// C's tiles, coloured by the shares of their steps that found A, and B, in L2; the walk drawn over them. An
/// SVG file that needs nothing else. Throws RequestError where there are too many tiles to see.
std::string walk_svg(const GemmProblem& problem, const GemmWalk& walk, const GemmTraffic& traffic,
                     const std::vector<TileHits>& tiles);

}  // namespace rooftile
