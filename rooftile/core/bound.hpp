// What limits a predicted time.
#pragma once

#include <cstdint>
#include <string_view>

namespace rooftile {

enum class Bound : std::uint8_t { tensor, shared, l2, dram, issue, latency, launch };
std::string_view name_of(Bound bound);

}  // namespace rooftile
