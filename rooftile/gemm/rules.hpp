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

inline constexpr Rule pieces_of_idle_sms{
    "pieces_of_idle_sms",
    "sm80_few_gemm: K is cut into no more pieces than fill one wave, of one CTA an SM where tiles leave SMs idle, and more CTAs share an SM only "
    "where there are as many: the time follows from bytes in flight, and shared memory of CTAs that are not there holds none"};

inline constexpr const Rule* all[] = {&parts_of_few_waves, &tight_swapped_tiles, &pieces_of_idle_sms};

}  // namespace rooftile::gemm_rules
