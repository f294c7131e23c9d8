// What an operation offers to pictures beyond its records: where one CTA's cycles go, and which configurations are possible at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/step.hpp"

namespace rooftile {

/// Cycles of one unit for one step; units work side by side.
struct UnitCycles {
    std::string unit;  ///< "MMA"
    double cycles = 0;
};

/// One CTA's way through a tile, in cycles of the SM's predicted clock.
struct PipelineCycles {
    std::int64_t stages = 0;           ///< of the ring that feeds it
    std::int64_t steps = 0;            ///< of a tile
    double step = 0;                   ///< steady, the slowest of all that the model knows
    double load = 0;                   ///< from a load's issue to its use, of what L2 holds
    double first_load = 0;             ///< of what DRAM delivers
    double interval = 0;               ///< between two loads, by the way from L2 into the SM
    double turn = 0;                   ///< from one tile to the next
    double epilogue = 0;               ///< of the tile's result on its way out
    bool epilogue_overlapped = false;  ///< beside the next tile's steps
    double clock_hz = 0;
    std::vector<UnitCycles> units;  ///< the first is the one that computes
};

/// One configuration of a map: the best plan that has these values, or why there is none.
struct MapCell {
    std::int64_t x = 0, y = 0;
    std::optional<double> time_us;
    std::string label;           ///< of the plan
    std::optional<Reason> wall;  ///< that forbids it
    std::string why;
};

/// Two keys of a configuration, and a plan or a wall for each pair of values. No cells: the operation has no map.
struct PlanMap {
    std::string x, y;
    std::vector<MapCell> cells;
};

}  // namespace rooftile
