// How a run measures, whatever it measures.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/measure/timing.hpp"
#include "rooftile/measure/verify_case.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

struct MeasureOptions {
    Mode mode = Mode::sustained;
    bool baseline = true;  ///< what the operation is measured beside
    bool verify = true;
    std::vector<VerifyCase> cases = {VerifyCase::exact, VerifyCase::random, VerifyCase::shifted, VerifyCase::special};  ///< to verify
    /// Makes the kernel of a plan; empty: compile(plan). Called on several threads.
    std::function<CompiledKernel(const Plan&)> compile;
    bool time = true;  ///< false: compile, run, verify and count only; `invalid` says that nothing was timed
    bool counters =
        false;  ///< hardware counters of what was timed, and of the best baseline
    /// Every plan's kernel without its loads, products or store beside it, timed in the same rounds.
    bool ablate = false;
    int device = 0;
    std::uint64_t seed = 0;            ///< of inputs and orders; fresh_seed() for a new one
    const Machine* machine = nullptr;  ///< for the roofs; null: roof_fraction is empty, nothing is refused
    const Machine* target = nullptr;   ///< what the plans were made for; null: `machine`
    const Machine* planned_for() const { return target ? target : machine; }
    bool explain = false, energy = false;  ///< how the prediction comes about, joules; for the rows
    /// Rounds and lengths; mode, sets, seed and interrupted are set from here.
    TimingOptions timing;
    /// Sustained: load where the GPU was kept busy since the last long one; as long as the control of its power remembers.
    double reload_seconds = 0.06;
    std::function<bool()> interrupted;
    /// When the program started: `first_result` counts from here.
    std::chrono::steady_clock::time_point program_start = std::chrono::steady_clock::now();
    std::function<void(const std::string&)> progress;  ///< one line a step; may be empty
};

/// A number that has not been used before, below 2^53 so that JSON keeps it.
std::uint64_t fresh_seed();

}  // namespace rooftile
