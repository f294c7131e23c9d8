// Numbers as people read them. Never depends on the process's locale: the decimal sign is a point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooftile {

/// A whole number in full ("245760"); any other with `digits` significant digits ("47.41").
/// "not finite" for NaN and the infinities.
std::string number_text(double value, int digits = 4);

/// `value` with a decimal SI prefix and `digits` significant digits: (184549376, "B") is "184.5 MB".
/// A whole number below 10000 keeps its digits: (4096, "B") is "4096 B".
std::string scaled_text(double value, std::string_view unit, int digits = 4);

/// An input as it was given: at most 6 significant digits without trailing zeros, B/s and FLOP/s with a
/// prefix: (3.24, "TB/s") is "3.24 TB/s", (8.5966848e14, "FLOP/s") is "859.668 TFLOP/s".
std::string input_text(double value, std::string_view unit);

/// A time given in microseconds in the unit it reads best in: "712.3 us", "1.204 ms".
std::string time_text(double microseconds);

/// The same, and any other number, where it may be unknown: "?".
inline std::string time_or_unknown(const std::optional<double>& microseconds) {
    return microseconds ? time_text(*microseconds) : "?";
}
template <class T>
std::string number_or_unknown(const std::optional<T>& value) {
    return value ? number_text(double(*value)) : "?";
}

/// A number's text and its unit, where it has one.
inline std::string with_unit(const std::string& number, const std::string& unit) {
    return unit.empty() || unit == "1" ? number : number + " " + unit;
}

/// A share as a percentage: 0.974 is "97.4 %".
std::string percent_text(double share);

/// What is off by a share of itself: 0.031 is "+3.1 %", "-" where it is unknown.
std::string signed_percent(const std::optional<double>& share);

}  // namespace rooftile
