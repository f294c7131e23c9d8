#include "rooftile/expression/evaluate_row.hpp"

#include <algorithm>
#include <cmath>

namespace rooftile {

using namespace bounds;

namespace {

/// Roundings that a sum of `n` terms may go through one after the other: in the kernels a thread adds up
/// whole vectors, then threads and CTAs meet in halves. Never fewer than 64 threads share a row of more than
/// 4096.
double roundings(double n) { return 32 + n / 256; }

}  // namespace

struct BoundedRow {
    const Bounded* x;
    std::int64_t n;
    double greatest = -infinity, greatest_error = 0;
    std::int64_t place = 0;
    bool place_hangs = false;

    BoundedRow(const Bounded* first, std::int64_t columns) : x(first), n(columns) {
        for (std::int64_t i = 0; i < n; ++i) {
            if (std::isnan(x[i].value)) {
                greatest = x[i].value;
                place = i;
                break;
            }
            if (x[i].value > greatest) {
                greatest = x[i].value;
                place = i;
            }
        }
        for (std::int64_t i = 0; i < n; ++i) {
            greatest_error = std::max(greatest_error, x[i].error);
            const double reach = x[i].error + x[place].error;
            if (i != place && reach > 0 && !(x[i].value + reach < greatest)) place_hangs = true;
        }
    }
    template <class Term>
    Bounded sum(Term&& term) const {
        double total = 0, magnitude = 0, error = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Bounded t = term(x[i]);
            total += t.value;
            magnitude += std::fabs(t.value);
            error += t.error;
        }
        if (!std::isfinite(total)) return {total, 0};
        if (magnitude > 1e38) error = infinity;
        return {total, error + roundings(double(n)) * unit * magnitude + tiny};
    }
    Bounded exponentials() const {
        const double base = std::isinf(greatest) && greatest < 0 ? 0 : greatest;
        return sum([&](const Bounded& v) -> Bounded {
            const double d = v.value - base, e = std::exp(d);
            const double relative =
                std::isfinite(d) ? v.error + greatest_error + (8 + 2 * std::fabs(d)) * 4 * unit : 0;
            return {e, e * relative};
        });
    }
};

namespace {

Bounded logarithm(Bounded s) {
    return {std::log(s.value),
            s.error / std::max(s.value - s.error, tiny) + 8 * unit * (1 + std::fabs(std::log(s.value)))};
}

/// (x - centre) * scale * gamma + beta, with relative error `scale_error` of the scale.
Bounded normalised(const Bounded& x, Bounded centre, double scale, double scale_error,
                   const std::vector<const BoundedTensor*>& weights, size_t column) {
    const double d = x.value - centre.value;
    double y = d * scale;
    double error =
        (x.error + centre.error + unit * std::fabs(d)) * scale + std::fabs(y) * (scale_error + 2 * unit);
    if (weights.size() > 1) {
        const Bounded& gamma = (*weights[1])[column];
        error = error * std::fabs(gamma.value) + std::fabs(y) * gamma.error;
        y *= gamma.value;
        error += std::fabs(y) * unit;
    }
    if (weights.size() > 2) {
        const Bounded& beta = (*weights[2])[column];
        y += beta.value;
        error += beta.error + std::fabs(y) * unit;
    }
    return {y, std::isfinite(y) ? error + tiny : 0};
}

}  // namespace

void bounded_layernorm(const BoundedRow& row, const RowOperands& operands, Bounded* out) {
    const double n = double(row.n);
    Bounded mean = row.sum([](const Bounded& v) { return v; });
    mean = {mean.value / n, mean.error / n + unit * std::fabs(mean.value / n)};
    const Bounded squares = row.sum([&](const Bounded& v) -> Bounded {
        const double d = v.value - mean.value;
        return {d * d, 2 * std::fabs(d) * (v.error + unit * std::fabs(d)) + v.error * v.error};
    });
    // A mean that is off by m adds n m^2 to the squares, which Chan's formula does not see.
    const double variance = squares.value / n;
    const double error = squares.error / n + mean.error * mean.error + 8 * unit * variance;
    const double scale = 1 / std::sqrt(variance + operands.epsilon);
    const double scale_error = error / (variance + operands.epsilon) + 8 * unit;
    for (std::int64_t i = 0; i < row.n; ++i)
        out[i] = normalised(row.x[i], mean, scale, scale_error, operands.tensors, size_t(i));
}

