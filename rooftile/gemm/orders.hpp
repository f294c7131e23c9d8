// Which order of tiles moves the least from DRAM: by a closed form for every candidate, by a simulated L2 for
// the few that are kept.
#pragma once

#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// The best of the orders left free, by ScheduleTraffic.
ScoredOrder order_by_formula(const ScheduleTraffic& traffic, const InnerSpace& inner);

/// The best of the orders that the formula finds best, by an LRU of `hw.l2_bytes` that holds A, B and C
/// [M32]; where the order is free, also of bands that fill whole waves, and of bands taken in turns. Empty
/// where the SMs or L2 are unknown, where everything stays in L2, and where there are too many tiles to simulate.
std::optional<ScoredOrder> order_by_simulation(const GemmHardware& hw, const GemmTile& tile,
                                               const GemmProblem& problem, const InnerSpace& inner);

}  // namespace rooftile
