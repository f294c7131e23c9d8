#include "rooftile/core/rank_correlation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace rooftile {
namespace {

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t x, std::size_t y) { return values[x] < values[y]; });
    std::vector<double> ranks(values.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first;
        while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
        for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = double(first + last) / 2;
        first = last + 1;
    }
    return ranks;
}

}  // namespace

double rank_correlation(std::span<const double> x, std::span<const double> y) {
    const std::vector<double> a = ranks_of(x), b = ranks_of(y);
    const double middle = (double(a.size()) - 1) / 2;
    double both = 0, of_a = 0, of_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        both += (a[i] - middle) * (b[i] - middle);
        of_a += (a[i] - middle) * (a[i] - middle);
        of_b += (b[i] - middle) * (b[i] - middle);
    }
    return both / std::sqrt(of_a * of_b);
}

}  // namespace rooftile
