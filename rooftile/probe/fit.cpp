#include "rooftile/probe/fit.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "rooftile/measure/statistics.hpp"

namespace rooftile {

double quantile(std::vector<double> samples, double share) {
    if (samples.empty()) return 0;
    std::sort(samples.begin(), samples.end());
    const double rank = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(rank);
    if (below + 1 >= samples.size()) return samples.back();
    const double part = rank - static_cast<double>(below);
    return samples[below] + part * (samples[below + 1] - samples[below]);
}

ProbeValue probe_value(std::string name, std::string key, std::string unit,
                       const std::vector<double>& samples, std::string note) {
    ProbeValue value;
    value.name = std::move(name);
    value.key = std::move(key);
    value.unit = std::move(unit);
    value.value = median(samples);
    value.spread = (quantile(samples, 0.9) - quantile(samples, 0.1)) / 2;
    value.samples = static_cast<int>(samples.size());
    value.note = std::move(note);
    return value;
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
    assert(x.size() == y.size() && x.size() >= 2);
    const auto n = static_cast<double>(x.size());
    const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
    const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
    double xx = 0, xy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    const double slope = xx > 0 ? xy / xx : 0;
    return {mean_y - slope * mean_x, slope};
}

TwoGroups two_groups(const std::vector<double>& samples) {
    TwoGroups groups;
    if (samples.empty()) return groups;
    double low = *std::min_element(samples.begin(), samples.end());
    double high = *std::max_element(samples.begin(), samples.end());
    std::vector<double> below, above;
    for (int round = 0; round < 100; ++round) {
        below.clear(), above.clear();
        for (double s : samples) (s <= (low + high) / 2 ? below : above).push_back(s);
        const double was_low = low, was_high = high;
        const auto mean = [](const std::vector<double>& v, double otherwise) {
            return v.empty() ? otherwise
                             : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
        };
        low = mean(below, low);
        high = mean(above, high);
        if (low == was_low && high == was_high) break;
    }
    const auto spread = [](const std::vector<double>& v) {
        return (quantile(v, 0.9) - quantile(v, 0.1)) / 2;
    };
    groups.low = low;
    groups.high = above.empty() ? low : high;
    groups.low_spread = spread(below);
    groups.high_spread = spread(above);
    groups.high_share = static_cast<double>(above.size()) / static_cast<double>(samples.size());
    return groups;
}

namespace {

/// Solves a x = b for a symmetric positive semidefinite a; a direction without weight gets 0.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
    const std::size_t n = b.size();
    std::vector<bool> free(n, false);
    for (std::size_t column = 0; column < n; ++column) {
        std::size_t pivot = column;
        for (std::size_t row = column + 1; row < n; ++row)
            if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
        std::swap(a[pivot], a[column]);
        std::swap(b[pivot], b[column]);
        if (std::abs(a[column][column]) < 1e-12) {
            free[column] = true;
            continue;
        }
        for (std::size_t row = 0; row < n; ++row) {
            if (row == column) continue;
            const double factor = a[row][column] / a[column][column];
            if (factor == 0) continue;
            for (std::size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
            b[row] -= factor * b[column];
        }
    }
    std::vector<double> x(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        if (!free[i]) x[i] = b[i] / a[i][i];
    return x;
}

/// The unconstrained answer over the columns in `used`; columns are scaled to length 1 first.
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows, std::span<const double> y,
                                  const std::vector<std::size_t>& used) {
    const std::size_t n = used.size();
    std::vector<double> scale(n, 0);
    for (std::size_t j = 0; j < n; ++j) {
        for (const auto& row : rows) scale[j] += row[used[j]] * row[used[j]];
        scale[j] = scale[j] > 0 ? 1 / std::sqrt(scale[j]) : 0;
    }
    std::vector<std::vector<double>> a(n, std::vector<double>(n, 0));
    std::vector<double> b(n, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            const double x = rows[i][used[j]] * scale[j];
            b[j] += x * y[i];
            for (std::size_t k = 0; k < n; ++k) a[j][k] += x * rows[i][used[k]] * scale[k];
        }
    }
    std::vector<double> x = solve(std::move(a), std::move(b));
    for (std::size_t j = 0; j < n; ++j) x[j] *= scale[j];
    return x;
}

double squared_error(const std::vector<std::vector<double>>& rows, std::span<const double> y,
                     const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double fitted = std::inner_product(x.begin(), x.end(), rows[i].begin(), 0.0);
        sum += (y[i] - fitted) * (y[i] - fitted);
    }
    return sum;
}

}  // namespace

