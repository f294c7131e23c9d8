// What rounding weights to few bits costs: the error of normal weights, for time to be weighed against.
#pragma once

#include <array>
#include <cstdint>

#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// Of normal weights of variance 1 rounded to the nearest of steps + 1 numbers, even steps apart, that reach the group's largest: the
/// mean squared error. `of_range`: they reach from its least to its greatest; else as far to both sides of 0.
double rounding_error(int steps, double group, bool of_range);
/// The same of a layout's weights; of floats and tables each rounded to the nearest that its group's scale gives.
double rounding_error(const QuantisedLayout& layout, std::int64_t k);

/// Other ways to hold the same weights.
struct WeightsHeld {
    const char* bits;
    double bytes, error;
};
/// 8 bits with a scale a 128 of K; 4 bits in groups of 128 and of 32, otherwise as the problem's where these are whole numbers.
std::array<WeightsHeld, 3> weights_held(const GemmProblem& problem);

}  // namespace rooftile
