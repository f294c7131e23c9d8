// From a timing to the figures of a row, and the roofs that refuse impossible ones.
#include <fmt/core.h>

#include "rooftile/machine/query.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile {

namespace {

/// Clock and rate are measured and published to about a percent.
constexpr double roof_slack = 1.02;

/// What a cold run must read from DRAM: A and B. C is left out, since it may still lie in L2 at the end.
double cold_dram_bytes(const GemmProblem& p) {
    const double a = static_cast<double>(p.m) * static_cast<double>(p.k) * bytes_of(p.a_type);
    const double b = static_cast<double>(p.n) * static_cast<double>(p.k) * bytes_of(p.b_type);
    return a + b;
}

}  // namespace

Roofs roofs_of(const Machine* machine, const GemmPlan& plan, int sms) {
    Roofs roofs;
    if (!machine) return roofs;
    const std::string_view family = plan.config.kernel == GemmKernel::sm90_gemm ? "wgmma" : "mma_sync";
    const std::string rate =
        rate_key(family, name_of(plan.problem.a_type), name_of(plan.problem.accumulate_type));
    if (const auto flops = flops_per_cycle_per_sm(*machine, rate)) roofs.flops_per_cycle = flops->value * sms;
    if (const auto dram = dram_bandwidth(*machine)) roofs.dram_bytes_per_s = dram->value;
    return roofs;
}

void set_figures(Measurement& row, const TimedResult& timed, const Roofs& roofs) {
    row.time_us = timed.time_us.median;
    row.time_us_low = timed.time_us.low;
    row.time_us_high = timed.time_us.high;
    row.samples = timed.time_us.samples;
    row.sm_clock_mhz = timed.sm_clock_mhz;
    row.power_w = timed.gpu.power_w;
    if (!timed.failure.empty()) row.invalid = timed.failure;
    if (row.time_us <= 0) return;

    const GemmProblem& problem = row.plan.problem;
    const double seconds = row.time_us * 1e-6;
    row.tflops = problem.flops().value / seconds * 1e-12;
    row.gbytes_per_s = problem.compulsory_bytes().value / seconds * 1e-9;
    if (roofs.flops_per_cycle && row.sm_clock_mhz) {
        const double roof = *roofs.flops_per_cycle * *row.sm_clock_mhz * 1e6 * 1e-12;
        row.roof_fraction = row.tflops / roof;
        if (*row.roof_fraction > roof_slack) {
            row.invalid = fmt::format("above the roof: {:.1f} TFLOP/s of {:.1f} at the measured {:.0f} MHz",
                                      row.tflops, roof, *row.sm_clock_mhz);
        }
    }
    if (row.mode == Mode::cold && roofs.dram_bytes_per_s) {
        const double rate = cold_dram_bytes(problem) / seconds;
        if (rate > roof_slack * *roofs.dram_bytes_per_s) {
            row.invalid =
                fmt::format("above the roof: A and B at {:.0f} GB/s of DRAM's {:.0f}, with L2 overwritten",
                            rate * 1e-9, *roofs.dram_bytes_per_s * 1e-9);
        }
    }
}

}  // namespace rooftile
