// A plan's tile schedules, simulated: the document `rooftile/simulation/1` (docs/schema/simulation-1.json) and
// a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/physics/energy.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/gemm/simulate_lru.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile {

struct SimulatedOrder {
    TileOrder order;
    bool planned = false;  ///< the one that the plan has
    GemmTraffic traffic;
    std::optional<std::int64_t> model_dram_bytes;  ///< by the planner's closed form, where it has one
    std::optional<Energy> energy{};  ///< of a launch at the plan's predicted time; empty: not asked for
};

struct Simulation {
    std::string machine_id, machine_name;
    GemmPlan plan;
    TileSchedule tile_schedule;  ///< in the planned order
    L2Model l2;
    std::optional<double> dram_bound, l2_bound;  ///< B; empty where unknown
    std::vector<SimulatedOrder> orders;          ///< the least DRAM traffic first
    std::vector<std::string> unknown, notes;
};

Json simulation_document(const DocumentContext& context, const Simulation& simulation);
std::string simulation_text(const Simulation& simulation, const Terminal& terminal);
/// The same without its heading.
std::string simulation_body(const Simulation& simulation, const Terminal& terminal);

/// `tiles` of the document: of each, in the planned order, its place, its round, and the shares of its steps that found A, and B, in L2.
Json tiles_json(const std::vector<TileHits>& tiles);

}  // namespace rooftile
