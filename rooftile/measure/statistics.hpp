// Medians and how far they can be trusted, without assuming a distribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rooftile {

/// A median and an interval that contains the true one with probability `coverage`. Unit: the samples'.
struct MedianInterval {
    double median = 0, low = 0, high = 0;
    double coverage = 0;  ///< of [low, high]; below 0.95 where there are fewer than 6 samples
    std::int64_t samples = 0;
};

/// The middle sample, or the mean of the two in the middle; 0 of none. Takes its own copy.
double median(std::vector<double> samples);

/// The arithmetic mean; NaN of none.
double mean(std::span<const double> values);

/// The value that `share` of `sorted`, one at least, lie at or below: nearest rank.
double nearest_rank(std::span<const double> sorted, double share);

/// The interval between two order statistics: each of n independent samples lies below the true median
/// with probability 1/2, so the number that does is binomial. Returns the narrowest symmetric pair of
/// ranks that covers at least 95 %, or [least, most] with its coverage where n < 6.
MedianInterval median_interval(std::vector<double> samples);

/// 1-based rank of the lower end of that interval; the upper end is the same rank from the top.
std::size_t interval_rank(std::size_t samples, double coverage = 0.95);

/// Orders in which `candidates` are visited, one a round: each a permutation, drawn from `seed`, so that
/// nobody always follows the same neighbour or always comes first.
std::vector<std::vector<std::size_t>> interleaved(std::size_t candidates, std::size_t rounds,
                                                  std::uint64_t seed);

}  // namespace rooftile
