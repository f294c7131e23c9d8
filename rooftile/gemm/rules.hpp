// The rules of a GEMM's search: what it leaves out although nothing forbids it.
#pragma once

#include "rooftile/core/step.hpp"

namespace rooftile::gemm_rules {

/// These leave out candidates. What one of many values fixes is chosen, not searched, and has flags of its own:
/// operands that L2 drops first, the width of a store, overlapped epilogues, the start beside the kernel before.
inline constexpr Rule parts_of_few_waves{"parts_of_few_waves",
                                         "K is split only where tiles fill fewer than four waves: with more "
                                         "the last wave costs less than an exchange of sums"};

inline constexpr Rule tight_swapped_tiles{"tight_swapped_tiles",
                                          "with A and B swapped tile_m is the least of its steps, 8, 16, 32 "
                                          "or 64, that cuts M into so many rows of "
                                          "tiles: more would only lie outside C"};

/// Of the orders of one plan. Each counts as dominated, as all orders do that are not a plan's.
inline constexpr Rule simulated_orders{
    "simulated_orders",
    "of a plan's orders the four are simulated that move least by formula; of many tiles one"};

inline constexpr const Rule* all[] = {&parts_of_few_waves, &tight_swapped_tiles, &simulated_orders};

}  // namespace rooftile::gemm_rules