void bounded_rmsnorm(const BoundedRow& row, const RowOperands& operands, Bounded* out) {
    const double n = double(row.n);
    const Bounded squares = row.sum([](const Bounded& v) -> Bounded {
        return {v.value * v.value, 2 * std::fabs(v.value) * v.error + v.error * v.error};
    });
    const double mean = squares.value / n;
    const double scale = 1 / std::sqrt(mean + operands.epsilon);
    const double scale_error = squares.error / n / (mean + operands.epsilon) + 8 * unit;
    for (std::int64_t i = 0; i < row.n; ++i)
        out[i] = normalised(row.x[i], {}, scale, scale_error, operands.tensors, size_t(i));
}

void bounded_softmax(const BoundedRow& row, const RowOperands&, Bounded* out) {
    const Bounded total = row.exponentials();
    const double relative = total.error / total.value;
    for (std::int64_t i = 0; i < row.n; ++i) {
        const double d = row.x[i].value - row.greatest;
        const double argument = row.x[i].error + row.greatest_error + unit * std::fabs(d);
        const double y = std::exp(d) / total.value;
        const double share = argument + (8 + 2 * std::fabs(d)) * 4 * unit + relative;
        out[i] = {y, std::isfinite(y) ? (y > 0 ? y * share : 0) + tiny : 0};
    }
}

void bounded_log_softmax(const BoundedRow& row, const RowOperands&, Bounded* out) {
    const Bounded log = logarithm(row.exponentials());
    for (std::int64_t i = 0; i < row.n; ++i) {
        const double d = row.x[i].value - row.greatest;
        const double argument = row.x[i].error + row.greatest_error + unit * std::fabs(d);
        const double y = d - log.value;
        const double rounding = 2 * unit * (std::fabs(y) + std::fabs(log.value));
        out[i] = {y, std::isfinite(y) ? argument + log.error + rounding : 0};
    }
}

void bounded_row_sum(const BoundedRow& row, const RowOperands&, Bounded* out) {
    *out = row.sum([](const Bounded& v) { return v; });
}

void bounded_row_mean(const BoundedRow& row, const RowOperands&, Bounded* out) {
    const double n = double(row.n);
    const Bounded s = row.sum([](const Bounded& v) { return v; });
    *out = {s.value / n, s.error / n + 2 * unit * std::fabs(s.value / n)};
}

void bounded_row_max(const BoundedRow& row, const RowOperands&, Bounded* out) {
    *out = {row.greatest, row.greatest_error};
}

void bounded_row_argmax(const BoundedRow& row, const RowOperands&, Bounded* out) {
    *out = {double(row.place), row.place_hangs ? infinity : 0};
}

void bounded_row_logsumexp(const BoundedRow& row, const RowOperands&, Bounded* out) {
    *out = {infinity, 0};
    if (std::isinf(row.greatest) && row.greatest > 0) return;
    const Bounded log = logarithm(row.exponentials());
    const double y = row.greatest + log.value;
    *out = {y, std::isfinite(y) ? row.greatest_error + log.error + 2 * unit * std::fabs(y) : 0};
}

BoundedTensor evaluate_rows(const GraphNode& n, const std::vector<const BoundedTensor*>& operands,
                            std::int64_t columns, BoundedTensor out) {
    const BoundedTensor& x = *operands[0];
    const bool keeps = keeps_row(n.op);
    out.resize(keeps ? x.size() : size_t(elements_of(n.shape)));
    const size_t rows = keeps ? (columns ? x.size() / size_t(columns) : 0) : out.size();
    for (size_t r = 0; r < rows; ++r) {
        const BoundedRow row(x.data() + r * size_t(columns), columns);
        Bounded* to = out.data() + r * size_t(keeps ? columns : 1);
        operator_of(n.op).meaning.of_row(row, {n.value, operands}, to);
    }
    return out;
}

}  // namespace rooftile
