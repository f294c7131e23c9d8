// Division by a number that is known at launch, for index arithmetic in kernels.
#pragma once

namespace rooftile {

/// Division by a number known at launch: one high product and a shift. Exact for dividends below 2^31.
struct Divider {
    unsigned divisor = 1, multiplier = 0, shift = 0;  ///< multiplier 0: the divisor is a power of two

    constexpr unsigned quotient(unsigned n) const {
        if (multiplier == 0) return n >> shift;
        return static_cast<unsigned>((static_cast<unsigned long long>(n) * multiplier) >> 32) >> shift;
    }
};

/// `divisor` from 1 to 2^31 - 1.
constexpr Divider divider(unsigned divisor) {
    Divider d;
    d.divisor = divisor;
    while ((1ull << d.shift) < divisor) ++d.shift;  // ceil(log2)
    if ((1ull << d.shift) == divisor) return d;
    // 2^(32 + s) / divisor rounded up, s = ceil(log2) - 1: below 2^32, and exact while n < 2^31.
    --d.shift;
    d.multiplier = static_cast<unsigned>(((1ull << (32 + d.shift)) + divisor - 1) / divisor);
    return d;
}

}  // namespace rooftile
