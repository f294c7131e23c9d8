// How a plan is compiled, beside what it says itself.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

struct CompileOptions {
    bool cache = true;       ///< read and write the cache of cache_settings()
    bool line_info = false;  ///< for sanitizers and profilers
    /// A kernel without it takes its time and computes nothing.
    Ablation ablated = Ablation::nothing;
};

}  // namespace rooftile
