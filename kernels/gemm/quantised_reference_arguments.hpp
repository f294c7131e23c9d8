// Arguments of the kernels that make packed weights and unpack them, laid out alike on host and device.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"

namespace rooftile {

struct QuantisedFill {
    unsigned char* to;
    QuantisedLayout layout;
    long long n, k;
    unsigned long long seed;
    bool exact;  ///< scales are 1 or 2 and their negatives, so that sums stay whole
};

struct Dequantise {
    const unsigned char* from;
    void* to;  ///< [n][k], dense
    QuantisedLayout layout;
    long long n, k;
    Type type;  ///< fp32, which holds every weight, or rounded to 16 bits
};

}  // namespace rooftile
