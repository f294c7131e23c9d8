// The second stage of a comparison: fresh blocks of the plan ranked first and of the one that was fastest.
//
// The fastest of several near-equal plans looks faster than it is, since noise helped to choose it. Blocks that
// came after the choice had no part in it: what they say of the two has no such bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rooftile/measure/statistics.hpp"

namespace rooftile {

/// One block (in cold mode: launch). Spans of them are in the order of rounds.
struct RoundTime {
    std::size_t round = 0;
    double us = 0;  ///< of one launch
};

/// Their time over ours, in the rounds in which both have a block; empty where there is none.
std::optional<MedianInterval> round_ratio(std::span<const RoundTime> theirs, std::span<const RoundTime> ours);

/// When there is a paired re-measurement, and how long. Nothing here looks at which of the two is ahead in it, so that
/// stopping early favours neither.
struct ConfirmationOptions {
    std::size_t plans = 0;   ///< the first so many competitors are plans of one problem, best ranked first
    std::size_t rounds = 0;  ///< at most, a block of both in each; 0: no paired re-measurement
    std::size_t least = 4;   ///< rounds, before the error or the time ends it
    double above = 1.01;  ///< no paired re-measurement where the fastest plan is ahead of the first by less
    double error = 0.005;    ///< of the ratio: enough
    double seconds = 1.75;   ///< no further round after so long
};

/// Which plan is the fastest by the paired ratio of the first plan's blocks to its own (`rounds`, of every
/// plan); empty where none is ahead of the first by more than `above`.
std::optional<std::size_t> ahead_of_first(std::span<const std::vector<RoundTime>> rounds, double above);

/// Both, in the order of round `round`: each goes first in every other one, so that neither gains by what
/// runs before it.
std::vector<std::size_t> confirmation_order(std::size_t first, std::size_t other, std::size_t round,
                                            std::uint64_t seed);

/// Of the logs of the paired ratios: their mean, and its standard error.
struct LogRatio {
    double mean = 0, error = 0;
    std::size_t pairs = 0;
};
/// Empty below 2 pairs.
std::optional<LogRatio> log_ratio(std::span<const RoundTime> theirs, std::span<const RoundTime> ours);

/// Standard error of the median of the paired ratios, as a share of it; empty below 2 pairs.
std::optional<double> ratio_error(std::span<const RoundTime> theirs, std::span<const RoundTime> ours);

/// Whether a paired re-measurement with these blocks, which took `seconds`, is over.
bool confirmation_over(std::span<const RoundTime> first, std::span<const RoundTime> other, double seconds,
                       const ConfirmationOptions& options);

/// What a paired re-measurement found. Not among the samples of the plans' times.
struct Confirmation {
    MedianInterval ratio;    ///< the first plan's time over this one's
    double first_ratio = 0;  ///< the same of the rounds that chose it: biased upwards
};

}  // namespace rooftile
