// The measure station: plans in; verified, timed figures beside the prediction and the vendor's library out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/measure/options.hpp"
#include "rooftile/measure/ratios.hpp"
#include "rooftile/gemm/device/verify.hpp"

namespace rooftile {

/// Rows and what a document says of the run.
struct MeasureRun {
    std::vector<Measurement> rows;   ///< in the order of the plans
    std::vector<Timing> timings;     ///< in the order in which the parts ended
    std::string gpu, driver, nvrtc;  ///< as report's GpuContext wants them
    std::string kernel_hash;         ///< where all rows ran one kernel
    std::vector<std::string> notes;  ///< what a reader must know: fewer sets than wanted, a slowed clock
    bool verified() const;           ///< every row, or verification was off
};

/// Compiles, verifies and times `plans` on a GPU, those of one problem interleaved with each other and with
/// cuBLASLt. A wrong result is a row whose `verified` says so and which has no time; a plan that does not
/// compile one whose `invalid` is the compiler's line.
/// Throws RequestError where a plan is not buildable, Error(no_gpu, gpu_failed or interrupted),
/// Error(counters_denied) where counters are asked for and not to be had, and Error(compile_failed) where no
/// plan compiles.
MeasureRun measure(const std::vector<GemmPlan>& plans, const MeasureOptions& options);

/// One problem to measure: its plans, best first, all buildable; or none and why.
struct MeasureTask {
    GemmProblem problem;
    std::vector<GemmPlan> plans;
    std::optional<Infeasible> infeasible;
    std::vector<SuiteLayer> layers;       ///< for the rows
    std::vector<std::string> notes = {};  ///< the planner's, for whoever reads the rows
    int rounds = 0;                       ///< at least, where the options have fewer
};

/// What became of a task.
struct ShapeRun {
    MeasureTask task;
    std::vector<Measurement> rows;  ///< one a plan, always; what failed says why in `invalid`
    std::vector<Timing> timings;    ///< of this problem alone
    std::vector<std::string> notes;
    std::vector<std::string> hashes;     ///< of the kernels that ran
    double seconds = 0;                  ///< all of it, waiting for plans and compilers included
    std::optional<Error> error;          ///< why the GPU did not run it to its end: out of memory
    std::optional<Error> compile_error;  ///< the first
};

/// What measure_each() tells its caller. All are called on the calling thread but `next`.
struct MeasureEvents {
    /// The next task, asked for on a thread of its own while the GPU works on the one before; empty: the end.
    std::function<std::optional<MeasureTask>()> next;
    /// Once, before the first `done`.
    std::function<void(const RunningGpu&)> started;
    /// After each problem; false: no more.
    std::function<bool(ShapeRun)> done;
    /// Parts of the run that belong to no problem, at its end. May be empty.
    std::function<void(const std::vector<Timing>&)> ended = {};
};

/// Measures one problem after the other in one continuous run: the long load of the sustained mode comes
/// once, and again only where the GPU stood idle in between. A problem that cannot be compiled or does not
/// fit is a ShapeRun that says so, and the run goes on. Throws Error(no_gpu), Error(interrupted),
/// Error(counters_denied) and Error(gpu_failed) where the GPU can no longer be used.
void measure_each(const MeasureEvents& events, const MeasureOptions& options);

/// Something of any family that computes one problem's C: what later kernels and rivals are measured as.
struct Candidate {
    std::string name;
    GemmLaunch launch;
};

/// What the hardware allows, to refuse what cannot be. Empty where unknown.
struct Roofs {
    std::optional<double> flops_per_cycle;  ///< of the whole GPU, for one matrix instruction and type
    std::optional<double> dram_bytes_per_s;
    std::optional<double> boost_clock_mhz;  ///< no SM clock is higher
};
/// Of a plan, by the instruction of its kernel.
Roofs roofs_of(const Machine* machine, const GemmPlan& plan, int sms);
/// Of a library that may take any instruction: by the machine's fastest for the problem's types. Without a tensor roof
/// where the machine has an instruction of unknown rate.
Roofs baseline_roofs_of(const Machine* machine, const GemmProblem& problem, int sms);

/// Why `timed` cannot be true of that problem: "above the roof: ..."; empty where no known roof forbids it.
std::string above_roof(const GemmProblem& problem, Mode mode, const TimedResult& timed, const Roofs& roofs);

/// What above_roof() could not compare, one line each: a reader must know it.
std::vector<std::string> unchecked_roofs(Mode mode, const TimedResult& timed, const Roofs& roofs);

/// Fills time, rate and roof_fraction from `timed`; sets `invalid` where a figure lies above a roof.
void set_figures(Measurement& row, const TimedResult& timed, const Roofs& roofs);

/// The fastest of cuBLASLt's `algorithms` that took part in every round and that no roof forbids.
std::optional<std::size_t> best_algorithm(const GemmProblem& problem, Mode mode,
                                          std::span<const TimedResult> algorithms, const Roofs& roofs);

/// The first and the best of cuBLASLt's `algorithms`. One above a roof is left out, with a line in `notes`.
Baselines baselines_of(const GemmProblem& problem, Mode mode, std::span<const TimedResult> algorithms,
                       const Roofs& roofs, std::vector<std::string>& notes);

/// The time of a copy that reads `bytes` and writes as many; empty, with a line in `notes`, above the roof.
std::optional<double> copy_time(std::int64_t bytes, Mode mode, const TimedResult& timed, const Roofs& roofs,
                                std::vector<std::string>& notes);

}  // namespace rooftile
