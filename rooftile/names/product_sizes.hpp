// The sizes of a product, from the parameters that its kernel was launched with. Nothing documents these places: each is what drawn
// products of known sizes were found to hold (docs/facts.md 363), and is taken only where the parameters agree with themselves and the grid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/names/kernel_sizes.hpp"

namespace rooftile {

/// `grid`: CTAs of the launch. Empty: no kernel that is known here, or parameters that do not agree.
std::optional<ProductSizes> product_sizes(std::string_view kernel, const ParameterBytes& parameters,
                                          const std::array<std::int32_t, 3>& grid);

}  // namespace rooftile
