// A plan's kernels as one file that nvcc compiles by itself, with a launcher and a check: to read, and to take away.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

struct EmittedFile {
    std::string name;  ///< "OPERATION_PROBLEM.cu"
    std::string text;
    std::string arch;      ///< "sm_90a"
    int registers = 0;     ///< a thread at launch, of the kernel that has most
    int lines_before = 0;  ///< of the kernel with all its headers
    /// Whether branches were taken away that the configuration decides; else what was left was another kernel, and all of them stand.
    bool is_reduced = false;
};

/// In emit_file() the compiler takes so many turns: the planned kernel, the branches that its configuration decides, the text without them.
inline constexpr int emit_turns = 3;

/// Needs NVRTC, no GPU. Throws as compile(plan), and RequestError where the plan's kernels do not make one file. `turn` is called after
/// each of them.
EmittedFile emit_file(const Machine& machine, const PlanSet& plans, const Plan& plan, const std::function<void()>& turn = {});

}  // namespace rooftile
