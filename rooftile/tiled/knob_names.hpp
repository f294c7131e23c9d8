// Words of choices that several operations' knobs have.
#pragma once

#include <span>
#include <string_view>

#include "kernels/types.hpp"

namespace rooftile {

inline std::span<const std::string_view> knob_names(Schedule) {
    static constexpr std::string_view names[] = {"cooperative", "pingpong"};
    return names;
}

inline std::span<const std::string_view> knob_names(Order) {
    static constexpr std::string_view names[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};
    return names;
}

}  // namespace rooftile
