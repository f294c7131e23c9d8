// From samples to numbers: medians, lines, mixtures and sums of energies. No GPU here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rooftile/probe/probe.hpp"

namespace rooftile {

/// The sample below which `share` of them lie, between two neighbours by their distance; 0 of none.
double quantile(std::vector<double> samples, double share);

/// A value from samples in `unit`: median, and half the width of the middle 80 %.
ProbeValue probe_value(std::string name, std::string key, std::string unit,
                       const std::vector<double>& samples, std::string note = {});

/// y = intercept + slope x, by least squares.
struct Line {
    double intercept = 0, slope = 0;
};
Line fit_line(std::span<const double> x, std::span<const double> y);

/// Two groups on a line that are each closest to their own mean (two means, from the extremes).
struct TwoGroups {
    double low = 0, high = 0;                ///< their means
    double low_spread = 0, high_spread = 0;  ///< half the middle 80 % of each
    double high_share = 0;                   ///< of all samples
};
TwoGroups two_groups(const std::vector<double>& samples);

/// Coefficients c >= 0 that bring the sum of c[j] * rows[i][j] closest to y[i]; a coefficient that would be
/// negative is 0. `rows` have equal lengths.
std::vector<double> nonnegative_least_squares(const std::vector<std::vector<double>>& rows,
                                              std::span<const double> y);

/// What one SM keeps outstanding: rate = min(bytes in flight, cap) / latency.
struct InFlightFit {
    double latency_s = 0;   ///< of the shallowest rings, by Little's law
    double rate = 0;        ///< B/s, the plateau
    double cap_bytes = 0;   ///< rate x latency
    double cap_spread = 0;  ///< B, by the spreads of both
    double worst = 0;       ///< largest relative error of the formula over the points
};
/// From points of one curve: bytes in flight, B/s of one SM and their spreads.
InFlightFit fit_in_flight(std::span<const double> bytes, std::span<const double> rate,
                          std::span<const double> spread);

/// One stretch of steady load: what it drew and what it did a second.
struct EnergyPoint {
    std::string label;
    double power_w = 0, clock_hz = 0;
    bool held = false;                      ///< the power limit set the clock
    double flops = 0;                       ///< /s, of the matrix units on random data
    double zero_flops = 0;                  ///< /s, on zeros
    double fill_bytes = 0, dram_bytes = 0;  ///< /s: into shared memory from L2; between device memory and L2
    double shared_bytes = 0;  ///< /s: that matrix instructions read from shared memory, random data
};

/// P = static + (f / f_reference)^exponent (FLOP + FLOP on zeros + fill + DRAM + shared), each rate x joules,
/// as machine files have them: joules are those at the reference clock, which is clock.sustained.
struct EnergyFit {
    double static_w = 0;
    double flop_j = 0, zero_flop_j = 0, fill_j = 0, dram_j = 0, shared_j = 0;
    double exponent = 0;
    std::vector<double> residual_w;  ///< measured - fitted, a point
    double rms_w = 0;
};
EnergyFit fit_energy(std::span<const EnergyPoint> points, double reference_hz, double exponent);
/// The exponent of 0, 0.05, ..., 4 that leaves least.
EnergyFit fit_energy(std::span<const EnergyPoint> points, double reference_hz);
/// The least and the most of every term where one point after the other is left out, the exponent fitted
/// anew; and from these the jackknife's standard error (Efron, The Jackknife, the Bootstrap, 1982, chapter 3):
/// what another set of such loads would differ by. A single one left out moves a term by far less.
struct EnergySpread {
    EnergyFit least, most, error;
};
EnergySpread leave_one_out(std::span<const EnergyPoint> points, double reference_hz);

/// Watts of the points that the power limit held.
std::vector<double> sustained_power(std::span<const EnergyPoint> points);

}  // namespace rooftile
