// What accesses tell L2 about the lines they bring. On host and device.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// The word of a policy for all of an access, as `createpolicy.fractional` with fraction 1.0 makes it; PTX
/// ISA "createpolicy". The device tests ask the GPU for it.
constexpr unsigned long long cache_policy_word(CachePolicy policy) {
    return policy == CachePolicy::evict_first  ? 0x12f0000000000000ull
           : policy == CachePolicy::evict_last ? 0x14f0000000000000ull
                                               : 0x16f0000000000000ull;
}

}  // namespace rooftile
