// One problem of an operation on a readied GPU: its tensors, what its results must be, what it is measured beside. The
// measure station calls these in the order in which they stand; what a plan's launch is, it knows itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/verifier.hpp"

namespace rooftile {

/// A baseline as something that can be launched.
struct BaselineLaunch {
    std::string key;
    TensorLaunch launch;
};

class Trial {
  public:
    virtual ~Trial() = default;

    /// What results must be, and what inputs are filled with. Lives as long as the trial.
    virtual const Reference& reference() const = 0;
    /// The same of results of `plan`, where plans of one problem round what they read unlike. Inputs are those of reference().
    virtual const Reference& reference_of(const Plan& /*plan*/) const { return reference(); }

    /// What is timed in the same rounds as `rows`, which are ours, on `sets`, which outlive it.
    virtual std::vector<TimedWork> add_baselines(std::span<Measurement* const> rows, const TensorSets& sets,
                                                 std::vector<std::string>& notes, std::vector<Timing>& timings) = 0;
    /// The times of what add_baselines() gave, in its order.
    virtual void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) = 0;
    /// Rates, roof and baselines of our `index`-th kernel, whose times are set; `invalid` where they cannot be.
    virtual void set_figures(Measurement& row, std::size_t index, const TimedResult& timed,
                             std::vector<std::string>& notes) = 0;
    /// The baseline whose counters stand beside ours; on the same tensors.
    virtual std::optional<BaselineLaunch> counted_baseline() { return std::nullopt; }
    /// What else the row says (`more`, `own`): the last call.
    virtual void finish(Measurement&, std::size_t /*index*/) {}
};

}  // namespace rooftile
