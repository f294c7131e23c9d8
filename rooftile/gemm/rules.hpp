// The rules of a GEMM's search: what it leaves out although nothing forbids it.
#pragma once

#include "rooftile/core/step.hpp"

namespace rooftile::gemm_rules {

/// The only one that leaves out candidates. What one of many values fixes is chosen, not searched, and has flags of its own:
/// operands that L2 drops first, the width of a store, overlapped epilogues, the start beside the kernel before.
inline constexpr Rule parts_of_few_waves{"parts_of_few_waves",
                                         "K is split only where tiles fill fewer than four waves: with more "
                                         "the last wave costs less than an exchange of sums"};

/// Of the orders of one plan. Each counts as dominated, as all orders do that are not a plan's.
inline constexpr Rule simulated_orders{
    "simulated_orders",
    "of a plan's orders the four are simulated that move least by formula; of many tiles one"};

inline constexpr const Rule* all[] = {&parts_of_few_waves, &simulated_orders};

}  // namespace rooftile::gemm_rules
