// Elements of tensors as bytes in memory, on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rooftile/expression/element.hpp"

namespace rooftile {

/// Bits of `values` as elements in memory, rounded to nearest even.
std::vector<char> elements_of_values(std::span<const double> values, Element element);
/// The exact values of `count` elements at `bytes`.
std::vector<double> values_of_elements(const char* bytes, std::int64_t count, Element element);

/// Standard normal numbers as `element` holds them (bool: even odds); the same for the same seed.
std::vector<double> random_values(std::int64_t count, Element element, std::uint64_t seed);

}  // namespace rooftile
