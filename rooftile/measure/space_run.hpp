// Declared spaces of many problems timed in one continuous run: what a ledger is made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rooftile/core/ledger.hpp"
#include "rooftile/core/space.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

struct SpaceTask {
    Problem problem;
    DeclaredSpace space;
};

/// The spaces of `problems`, in their order, worked out on all cores.
std::vector<SpaceTask> space_tasks(const std::vector<Problem>& problems,
                                   const std::shared_ptr<const Machine>& machine, int top,
                                   const std::function<std::vector<Pick>(const Problem&)>& others);

/// What the members of all tasks share: by task and member the place of its code among the distinct ones, which are in the
/// order in which they are first needed. Needs NVRTC.
struct SpaceCodes {
    std::vector<std::vector<std::size_t>> places;
    std::vector<const Plan*> first;  ///< of each distinct code, a plan that has it
};
SpaceCodes space_codes(const std::vector<SpaceTask>& tasks);

struct SpaceEvents {
    std::function<void(const RunningGpu&)> started;  ///< once, before the first `done`
    /// After each problem, on the calling thread; false: no more.
    std::function<bool(LedgerEntry entry, const std::vector<Timing>& timings)> done;
};

/// Times every task on options.device. Each distinct code is compiled once, in the order in which it is needed, on all cores
/// but two, while the tasks before are timed. A problem that the GPU refuses has members that say so. Throws Error(no_gpu),
/// Error(interrupted) and Error(gpu_failed) where the GPU can no longer be used.
void time_spaces(const std::vector<SpaceTask>& tasks, const SpaceEvents& events,
                 const MeasureOptions& options);

}  // namespace rooftile
