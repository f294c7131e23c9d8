// Which orders of tiles may be the fastest: by a closed form, or by a simulated L2.
#pragma once

#include <array>
#include <span>

#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// The orders of one tile schedule, of those left free, that may be the fastest: no other asks as little of L2 and
/// moves as little from DRAM. DRAM's bytes are those of an LRU of `hw.l2_bytes` that holds A, B and C [M32]. They are
/// ScheduleTraffic's where the effort is a formula, where the SMs or L2 are unknown, where everything stays in L2,
/// and where there are too many tiles to simulate.
OrderFront fastest_orders(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                          const InnerSpace& inner, Effort effort);

}  // namespace rooftile
