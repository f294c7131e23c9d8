#include "rooftile/expression/meaning.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/expression/evaluate.hpp"

namespace rooftile {
namespace {

using namespace bounds;

constexpr double ulp4 = 4 * unit;  // 2^-22

/// After fp32 has made its own rounding of `relative`; what leaves fp32's range is undecided.
Bounded settled(double value, double error, double relative) {
    if (std::isnan(value)) return {value, 0};
    error += relative * std::fabs(value) + tiny;
    if (std::isinf(value)) return {value, std::isnan(error) || std::isinf(error) ? 0 : error};
    if (!(std::fabs(value) + error < largest)) error = infinity;
    return {value, std::isnan(error) ? infinity : error};
}

Bounded of_one(const Operator& row, Bounded x, Element precision) {
    const auto exact = [&](double at) { return row.meaning.exact(at, 0); };
    const double y = exact(x.value);
    if (std::isinf(x.error)) return {y, infinity};
    // How far the function goes within the argument's error; outside its domain the result is undecided.
    double spread = 0;
    if (x.error > 0 && !std::isnan(y)) {
        const double above = exact(x.value + x.error), below = exact(x.value - x.error);
        spread = std::max(std::fabs(above - y), std::fabs(below - y)) * 1.5;
        if (std::isnan(above) || std::isnan(below)) spread = infinity;
        if (std::isinf(y)) spread = 0;
    }
    StatedError stated;
    if (row.meaning.stated) stated = row.meaning.stated(std::isfinite(x.value) ? x.value : 0, precision);
    return settled(y, spread + stated.absolute, stated.relative);
}

Bounded product(Bounded x, Bounded y) {
    const double a = x.value, b = y.value;
    // Inf times an error of nothing is no error.
    const double e = (y.error > 0 ? std::fabs(a) * y.error : 0) + (x.error > 0 ? std::fabs(b) * x.error : 0)
                     + x.error * y.error;
    if (std::isnan(a * b) && x.error + y.error > 0 && !std::isnan(a) && !std::isnan(b))
        return {a * b, infinity};
    if (std::isinf(a * b) && std::isfinite(a) && std::isfinite(b)) return {a * b, infinity};
    return settled(a * b, e, unit);
}

}  // namespace

Bounded bounded_element(const ElementCall& call) {
    const Operator& row = operator_of(call.node.op);
    const Bounded r =
        row.meaning.bounded ? row.meaning.bounded(row, call) : of_one(row, call.x[0], call.precision);
    if (row.result == ResultType::floating_or_bool && row.code.of_flags.size() > 0
        && call.node.element == Element::boolean)
        return {double(r.value != 0), r.error > tiny ? r.error : 0};
    return r;
}

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double exact_gelu(double x) {
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0)) * (std::isinf(x) && x < 0 ? std::nan("") : 1);
}

double exact_gelu_tanh(double x) {
    const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    if (std::isinf(x)) return x > 0 ? x : std::nan("");
    return x / (1 + std::exp(-2 * u));
}

StatedError stated_tanh(double, Element precision) {
    return {precision == Element::bf16 ? 1.0 / 2048 : 1.0 / 524288};  // 2^-11, 2^-19
}

StatedError stated_gelu(double x, Element precision) {
    constexpr double flushed = 7.6e-37;  // 2^-120
    if (precision == Element::bf16) return {(32 + x * x) * 1.1e-5, flushed};
    if (precision == Element::fp16) return {1.0 / 131072, 5.9e-11};     // 2^-17, 2^-34
    return {1.0 / 524288 + (x < 0 ? (8 + x * x) * ulp4 : 0), flushed};  // 2^-19
}

StatedError stated_gelu_tanh(double x, Element) {
    const double a = std::fabs(x);
    return {(8 + std::min(a * (1.6 + 0.08 * a * a), 200.0)) * ulp4, 7.6e-37};
}

Bounded bounded_sum(const Operator& row, const ElementCall& call) {
    const Bounded &x = call.x[0], &y = call.x[1];
    return settled(row.meaning.exact(x.value, y.value), x.error + y.error, unit);
}

Bounded bounded_product(const Operator&, const ElementCall& call) { return product(call.x[0], call.x[1]); }

Bounded bounded_quotient(const Operator&, const ElementCall& call) {
    const Bounded &x = call.x[0], &y = call.x[1];
    const double a = x.value, b = y.value;
    if (y.error > 0 && std::fabs(b) <= y.error) return {a / b, infinity};
    const double e =
        y.error + x.error == 0 ? 0 : (x.error + std::fabs(a / b) * y.error) / (std::fabs(b) - y.error);
    return settled(a / b, e, 4 * unit);
}

Bounded bounded_power(const Operator&, const ElementCall& call) {
    const Bounded &x = call.x[0], &n = call.x[1];
    // As PyTorch: a root of -Inf is NaN, where C's pow gives Inf.
    if (n.error == 0 && std::fabs(n.value) == 0.5)
        return of_one(operator_of(n.value > 0 ? Op::sqrt : Op::rsqrt), x, Element::fp32);
    const double y = std::pow(x.value, n.value);
    if (x.error + n.error == infinity) return {y, infinity};
    double spread = 0;
    for (double dx : {-x.error, x.error})
        for (double dn : {-n.error, n.error}) {
            const double other = std::pow(x.value + dx, n.value + dn);
            if (std::isnan(other) != std::isnan(y)) spread = infinity;
            else if (std::isfinite(y)) spread = std::max(spread, std::fabs(other - y) * 1.5);
        }
    return settled(y, spread, (4 + std::fabs(n.value)) * 4 * unit);
}

Bounded bounded_choice(const Operator& row, const ElementCall& call) {
    const Bounded &x = call.x[0], &y = call.x[1];
    if (std::isnan(x.value) || std::isnan(y.value)) return {std::nan(""), 0};
    return {row.meaning.exact(x.value, y.value), std::max(x.error, y.error)};
}

Bounded bounded_comparison(const Operator& row, const ElementCall& call) {
    const double a = call.x[0].value, b = call.x[1].value, reach = call.x[0].error + call.x[1].error;
    const bool hangs = reach > 0 && !std::isnan(a) && !std::isnan(b) && !(std::fabs(a - b) > reach);
    return {row.meaning.exact(a, b), hangs ? infinity : 0};
}

Bounded bounded_cast(const Operator&, const ElementCall& call) {
    const Bounded& x = call.x[0];
    if (call.node.element == Element::fp32) return x;
    const double r = rounded_to(x.value, call.node.element);
    return {r, x.error == 0 ? 0 : x.error + ulp_of(x.value, call.node.element)};
}

Bounded bounded_where(const Operator&, const ElementCall& call) {
    const Bounded& chosen = call.x[0].value != 0 ? call.x[1] : call.x[2];
    return std::isinf(call.x[0].error) ? Bounded{chosen.value, infinity} : chosen;
}

Bounded bounded_dropout(const Operator&, const ElementCall& call) {
    const GraphNode& n = call.node;
    const double scale = n.value < 1 ? 1 / (1 - n.value) : 0;
    const bool keep = dropout_keeps(std::uint64_t(call.index), n.value, n.seed, n.offset);
    return product(call.x[0], {keep ? scale : 0.0, keep ? scale * unit : 0});
}

}  // namespace rooftile