std::vector<double> nonnegative_least_squares(const std::vector<std::vector<double>>& rows,
                                              std::span<const double> y) {
    assert(!rows.empty() && rows.size() == y.size());
    const std::size_t n = rows.front().size();
    assert(n <= 12 && "every subset of the columns is tried");
    // The best nonnegative answer is the unconstrained one over those columns that it does not set to 0.
    std::vector<double> best(n, 0);
    double least = squared_error(rows, y, best);
    for (unsigned subset = 1; subset < 1u << n; ++subset) {
        std::vector<std::size_t> used;
        for (std::size_t j = 0; j < n; ++j)
            if (subset >> j & 1) used.push_back(j);
        const std::vector<double> x = least_squares(rows, y, used);
        if (std::any_of(x.begin(), x.end(), [](double v) { return !(v >= 0); })) continue;
        std::vector<double> all(n, 0);
        for (std::size_t j = 0; j < used.size(); ++j) all[used[j]] = x[j];
        if (const double error = squared_error(rows, y, all); error < least) least = error, best = all;
    }
    return best;
}

InFlightFit fit_in_flight(std::span<const double> bytes, std::span<const double> rate,
                          std::span<const double> spread) {
    assert(bytes.size() == rate.size() && bytes.size() == spread.size() && !bytes.empty());
    InFlightFit fit;
    const auto shallowest =
        static_cast<std::size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    fit.latency_s = bytes[shallowest] / rate[shallowest];
    // The plateau is what the deepest third reaches: a single highest point would follow the noise.
    std::vector<double> deep, deep_spread;
    const double deepest = *std::max_element(bytes.begin(), bytes.end());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (3 * bytes[i] >= deepest) deep.push_back(rate[i]), deep_spread.push_back(spread[i]);
    fit.rate = median(deep);
    fit.cap_bytes = fit.rate * fit.latency_s;
    // Of a product the shares of both factors add up.
    fit.cap_spread = fit.cap_bytes * (median(deep_spread) / fit.rate + spread[shallowest] / rate[shallowest]);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const double said = std::min(bytes[i], fit.cap_bytes) / fit.latency_s;
        fit.worst = std::max(fit.worst, std::abs(said / rate[i] - 1));
    }
    return fit;
}

EnergyFit fit_energy(std::span<const EnergyPoint> points, double reference_hz, double exponent) {
    assert(!points.empty() && reference_hz > 0);
    EnergyFit fit;
    fit.exponent = exponent;
    std::vector<std::vector<double>> rows;
    std::vector<double> power;
    for (const EnergyPoint& p : points) {
        const double v = p.clock_hz > 0 ? std::pow(p.clock_hz / reference_hz, exponent) : 1;
        rows.push_back(
            {1, v * p.flops, v * p.zero_flops, v * p.fill_bytes, v * p.dram_bytes, v * p.shared_bytes});
        power.push_back(p.power_w);
    }
    const std::vector<double> x = nonnegative_least_squares(rows, power);
    fit.static_w = x[0], fit.flop_j = x[1], fit.zero_flop_j = x[2], fit.fill_j = x[3], fit.dram_j = x[4];
    fit.shared_j = x[5];
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double fitted = std::inner_product(x.begin(), x.end(), rows[i].begin(), 0.0);
        fit.residual_w.push_back(power[i] - fitted);
        sum += fit.residual_w.back() * fit.residual_w.back();
    }
    fit.rms_w = std::sqrt(sum / static_cast<double>(rows.size()));
    return fit;
}

EnergyFit fit_energy(std::span<const EnergyPoint> points, double reference_hz) {
    EnergyFit best;
    best.rms_w = std::numeric_limits<double>::infinity();
    for (int twentieth = 0; twentieth <= 80; ++twentieth) {
        EnergyFit fit = fit_energy(points, reference_hz, twentieth / 20.0);
        if (fit.rms_w < best.rms_w) best = std::move(fit);
    }
    return best;
}

EnergySpread leave_one_out(std::span<const EnergyPoint> points, double reference_hz) {
    EnergySpread spread;
    constexpr double EnergyFit::*terms[] = {&EnergyFit::static_w, &EnergyFit::flop_j, &EnergyFit::zero_flop_j,
                                            &EnergyFit::fill_j,   &EnergyFit::dram_j, &EnergyFit::shared_j,
                                            &EnergyFit::exponent};
    spread.least = spread.most = fit_energy(points, reference_hz);
    std::vector<EnergyFit> fits;
    for (std::size_t left_out = 0; points.size() > 1 && left_out < points.size(); ++left_out) {
        std::vector<EnergyPoint> others(points.begin(), points.end());
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
        const EnergyFit fit = fit_energy(others, reference_hz);
        for (const auto term : terms) {
            spread.least.*term = std::min(spread.least.*term, fit.*term);
            spread.most.*term = std::max(spread.most.*term, fit.*term);
        }
        fits.push_back(fit);
    }
    for (const auto term : terms) {
        const auto n = static_cast<double>(fits.size());
        double mean = 0, sum = 0;
        for (const EnergyFit& fit : fits) mean += fit.*term / n;
        for (const EnergyFit& fit : fits) sum += (fit.*term - mean) * (fit.*term - mean);
        if (n > 1) spread.error.*term = std::sqrt((n - 1) / n * sum);
    }
    return spread;
}

std::vector<double> sustained_power(std::span<const EnergyPoint> points) {
    std::vector<double> watts;
    for (const EnergyPoint& p : points)
        if (p.held) watts.push_back(p.power_w);
    return watts;
}

}  // namespace rooftile
