// The measure station: plans of any operation in; verified, timed rows beside the prediction and the baselines out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/options.hpp"

namespace rooftile {

/// Plans behind those that are measured, for MeasureTask::more.
inline constexpr int plans_behind = 7;

/// One problem to measure: its plans, best first, all buildable; or none and why.
struct MeasureTask {
    PlanSet plans;
    std::vector<SuiteLayer> layers = {};  ///< for the rows
    int rounds = 0;                       ///< at least, where the options have fewer
    std::vector<Role> roles = {};         ///< of the plans; empty: the first leads
    /// The same problem's plans with some behind these, of which the next ones stand for those that the compiler refuses. Empty: none do.
    std::function<PlanSet()> more = {};
};

/// Of typed plans of one problem, one at least, which any_plan() takes.
template <class P>
MeasureTask task_of(const Operation& operation, const std::vector<P>& plans) {
    MeasureTask task;
    task.plans.problem = {&operation, Own::of(plans.front().problem)};
    for (const P& plan : plans) task.plans.plans.push_back(any_plan(plan, task.plans.problem));
    return task;
}

/// Leaves out what cannot be built; where nothing is left the set is refused, with the reason of the first.
void keep_buildable(PlanSet& plans);

/// What became of a task.
struct MeasuredProblem {
    MeasureTask task;
    std::vector<Measurement> rows;  ///< one a plan, always; what failed says why in `invalid`
    std::vector<Timing> timings;    ///< of this problem alone
    std::vector<std::string> notes;
    std::vector<std::string> hashes;     ///< of the kernels that ran
    double seconds = 0;                  ///< all of it, waiting for plans and compilers included
    std::optional<Error> error;          ///< why the GPU did not run it to its end: out of memory
    std::optional<Error> compile_error;  ///< the first
};

/// Makes a task: what of it takes long, planning. Called once, on any thread and beside others.
using TaskMaker = std::function<MeasureTask()>;

/// What measure_each() tells its caller. All are called on the calling thread, but for what `next` returns.
struct MeasureEvents {
    /// The next task, asked for while earlier ones are still to be measured; empty: the end.
    std::function<std::optional<TaskMaker>()> next;
    /// Once, before the first `done`.
    std::function<void(const RunningGpu&)> started;
    /// After each problem; false: no more.
    std::function<bool(MeasuredProblem)> done;
    /// Parts of the run that belong to no problem, at its end. May be empty.
    std::function<void(const std::vector<Timing>&)> ended = {};
};

/// Measures one problem after the other in one continuous run: the long load of the sustained mode comes
/// once, and again only where the GPU stood idle in between. A problem that cannot be compiled or does not
/// fit says so, and the run goes on. Throws Error(no_gpu), Error(interrupted),
/// Error(counters_denied) and Error(gpu_failed) where the GPU can no longer be used.
void measure_each(const MeasureEvents& events, const MeasureOptions& options);

/// Rows and what a document says of the run.
struct MeasureRun {
    std::vector<Measurement> rows;   ///< in the order of the plans
    std::vector<Timing> timings;     ///< in the order in which the parts ended
    RunningGpu gpu;
    std::string kernel_hash;         ///< where all rows ran one kernel
    std::vector<std::string> notes;  ///< what a reader must know: fewer sets than wanted, a slowed clock
    bool verified() const;           ///< every row was compared and is right
};

/// Compiles, verifies and times the plans of each task, interleaved with each other and with the baselines. A wrong
/// result is a row whose `verified` says so and which has no time; a plan that does not compile one whose `invalid` is
/// the compiler's line. Throws RequestError where a plan is not buildable, Error(no_gpu, gpu_failed or interrupted),
/// Error(counters_denied) where counters are asked for and not to be had, and Error(compile_failed) where no
/// plan compiles.
MeasureRun measure(std::vector<MeasureTask> tasks, const MeasureOptions& options);

}  // namespace rooftile
