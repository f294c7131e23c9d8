#include "rooftile/measure/tensor_figures.hpp"

#include <fmt/core.h>

#include "rooftile/machine/query.hpp"

namespace rooftile {

bool set_tensor_figures(Measurement& row, const Bench& bench, double flops, double bytes, std::string_view input,
                        const TimedResult& timed) {
    const double seconds = timed.time_us.median * 1e-6;
    if (seconds <= 0) return false;
    row.tflops = flops / seconds * 1e-12;
    row.gbytes_per_s = bytes / seconds * 1e-9;
    row.roof = "tensor";
    const Machine* machine = bench.options().planned_for();
    if (!machine || !timed.sm_clock_mhz) return true;
    const auto fastest = fastest_instruction(*machine, input, "fp32");
    if (!fastest) return true;
    const double roof = fastest->rate.value * bench.kernels().sms() * *timed.sm_clock_mhz * 1e6 * 1e-12;
    row.roof_fraction = *row.tflops / roof;
    constexpr double clock_error = 0.005;  // of the measured clock, at most
    if (*row.roof_fraction > 1 + clock_error)
        row.invalid = fmt::format("above the roof: {:.1f} TFLOP/s of {:.1f} at the measured {:.0f} MHz", *row.tflops, roof,
                                  *timed.sm_clock_mhz);
    return true;
}

}  // namespace rooftile
