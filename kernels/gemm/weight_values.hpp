// What the bits of packed weights and scales are, as numbers.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"
#include "kernels/measure/numbers.hpp"

namespace rooftile {

/// e2m1 of OCP's Microscaling Formats (MX) specification 1.0, 5.3.3, without its sign.
inline constexpr double e2m1_magnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
/// Quantiles of a normal distribution, -1 .. 1, with a 0 among them (Dettmers et al., QLoRA, arXiv 2305.14314, appendix E).
inline constexpr double nf4_numbers[16] = {-1.0,
                                           -0.6961928009986877,
                                           -0.5250730514526367,
                                           -0.39491748809814453,
                                           -0.28444138169288635,
                                           -0.18477343022823334,
                                           -0.09105003625154495,
                                           0.0,
                                           0.07958029955625534,
                                           0.16093020141124725,
                                           0.24611230194568634,
                                           0.33791524171829224,
                                           0.44070982933044434,
                                           0.5626170039176941,
                                           0.7229568362236023,
                                           1.0};
/// Of a weight that is a place in a table.
constexpr double table_number(WeightType weights, unsigned place) {
    if (weights == WeightType::nf4) return nf4_numbers[place];
    return place < 8 ? e2m1_magnitudes[place] : -e2m1_magnitudes[place - 8];
}

/// Of floats.
constexpr Type float_type(WeightType weights) { return weights == WeightType::fp8_e4m3 ? Type::fp8_e4m3 : Type::fp8_e5m2; }

/// A weight before it is scaled, its zero point not taken from it: a table's number is rounded to the activations' type.
constexpr double weight_value(const QuantisedLayout& layout, unsigned bits, Type activations) {
    if (layout.is_table()) return value_of_bits(round_to_bits(table_number(layout.weights, bits), activations), activations);
    return layout.is_float() ? value_of_bits(bits, float_type(layout.weights)) : bits;
}

constexpr int power_bias = 127;  ///< of scales that are powers of two
constexpr double scale_value(const QuantisedLayout& layout, unsigned bits) {
    if (layout.power_scales()) return bits == 0 ? 0 : power_of_two(static_cast<int>(bits) - power_bias);
    return value_of_bits(bits, layout.scale);
}

}  // namespace rooftile
