#include "rooftile/report/prediction_error.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {

std::optional<PredictionError> prediction_error(std::span<const double> errors) {
    if (errors.empty()) return std::nullopt;
    std::vector<double> sizes;
    for (const double error : errors) sizes.push_back(std::fabs(error));
    std::sort(sizes.begin(), sizes.end());
    return PredictionError{mean(errors), mean(sizes), nearest_rank(sizes, 0.95), sizes.back()};
}

std::string prediction_error_text(double bias, double mean) {
    return fmt::format("{} mean, {} absolute", signed_percent(bias), percent_text(mean));
}

std::string prediction_error_us_text(double bias_us, double mean_us) {
    return fmt::format("{:+.2f} us mean, {:.2f} us absolute", bias_us, mean_us);
}

}  // namespace rooftile
