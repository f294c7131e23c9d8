// What row operations mean, as kernels/expression/meaning.hpp has it for point-wise ones. Each is written on a `Row`, which
// one thread of the host or many threads of the device go over together:
//   n, epsilon, weights            elements, the attribute, how many weights there are (gamma, beta)
//   x(i), weight(w, i)             elements, Bounded
//   reduce<R>(step)                an R that has seen step(r, x(i), i) of every i; R's join() puts parts together
//   each(f)                        the result's elements are f(x(i), i)
//   give(b)                        the result's only element
// All of a row's threads go the same way past reduce(), whatever the row holds.
// An undecided element may be Inf or NaN in fp32, which every result of its row then shows: the row is undecided.
#pragma once

#include "kernels/expression/bounded.hpp"

namespace rooftile::meaning {

using namespace bounds;

/// Roundings that a sum of `n` terms may go through one after the other: in the kernels a thread adds up
/// whole vectors, then threads and CTAs meet in halves. Never fewer than 64 threads share a row of more than
/// 4096.
inline double roundings(double n) { return 32 + n / 256; }
/// The same of a column's `n` terms, whose threads may lie side by side rather than below one another: planners keep to it.
inline double column_roundings(double n) { return 64 + n / 32; }

struct RowSums {
    double total = 0, magnitude = 0, error = 0;
    void add(Bounded term) {
        total += term.value;
        magnitude += fabs(term.value);
        error += term.error;
    }
    void join(const RowSums& other) {
        total += other.total;
        magnitude += other.magnitude;
        error += other.error;
    }
};

/// The same, and how far a value lies from the row's first.
struct RowSumsApart : RowSums {
    double apart = 0;
    void add(Bounded x, double first) {
        RowSums::add(x);
        apart = larger(fabs(x.value - first), apart);
    }
    void join(const RowSumsApart& other) {
        RowSums::join(other);
        apart = larger(other.apart, apart);
    }
};

/// The greatest value and the first place that has it; a NaN is greater than all.
struct RowGreatest {
    double value = -infinity, error = 0;
    long long place = 0x7fffffffffffffffll;
    void take(double other, long long at) {
        const bool nan = is_nan(value), other_nan = is_nan(other);
        const bool equal = nan == other_nan && (nan || other == value);
        if (equal ? at < place : other_nan || (!nan && other > value)) {
            value = other;
            place = at;
        }
    }
    void add(Bounded x, long long at) {
        take(x.value, at);
        error = larger(error, x.error);
    }
    void join(const RowGreatest& other) {
        take(other.value, other.place);
        error = larger(error, other.error);
    }
};

struct RowFlag {
    unsigned long long set = 0;
    void join(const RowFlag& other) { set |= other.set; }
};

template <class Row, class Term>
inline Bounded sum_of(const Row& row, Term term, double (*depth)(double n) = roundings) {
    const RowSums s =
        row.template reduce<RowSums>([&](RowSums& sums, Bounded x, long long) { sums.add(term(x)); });
    if (!is_finite(s.total)) return {s.total, is_infinite(s.error) ? infinity : 0};
    const double error = s.magnitude > 1e38 ? infinity : s.error;
    return {s.total, error + depth(static_cast<double>(row.n)) * unit * s.magnitude + tiny};
}

template <class Row>
inline Bounded sum_of(const Row& row, double (*depth)(double n) = roundings) {
    return sum_of(row, [](Bounded x) { return x; }, depth);
}

template <class Row>
inline RowGreatest greatest_of(const Row& row) {
    return row.template reduce<RowGreatest>([](RowGreatest& g, Bounded x, long long i) { g.add(x, i); });
}

/// How far fp32's exp(x - greatest) may lie from exp(d), of d = x - greatest, in its argument.
inline double exponent_error(double d, double argument) { return argument + (8 + 2 * fabs(d)) * 4 * unit; }
/// The most that a share y of 1, by exp(d), is off where its logarithm is by s. Errors of large numbers are many times what is differed
/// by: then it is anything from 0 to 1. Below e^-104 fp32 has 0; but of rows whose greatest is 2^28 or more, whose numbers are 32 and more
/// apart, kernels scale the power (DifferencePowers), which then is 2^-32 at most. No second exp() here: with it the reference spills.
inline double share_error(double y, double d, double s, double greatest) {
    if (d + s < -104) return fabs(greatest) < 0x1p28 ? 0 : 0x1p-32;
    const double off = y * (s + 4 * s * s);  // y e^s (1 + s + s^2) - y is less, where s is below 0.5
    return s < 0.5 && off < 1 ? off : 1;
}

/// The sum of exp(x - greatest).
template <class Row>
inline Bounded exponentials_of(const Row& row, const RowGreatest& greatest) {
    const double base = greatest.value == -infinity ? 0 : greatest.value;
    return sum_of(row, [&](Bounded x) -> Bounded {
        const double d = x.value - base, e = exp(d);
        return {e, is_finite(d) ? share_error(e, d, exponent_error(d, x.error + greatest.error), base) : 0};
    });
}

inline Bounded logarithm_of(Bounded s) {
    const double log_sum = log(s.value);
    return {log_sum, s.error / larger(s.value - s.error, tiny) + 8 * unit * (1 + fabs(log_sum))};
}

/// (x - centre) * scale * gamma + beta, with relative error `scale_error` of the scale.
template <class Row>
inline Bounded normalised(const Row& row, Bounded x, long long i, Bounded centre, double scale,
                          double scale_error) {
    const double d = x.value - centre.value;
    double y = d * scale;
    double error = (x.error + centre.error + unit * fabs(d)) * scale + fabs(y) * (scale_error + 2 * unit);
    if (row.weights > 0) {
        const Bounded gamma = row.weight(0, i);
        error = error * fabs(gamma.value) + fabs(y) * gamma.error;
        y *= gamma.value;
        error += fabs(y) * unit;
    }
    if (row.weights > 1) {
        const Bounded beta = row.weight(1, i);
        y += beta.value;
        error += beta.error + fabs(y) * unit;
    }
    if (is_infinite(centre.error) || is_infinite(scale_error)) error = infinity;
    return {y, is_finite(y) || is_infinite(error) ? error + tiny : 0};
}

/// Of a row of one exact value, whose mean is that value, and from which nothing differs: its error is 0, and no rounding of a sum or of a
/// reciprocal is forgiven. Else a mean is held in fp32, by sums or from value to value, whose roundings are as often up as down: against
/// what the values differ by their number counts, against the mean its root.
template <class Row>
inline void layernorm(Row& row) {
    const double n = static_cast<double>(row.n), first = row.n > 0 ? row.x(0).value : 0;
    const RowSumsApart s = row.template reduce<RowSumsApart>([&](RowSumsApart& sums, Bounded x, long long) { sums.add(x, first); });
    const bool one_value = s.apart == 0 && s.error == 0 && is_finite(s.total);
    Bounded mean = {one_value ? first : s.total / n, 0};
    const Bounded squares = sum_of(row, [&](Bounded x) -> Bounded {
        const double d = x.value - mean.value;
        if (!is_finite(d)) return {d * d, is_infinite(x.error) ? infinity : 0};  // Inf, whatever is rounded
        return {d * d, 2 * fabs(d) * (x.error + unit * fabs(d)) + x.error * x.error};
    });
    const double of_mean = 8 + sqrt(n) / 16;  // PyTorch's own is off by 3 units of few columns, by 13 of 2^21
    if (!is_finite(s.total)) mean.error = is_infinite(s.error) ? infinity : 0;
    else if (s.magnitude > 1e38) mean.error = infinity;
    else if (!one_value)
        mean.error = s.error / n + unit * (roundings(n) * sqrt(squares.value / n) + of_mean * fabs(mean.value)) + tiny;
    // A mean that is off by m adds n m^2 to the squares, which Chan's formula does not see.
    const double variance = squares.value / n;
    const double error = squares.error / n + mean.error * mean.error + 8 * unit * variance;
    const double scale = 1 / sqrt(variance + row.epsilon);
    const double scale_error = error / (variance + row.epsilon) + 8 * unit;
    row.each([&](Bounded x, long long i) { return normalised(row, x, i, mean, scale, scale_error); });
}

template <class Row>
inline void rmsnorm(Row& row) {
    const double n = static_cast<double>(row.n);
    const Bounded squares = sum_of(row, [](Bounded x) -> Bounded {
        return {x.value * x.value, 2 * fabs(x.value) * x.error + x.error * x.error};
    });
    const double mean = squares.value / n;
    const double scale = 1 / sqrt(mean + row.epsilon);
    const double scale_error = squares.error / n / (mean + row.epsilon) + 8 * unit;
    row.each([&](Bounded x, long long i) { return normalised(row, x, i, {}, scale, scale_error); });
}

template <class Row>
inline void softmax(Row& row) {
    const RowGreatest greatest = greatest_of(row);
    const Bounded total = exponentials_of(row, greatest);
    const double relative = total.error / total.value;
    row.each([&](Bounded x, long long) -> Bounded {
        const double d = x.value - greatest.value;
        const double argument = x.error + greatest.error + unit * fabs(d);
        const double y = exp(d) / total.value;
        if (is_infinite(x.error + greatest.error)) return {y, infinity};
        if (!is_finite(d) || !is_finite(y)) return {y, is_finite(y) ? tiny : 0};
        return {y, share_error(y, d, exponent_error(d, argument) + relative, greatest.value) + tiny};
    });
}

template <class Row>
inline void log_softmax(Row& row) {
    const RowGreatest greatest = greatest_of(row);
    const Bounded log_sum = logarithm_of(exponentials_of(row, greatest));
    row.each([&](Bounded x, long long) -> Bounded {
        const double d = x.value - greatest.value;
        const double argument = x.error + greatest.error + unit * fabs(d);
        const double y = d - log_sum.value;
        const double rounding = 2 * unit * (fabs(y) + fabs(log_sum.value));
        if (is_infinite(greatest.error)) return {y, infinity};
        return {y, is_finite(y) ? argument + log_sum.error + rounding : 0};
    });
}

template <class Row>
inline void row_sum(Row& row) {
    row.give(sum_of(row));
}

inline Bounded mean_of(Bounded sum, double n) {
    const double mean = sum.value / n;
    return {mean, is_finite(mean) ? sum.error / n + 2 * unit * fabs(mean) : sum.error};
}

template <class Row>
inline void row_mean(Row& row) {
    row.give(mean_of(sum_of(row), static_cast<double>(row.n)));
}

/// Of a column, whose elements are this row's.
template <class Row>
inline void column_sum(Row& row) {
    row.give(sum_of(row, column_roundings));
}

template <class Row>
inline void column_mean(Row& row) {
    row.give(mean_of(sum_of(row, column_roundings), static_cast<double>(row.n)));
}

template <class Row>
inline void row_max(Row& row) {
    const RowGreatest greatest = greatest_of(row);
    row.give({greatest.value, greatest.error});
}

/// Undecided where another element lies within both errors of the greatest.
template <class Row>
inline void row_argmax(Row& row) {
    const RowGreatest greatest = greatest_of(row);
    const double own = row.x(greatest.place).error;
    const RowFlag hangs = row.template reduce<RowFlag>([&](RowFlag& flag, Bounded x, long long i) {
        const double reach = x.error + own;
        if (i != greatest.place && reach > 0 && !(x.value + reach < greatest.value)) flag.set = 1;
    });
    row.give({static_cast<double>(greatest.place), hangs.set ? infinity : 0});
}

template <class Row>
inline void row_logsumexp(Row& row) {
    const RowGreatest greatest = greatest_of(row);
    const Bounded log_sum = logarithm_of(exponentials_of(row, greatest));
    const double y = greatest.value + log_sum.value;
    if (is_infinite(greatest.error)) row.give({y, infinity});
    else if (greatest.value == infinity) row.give({infinity, 0});
    else row.give({y, is_finite(y) ? greatest.error + log_sum.error + 2 * unit * fabs(y) : 0});
}

}  // namespace rooftile::meaning
