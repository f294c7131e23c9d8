// Arguments of the kernels that make packed weights and unpack them, laid out alike on host and device.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"

namespace rooftile {

/// The largest weight of an exact check in units of the last bit that any of them has: of floats those of the least four exponents, the others as
/// they are.
constexpr long long exact_units(const QuantisedLayout& layout, Type activations) {
    switch (layout.weights) {
        case WeightType::int8: return 128;
        case WeightType::fp8_e4m3: return 15 * 4;
        case WeightType::fp8_e5m2: return 7 * 4;
        case WeightType::mxfp4: return 12;
        case WeightType::nf4: return activations == Type::bf16 ? 1 << 11 : 1 << 14;  // 1 beside 0.0796, of 8 or 11 digits
        default: return 15;
    }
}

struct QuantisedFill {
    unsigned char* to;
    QuantisedLayout layout;
    long long n, k;
    unsigned long long seed;
    bool exact;  ///< scales are 1 or 2 and their negatives, and weights those of exact_units(), so that sums stay whole
};

struct Dequantise {
    const unsigned char* from;
    void* to;  ///< [n][k], dense
    QuantisedLayout layout;
    long long n, k;
    Type type;  ///< fp32, which holds every weight, or rounded to 16 bits
    Type activations;
    bool rounded = false;  ///< with fp32: each weight is rounded to the activations' type, as unpack_weights does
};

}  // namespace rooftile
