#include "rooftile/picture/axis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// 1, 2 or 5 times a power of ten.
double round_step(double about) {
    const double power = std::pow(10.0, std::floor(std::log10(about))), part = about / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

std::string tick_text(double value) {
    if (value != 0 && std::fabs(value) >= 1e5) return scaled_text(value, "", 3);
    return fmt::format("{:.6g}", std::fabs(value) < 1e-12 ? 0 : value);
}

std::vector<std::pair<double, std::string>> linear_ticks(const PictureAxis& axis) {
    constexpr double about = 5;  // of them
    std::vector<std::pair<double, std::string>> out;
    if (!(axis.high > axis.low)) return out;
    const double step = round_step((axis.high - axis.low) / about);
    for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; ++i)
        out.emplace_back(i * step + 0.0, tick_text(i * step));  // 0.0: no negative zero
    return out;
}

/// All of 1, 2, 5 where there are few decades, else decades.
std::vector<std::pair<double, std::string>> log_ticks(const PictureAxis& axis) {
    std::vector<std::pair<double, std::string>> out;
    const double decades = std::log10(axis.high / axis.low);
    for (int e = int(std::floor(std::log10(axis.low))); e <= int(std::ceil(std::log10(axis.high))); ++e)
        for (const int lead : {1, 2, 5}) {
            const double value = lead * std::pow(10.0, e);
            const bool wanted = lead == 1 || decades < 2.5;
            if (wanted && value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9)) out.emplace_back(value, tick_text(value));
        }
    return out;
}

}  // namespace

double place_on(const PictureAxis& axis, double value) {
    if (axis.scale == AxisScale::names) return value / double(std::max<std::size_t>(1, axis.names.size()));
    if (axis.scale == AxisScale::log) return std::log(std::max(value, 1e-300) / axis.low) / std::log(axis.high / axis.low);
    return (value - axis.low) / (axis.high - axis.low);
}

std::vector<std::pair<double, std::string>> ticks_of(const PictureAxis& axis) {
    if (!axis.ticks.empty()) return axis.ticks;
    if (axis.scale == AxisScale::linear) return linear_ticks(axis);
    if (axis.scale == AxisScale::log) return log_ticks(axis);
    std::vector<std::pair<double, std::string>> out;
    for (std::size_t i = 0; i < axis.names.size(); ++i) out.emplace_back(double(i) + 0.5, axis.names[i]);
    return out;
}

std::string power_text(int exponent) {
    static constexpr const char* units[] = {"", " Ki", " Mi", " Gi", " Ti"};
    if (exponent < 14) return std::to_string(1 << std::max(0, exponent));
    return std::to_string(1 << exponent % 10) + units[std::min(exponent / 10, 4)];
}

PictureAxis octave_axis(std::string title, double least, double most) {
    const int first = int(std::floor(std::log2(std::max(1.0, least)))), last = int(std::floor(std::log2(std::max(1.0, most)))) + 1;
    PictureAxis axis{.title = std::move(title), .scale = AxisScale::log, .low = std::exp2(first), .high = std::exp2(last)};
    for (int e = first; e <= last; ++e) axis.ticks.emplace_back(std::exp2(e), power_text(e));
    return axis;
}

}  // namespace rooftile
