// Rows whose mean is large beside their spread, and what PyTorch's own layer norm makes of them: the measure of ours.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace rooftile {

/// A mean of 1 to `most`, either sign, log-uniform; a spread of 1 to 10^-4, and in every third row of 0.
inline std::vector<float> shifted_row(std::mt19937_64& random, std::size_t columns, double most = 1e5) {
    std::uniform_real_distribution<double> uniform;
    std::normal_distribution<double> normal;
    const double mean = std::pow(most, uniform(random)) * (random() % 2 ? 1 : -1);
    const double spread = random() % 3 == 0 ? 0 : std::pow(10, -4 * uniform(random));
    std::vector<float> row(columns);
    for (float& x : row) x = float(mean + spread * normal(random));
    return row;
}

struct ExactMoments {
    double mean = 0, variance = 0;
};
inline ExactMoments exact_moments(std::span<const float> row) {
    ExactMoments m;
    for (const float x : row) m.mean += double(x) / double(row.size());
    // Once more from there: of a row of one value it is that value.
    double rest = 0;
    for (const float x : row) rest += double(x) - m.mean;
    m.mean += rest / double(row.size());
    for (const float x : row) m.variance += (double(x) - m.mean) * (double(x) - m.mean) / double(row.size());
    return m;
}

/// Welford's moments in fp32, as PyTorch's vectorised layer norm has them: 128 threads with four elements at a time, then halves.
struct TorchMoments {
    float mean = 0, deviations = 0, count = 0;
    void add(float x) {
        const float delta = x - mean;
        count += 1;
        mean = mean + delta * (1 / count);
        deviations = deviations + delta * (x - mean);
    }
    void merge(const TorchMoments& other) {
        const float delta = other.mean - mean, all = count + other.count;
        if (all == 0) return;
        const float share = 1 / all, own = count * share, others = other.count * share;
        deviations = deviations + other.deviations + delta * delta * count * others;
        mean = own * mean + others * other.mean;
        count = all;
    }
    static TorchMoments of(std::span<const float> row) {
        constexpr std::size_t threads = 128, vector = 4;
        std::vector<TorchMoments> parts(threads);
        for (std::size_t i = 0; i < row.size(); ++i) parts[i / vector % threads].add(row[i]);
        for (std::size_t half = threads / 2; half > 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i) parts[i].merge(parts[i + half]);
        return parts[0];
    }
};

inline double fp32_ulp(double x) { return double(std::nextafter(float(std::fabs(x)), INFINITY)) - double(float(std::fabs(x))); }

/// The greatest error of PyTorch's layer norm of a row, by an `epsilon`.
inline double torch_layernorm_error(std::span<const float> row, double epsilon) {
    const ExactMoments exact = exact_moments(row);
    const TorchMoments m = TorchMoments::of(row);
    const float scale = 1 / std::sqrt(m.deviations / float(row.size()) + float(epsilon));
    double most = 0;
    for (const float x : row)
        most = std::max(most, std::fabs(double((x - m.mean) * scale) - (double(x) - exact.mean) / std::sqrt(exact.variance + epsilon)));
    return most;
}

}  // namespace rooftile
