#pragma once

#include <cstddef>
#include <functional>

namespace rooftile {

/// Runs `work(i)` for i in [0, count) in up to `threads` threads (0: one a core). Where some throw all others still run; then the exception of
/// the least i is thrown.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace rooftile
