// What a fused kernel's code asks of memory, and how another program launches it: for the documents of `build`.
#pragma once

#include <string>

#include "rooftile/core/value.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Instructions that load from and store to global memory.
struct Accesses {
    int loads = 0, loads_16 = 0, stores = 0, stores_16 = 0;  ///< all, and those of 16 bytes a thread
};
Accesses accesses_of(const std::string& ptx);

/// Entry, block, cluster, shared memory, arguments word by word, workspace: all that a launch outside this program needs.
Record launch_record(const FusePlan& plan, const std::string& entry);

}  // namespace rooftile
