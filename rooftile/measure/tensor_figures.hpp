// The figures of a row whose work is matrix products, and the roof that refuses impossible ones.
#pragma once

#include <string_view>

#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/timing.hpp"

namespace rooftile {

/// Writes into `row` what `flops` and `bytes` in the time of `timed` come to, beside the fastest rate for operands of type `input` with
/// sums in fp32 at the measured clock; a row above that is invalid. False, and nothing written, where nothing was timed.
bool set_tensor_figures(Measurement& row, const Bench& bench, double flops, double bytes, std::string_view input,
                        const TimedResult& timed);

}  // namespace rooftile
