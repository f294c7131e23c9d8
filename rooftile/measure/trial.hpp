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

namespace rooftile {

/// Puts one launch on tensors, in the order of Operation::tensors(), into a stream.
using TensorLaunch = std::function<void(Stream stream, std::span<void* const> tensors)>;

/// A baseline as something that can be launched.
struct BaselineLaunch {
    std::string key;
    TensorLaunch launch;
};

class Trial {
  public:
    virtual ~Trial() = default;

    /// The results of `launches` beside the fp64 reference, one verification each. What is wrong is a value.
    virtual std::vector<Verification> verify(std::span<const TensorLaunch> launches) = 0;
    /// Cases beyond a first look, added to what verify() found.
    virtual void verify_special(std::span<Verification>, std::span<const TensorLaunch>) {}

    /// Buffer sets that timed launches rotate over, filled; how many. A line in `notes` where L2 may hold part of them.
    /// Throws Error(gpu_failed) where not even one fits.
    virtual std::int64_t make_sets(std::vector<std::string>& notes) = 0;
    virtual std::span<void* const> tensors(std::int64_t set) const = 0;
    /// What the timed launches of our `index`-th kernel leave is to be judged: adds what that needs to `work`.
    virtual void watch(TimedWork&, std::size_t /*index*/) {}

    /// What is timed in the same rounds as `rows`, which are ours.
    virtual std::vector<TimedWork> add_baselines(std::span<Measurement* const> rows, std::vector<std::string>& notes,
                                                 std::vector<Timing>& timings) = 0;
    /// The times of what add_baselines() gave, in its order.
    virtual void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) = 0;
    /// Rates, roof and baselines of our `index`-th kernel, whose times are set; `invalid` where they cannot be.
    virtual void set_figures(Measurement& row, std::size_t index, const TimedResult& timed,
                             std::vector<std::string>& notes) = 0;
    /// Whether what timed launches left was right: sets `verified.timed`. Nothing where nothing was watched.
    virtual void judge_timed(std::span<Measurement* const>, std::span<const TensorLaunch>) {}
    /// The baseline whose counters stand beside ours; on the same tensors.
    virtual std::optional<BaselineLaunch> counted_baseline() { return std::nullopt; }
    /// What else the row says (`more`, `own`): the last call.
    virtual void finish(Measurement&, std::size_t /*index*/) {}
};

}  // namespace rooftile
