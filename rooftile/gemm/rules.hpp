// The rules of a GEMM's search: what it leaves out although nothing forbids it.
#pragma once

#include "rooftile/core/step.hpp"

namespace rooftile::gemm_rules {

/// These leave out candidates. What one of many values fixes is chosen, not searched, and has flags of its own:
/// operands that L2 drops first, the width of a store, overlapped epilogues, the start beside the kernel before.
inline constexpr Rule parts_of_few_waves{"parts_of_few_waves",
                                         "K is split only where tiles fill fewer than four waves: with more "
                                         "the last wave costs less than an exchange of sums"};

inline constexpr Rule tight_swapped_tiles{
    "tight_swapped_tiles",
    "with A and B swapped tile_m is the least of its steps, the multiples of 8 up to "
    "64, that cuts M into so many rows of "
    "tiles: more would only be outside C"};

inline constexpr const Rule* all[] = {&parts_of_few_waves, &tight_swapped_tiles};

}  // namespace rooftile::gemm_rules
