// How far predictions are off, summed up in one way everywhere: the signed mean next to the mean size, which hides a bias.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace rooftile {

/// Several errors, each predicted / measured - 1, or predicted less measured in microseconds.
struct PredictionError {
    double bias = 0;          ///< their mean
    double mean = 0;          ///< the mean of their sizes
    double p95 = 0, max = 0;  ///< 95th percentile and largest of the sizes
};
/// Empty of no errors.
std::optional<PredictionError> prediction_error(std::span<const double> errors);

/// Shares: "-4.2 % mean, 6.9 % absolute".
std::string prediction_error_text(double bias, double mean);
inline std::string prediction_error_text(const PredictionError& error) { return prediction_error_text(error.bias, error.mean); }
/// Microseconds: "-0.42 us mean, 0.69 us absolute".
std::string prediction_error_us_text(double bias_us, double mean_us);

}  // namespace rooftile
