// Times as rows have them, and against each other by the rounds in which both were timed.
#pragma once

#include <optional>

#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/timing.hpp"

namespace rooftile {

/// Time, interval, clock and power of a row; `invalid` where it could not be launched.
void set_times(Measurement& row, const TimedResult& timed);

/// Their time over ours, in the rounds in which both have a block; empty where there is none.
std::optional<MedianInterval> paired_ratio(const TimedResult& theirs, const TimedResult& ours);

/// The paired re-measurement between the plan ranked first and `ours`; empty where there was none between these.
std::optional<Confirmation> confirmation_of(const TimedResult& first, const TimedResult& ours);

/// The first plan's time over that of `ours`: of a paired re-measurement's blocks alone where there was one, which have no part
/// in choosing `ours` as the fastest and so no bias by it; else of the rounds.
std::optional<double> rank1_ratio(const TimedResult& first, const TimedResult& ours);

}  // namespace rooftile
