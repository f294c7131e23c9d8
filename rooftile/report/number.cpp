#include "rooftile/report/number.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

namespace rooftile {
namespace {

/// Largest double up to which every whole number is exact.
constexpr double exact_limit = 9007199254740992.0;

bool whole(double value) { return std::floor(value) == value && std::fabs(value) <= exact_limit; }

std::string digits_text(double value, std::chars_format format, int precision) {
    std::array<char, 400> buffer;
    auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
    return std::string(buffer.data(), end.ptr);
}

/// `digits` significant digits, trailing zeros kept: a column of them lines up.
std::string significant(double value, int digits) {
    if (value == 0) return "0";
    double size = std::fabs(value);
    if (size < 1e-4 || size >= 1e9) return digits_text(value, std::chars_format::scientific, digits - 1);
    // Digits before the point after rounding: 0.99996 is written as 1.000.
    const int before = int(std::floor(std::log10(size * (1 + 0.5 * std::pow(10.0, -digits))))) + 1;
    return digits_text(value, std::chars_format::fixed, std::max(0, digits - before));
}

/// Divides `value` by 1000 until it is below `edge`, and returns the SI prefix that this makes.
std::string_view take_prefix(double& value, double edge) {
    static constexpr std::string_view prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    std::size_t i = 0;
    for (; std::fabs(value) >= edge && i + 1 < std::size(prefixes); ++i) value /= 1000;
    return prefixes[i];
}

}  // namespace

std::string number_text(double value, int digits) {
    if (!std::isfinite(value)) return "not finite";
    if (whole(value)) return digits_text(value, std::chars_format::fixed, 0);
    return significant(value, digits);
}

std::string scaled_text(double value, std::string_view unit, int digits) {
    if (!std::isfinite(value)) return "not finite";
    if (std::fabs(value) < 1e4 && whole(value)) return number_text(value) + " " + std::string(unit);
    // 999.95 would round to "1000": the next prefix reads better.
    const std::string_view prefix = take_prefix(value, 1000 - 0.5 * std::pow(10.0, 3 - digits));
    return significant(value, digits) + " " + std::string(prefix) + std::string(unit);
}

std::string input_text(double value, std::string_view unit) {
    if (!std::isfinite(value)) return "not finite";
    std::string_view prefix;
    if ((unit == "FLOP/s" || unit == "B/s") && std::fabs(value) >= 1e4) prefix = take_prefix(value, 1000);
    const std::string number =
        whole(value) ? number_text(value) : digits_text(value, std::chars_format::general, 6);
    return unit.empty() || unit == "1" ? number : number + " " + std::string(prefix) + std::string(unit);
}

std::string time_text(double microseconds) {
    if (!std::isfinite(microseconds)) return "not finite";
    if (microseconds >= 999950) return significant(microseconds / 1e6, 4) + " s";
    if (microseconds >= 9999.5) return significant(microseconds / 1e3, 4) + " ms";
    return significant(microseconds, 4) + " us";
}

std::string percent_text(double share) {
    if (!std::isfinite(share)) return "not finite";
    return digits_text(share * 100, std::chars_format::fixed, 1) + " %";
}

std::string signed_percent(const std::optional<double>& share) {
    return share ? fmt::format("{:+.1f} %", 100 * *share) : "-";
}

}  // namespace rooftile
