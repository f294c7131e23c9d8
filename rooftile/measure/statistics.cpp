#include "rooftile/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace rooftile {
namespace {

/// Probability that a fair binomial of n trials is below `rank`: P(X <= rank - 1).
double below(std::size_t n, std::size_t rank) {
    // Terms by logarithms: 2^-n leaves a double's range at n = 1075.
    const double count = static_cast<double>(n);
    double sum = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        const double x = static_cast<double>(i);
        sum += std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1)
                        - count * std::log(2.0));
    }
    return sum;
}

}  // namespace

double median(std::vector<double> samples) {
    if (samples.empty()) return 0;
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    if (samples.size() % 2 == 1) return *middle;
    return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

double mean(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

double nearest_rank(std::span<const double> sorted, double share) {
    const auto rank = std::size_t(std::ceil(share * double(sorted.size())));
    return sorted[std::min(sorted.size() - 1, rank > 0 ? rank - 1 : 0)];
}

std::size_t interval_rank(std::size_t samples, double coverage) {
    std::size_t rank = 1;
    while (2 * (rank + 1) <= samples + 1 && 1 - 2 * below(samples, rank + 1) >= coverage) ++rank;
    return rank;
}

MedianInterval median_interval(std::vector<double> samples) {
    MedianInterval result;
    result.samples = static_cast<std::int64_t>(samples.size());
    if (samples.empty()) return result;
    std::sort(samples.begin(), samples.end());
    const std::size_t rank = interval_rank(samples.size());
    result.median = median(samples);
    result.low = samples[rank - 1];
    result.high = samples[samples.size() - rank];
    result.coverage = 1 - 2 * below(samples.size(), rank);
    return result;
}

std::vector<std::vector<std::size_t>> interleaved(std::size_t candidates, std::size_t rounds,
                                                  std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::size_t>> result(rounds, std::vector<std::size_t>(candidates));
    for (auto& order : result) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        // Not std::shuffle: its order for a given seed differs between standard libraries.
        for (std::size_t i = candidates; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    }
    return result;
}

}  // namespace rooftile
