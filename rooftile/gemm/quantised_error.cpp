#include "rooftile/gemm/quantised_error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernels/gemm/weight_values.hpp"

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
double normal_within(double x) { return x <= 0 ? 0 : std::erf(x / std::numbers::sqrt2); }

/// The numbers that a scale of 1 gives, whose neighbours are not evenly apart.
class Codes {
  public:
    explicit Codes(const QuantisedLayout& layout) : layout_(layout) {
        most_ = layout.is_table() ? table_number(layout.weights, layout.weights == WeightType::nf4 ? 15 : 7)
                                  : value_of_bits(float_format(float_type(layout.weights)).infinity() - 1, float_type(layout.weights));
    }
    /// `x` as it is held in a group whose largest magnitude is `largest`. Powers of two are OCP's: the largest's exponent less that of the largest code.
    double held(double x, double largest) const {
        const double scale = layout_.power_scales() ? std::exp2(std::floor(std::log2(largest)) - std::floor(std::log2(most_))) : largest / most_;
        return nearest(std::clamp(x / scale, -most_, most_)) * scale;
    }

  private:
    double nearest(double x) const {
        if (layout_.is_float()) return value_of_bits(round_to_bits(x, float_type(layout_.weights)), float_type(layout_.weights));
        double best = table_number(layout_.weights, 0);
        for (unsigned place = 1; place < 16; ++place)
            if (const double number = table_number(layout_.weights, place); std::abs(x - number) < std::abs(x - best)) best = number;
        return best;
    }

    QuantisedLayout layout_;
    double most_;
};

/// Over what a group's largest magnitude may be, the error of that one and of the others, which are below it.
double code_error(const QuantisedLayout& layout, double group) {
    constexpr double fine = 1.0 / 128, coarse = 1.0 / 8;
    const Codes codes(layout);
    double all = 0;
    for (double largest = coarse / 2; largest < farthest; largest += coarse) {
        const double share = std::pow(normal_within(largest + coarse / 2), group) - std::pow(normal_within(largest - coarse / 2), group);
        if (share < 1e-6) continue;
        double error = 0, weight = 0;
        for (double x = -largest + fine / 2; x < largest; x += fine) {
            const double density = std::exp(-x * x / 2);
            error += density * std::pow(codes.held(x, largest) - x, 2), weight += density;
        }
        all += share * ((group - 1) * error / weight + std::pow(codes.held(largest, largest) - largest, 2)) / group;
    }
    return all;
}

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
    const double group = double(layout.group == 0 ? k : std::min<std::int64_t>(layout.group, k));
    if (!layout.is_whole()) return code_error(layout, group);
    const bool of_range = layout.zeros != ZeroType::none;
    const int all = int(layout.mask()), symmetric = all - 1;  // 0 .. 15, and -7 .. 7
    return rounding_error(of_range ? all : symmetric, group, of_range);
}

std::array<WeightsHeld, 3> weights_held(const GemmProblem& p) {
    const auto held = [&](const char* name, QuantisedLayout layout, int group) -> WeightsHeld {
        layout.group = group;
        return {name, double(layout.bytes(p.n * p.b_matrices_read(), p.k)), rounding_error(layout, p.k)};
    };
    QuantisedLayout four = p.quantised, eight = p.quantised;
    if (!four.is_whole() || four.bits() == 8) four.weights = WeightType::int4;
    eight.weights = WeightType::int8, eight.zeros = ZeroType::none;
    return {held("8 bits", eight, 128), held("4 bits, groups of 128", four, 128), held("4 bits, groups of 32", four, 32)};
}

}  // namespace rooftile
