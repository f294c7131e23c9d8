// What every GPU that CUDA runs on has alike.
#pragma once

namespace rooftile {

inline constexpr int warp_threads = 32;

}  // namespace rooftile
