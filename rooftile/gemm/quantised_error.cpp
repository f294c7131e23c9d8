#include "rooftile/gemm/quantised_error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rooftile {
namespace {

constexpr double farthest = 12, step = 1.0 / 32;  // of a normal number nothing is beyond; of an integral

/// Mean and mean square of a number whose distribution function is `below`.
template <class Below>
std::array<double, 2> moments(Below below) {
    double mean = 0, square = 0;
    for (double x = step / 2; x < farthest; x += step) {
        const double above = 1 - below(x), under = below(-x);
        mean += (above - under) * step;
        square += 2 * x * (above + under) * step;
    }
    return {mean, square};
}

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

// Steps are short beside the distribution, so that errors are even over one: a twelfth of its square. The group's ends have none.
double rounding_error(int steps, double group, bool of_range) {
    double square = 0;
    if (of_range) {
        // The least and the greatest of many hardly know of each other.
        const auto [mean, of_greatest] = moments([&](double x) { return std::pow(normal_below(x), group); });
        square = 2 * of_greatest + 2 * mean * mean;
    } else {
        square = 4 * moments([&](double x) { return x < 0 ? 0 : std::pow(std::erf(x / std::numbers::sqrt2), group); })[1];
    }
    const double exact = std::min(of_range ? 2.0 : 1.0, group);
    return square / (steps * steps) / 12 * (group - exact) / group;
}

double rounding_error(const QuantisedLayout& layout, std::int64_t k) {
    const bool of_range = layout.zeros != ZeroType::none;
    const int all = int(layout.mask()), symmetric = all - 1;  // 0 .. 15, and -7 .. 7
    return rounding_error(of_range ? all : symmetric, double(layout.group == 0 ? k : std::min<std::int64_t>(layout.group, k)), of_range);
}

std::array<WeightsHeld, 3> weights_held(const GemmProblem& p) {
    const auto held = [&](const char* name, QuantisedLayout layout, int group) -> WeightsHeld {
        layout.group = group;
        return {name, double(layout.bytes(p.n, p.k)), rounding_error(layout, p.k)};
    };
    QuantisedLayout four = p.quantised, eight = p.quantised;
    if (four.bits() == 8) four.weights = WeightType::int4;
    eight.weights = WeightType::int8, eight.zeros = ZeroType::none;
    return {held("8 bits", eight, 128), held("4 bits, groups of 128", four, 128), held("4 bits, groups of 32", four, 32)};
}

}  // namespace rooftile
