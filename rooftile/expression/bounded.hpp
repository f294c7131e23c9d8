// A value in fp64 with the greatest error that fp32 arithmetic by our kernels may have made of it.
#pragma once

#include <limits>
#include <vector>

namespace rooftile {

/// Inf as error: undecided, as where a comparison or an overflow hangs on rounding.
struct Bounded {
    double value = 0;
    double error = 0;
};

/// The elements of one tensor, dense.
using BoundedTensor = std::vector<Bounded>;

namespace bounds {
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double unit = 1.0 / 16777216;          // 2^-24: half a unit in the last place of fp32
inline constexpr double tiny = 1.1754943508222875e-38;  // 2^-126: what flushing denormals may lose
inline constexpr double largest = 3.4028234663852886e38;
}  // namespace bounds

}  // namespace rooftile
