// All members of one problem's declared space timed on a readied GPU. For rooftile/measure's own sources.
#pragma once

#include <vector>

#include "rooftile/core/ledger.hpp"
#include "rooftile/core/space.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

/// Runs every member once on the same inputs and compares the results' bits with those that the reference proved right,
/// times every member in short blocks, then the fastest, the kept and the picked ones again in interleaved rounds, one of
/// them twice. `kernels` are in the order of the members. What the GPU refuses of all of it throws Error(gpu_failed).
LedgerEntry time_space(Bench& bench, const DeclaredSpace& space, const Problem& problem,
                       PreparedTrial& prepared, const std::vector<CompiledOutcome>& kernels,
                       std::vector<Timing>& timings);

}  // namespace rooftile
