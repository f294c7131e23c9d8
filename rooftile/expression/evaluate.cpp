#include "rooftile/expression/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/measure/numbers.hpp"
#include "kernels/measure/philox.hpp"
#include "rooftile/expression/evaluate_row.hpp"
#include "rooftile/expression/graph_builder.hpp"

namespace rooftile {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double unit = 1.0 / 16777216;          // 2^-24: half a unit in the last place of fp32
constexpr double tiny = 1.1754943508222875e-38;  // 2^-126: what flushing denormals may lose
constexpr double largest = 3.4028234663852886e38;

/// Mantissa bits below the leading one, and the least normal exponent.
struct Format {
    int bits, least_exponent;
    double largest;
};
Format format_of(Element e) {
    if (e == Element::bf16) return {7, -126, 3.3895313892515355e38};
    if (e == Element::fp16) return {10, -14, 65504};
    return {23, -126, largest};
}

/// After fp32 has made its own rounding of `relative`; what leaves fp32's range is undecided.
Bounded settled(double value, double error, double relative) {
    if (std::isnan(value)) return {value, 0};
    error += relative * std::fabs(value) + tiny;
    if (std::isinf(value)) return {value, std::isnan(error) || std::isinf(error) ? 0 : error};
    if (!(std::fabs(value) + error < largest)) error = infinity;
    return {value, std::isnan(error) ? infinity : error};
}

double gelu(double x) {
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0)) * (std::isinf(x) && x < 0 ? std::nan("") : 1);
}
double gelu_tanh(double x) {
    const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    if (std::isinf(x)) return x > 0 ? x : std::nan("");
    return x / (1 + std::exp(-2 * u));
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double exact(Op op, double x) {
    switch (op) {
        case Op::sigmoid:
            return sigmoid(x);
        case Op::silu:
            return x * sigmoid(x);
        case Op::relu:
            return std::isnan(x) ? x : std::max(x, 0.0);
        case Op::gelu:
            return gelu(x);
        case Op::gelu_tanh:
            return gelu_tanh(x);
        default:
            return folded(op, x, 0);
    }
}

/// The relative error that kernels/expression/math.cuh states for results of this precision.
double stated(Op op, double x, Element precision) {
    const double a = std::isfinite(x) ? std::fabs(x) : 0;
    constexpr double ulp4 = 1.0 / 4194304;  // 2^-22
    switch (op) {
        case Op::exp:
            return (2 + a) * ulp4;
        case Op::sigmoid:
        case Op::silu:
            return (4 + a) * ulp4;
        case Op::tanh:
            return precision == Element::bf16 ? 1.0 / 2048 : 1.0 / 524288;  // 2^-11, 2^-19
        case Op::gelu:
            if (precision == Element::bf16) return (32 + a * a) * 1.1e-5;
            if (precision == Element::fp16) return 1.0 / 131072;  // 2^-17
            return 1.0 / 524288 + (x < 0 ? (8 + x * x) * ulp4 : 0);
        case Op::gelu_tanh:
            return (8 + std::min(a * (1.6 + 0.08 * a * a), 200.0)) * ulp4;
        case Op::log:
        case Op::erf:
        case Op::sqrt:
        case Op::rsqrt:
            return 2 * ulp4;
        default:
            return 0;  // exact: neg, abs, relu
    }
}

/// And the absolute one.
double stated_absolute(Op op, Element precision) {
    switch (op) {
        case Op::gelu:
            return precision == Element::fp16 ? 5.9e-11 : 7.6e-37;  // 2^-34, 2^-120
        case Op::gelu_tanh:
        case Op::sigmoid:
            return 7.6e-37;  // reciprocals flush what is below fp32's normal numbers
        case Op::silu:
            return 1.6e-36;  // 2^-119
        default:
            return 0;
    }
}

Bounded unary(Op op, Bounded x, Element precision) {
    const double y = exact(op, x.value);
    if (std::isinf(x.error)) return {y, infinity};
    // How far the function goes within the argument's error; outside its domain the result is undecided.
    double spread = 0;
    if (x.error > 0 && !std::isnan(y)) {
        const double above = exact(op, x.value + x.error), below = exact(op, x.value - x.error);
        spread = std::max(std::fabs(above - y), std::fabs(below - y)) * 1.5;
        if (std::isnan(above) || std::isnan(below)) spread = infinity;
        if (std::isinf(y)) spread = 0;
    }
    return settled(y, spread + stated_absolute(op, precision), stated(op, x.value, precision));
}

Bounded power(Bounded x, Bounded n) {
    // As PyTorch: a root of -Inf is NaN, where C's pow gives Inf.
    if (n.error == 0 && std::fabs(n.value) == 0.5)
        return unary(n.value > 0 ? Op::sqrt : Op::rsqrt, x, Element::fp32);
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

Bounded compare(Op op, Bounded x, Bounded y) {
    const double a = x.value, b = y.value;
    bool r = false;
    switch (op) {
        case Op::less:
            r = a < b;
            break;
        case Op::less_equal:
            r = a <= b;
            break;
        case Op::greater:
            r = a > b;
            break;
        case Op::greater_equal:
            r = a >= b;
            break;
        case Op::equal:
            r = a == b;
            break;
        default:
            r = a != b;
            break;
    }
    const double reach = x.error + y.error;
    const bool hangs = reach > 0 && !std::isnan(a) && !std::isnan(b) && !(std::fabs(a - b) > reach);
    return {double(r), hangs ? infinity : 0};
}

Bounded binary(Op op, Bounded x, Bounded y) {
    if (is_comparison(op)) return compare(op, x, y);
    const double a = x.value, b = y.value;
    switch (op) {
        case Op::add:
            return settled(a + b, x.error + y.error, unit);
        case Op::subtract:
            return settled(a - b, x.error + y.error, unit);
        case Op::multiply: {
            // Inf times an error of nothing is no error.
            const double e = (y.error > 0 ? std::fabs(a) * y.error : 0)
                             + (x.error > 0 ? std::fabs(b) * x.error : 0) + x.error * y.error;
            if (std::isnan(a * b) && x.error + y.error > 0 && !std::isnan(a) && !std::isnan(b))
                return {a * b, infinity};
            if (std::isinf(a * b) && std::isfinite(a) && std::isfinite(b)) return {a * b, infinity};
            return settled(a * b, e, unit);
        }
        case Op::divide: {
            if (y.error > 0 && std::fabs(b) <= y.error) return {a / b, infinity};
            const double e = y.error + x.error == 0
                                 ? 0
                                 : (x.error + std::fabs(a / b) * y.error) / (std::fabs(b) - y.error);
            return settled(a / b, e, 4 * unit);
        }
        case Op::power:
            return power(x, y);
        case Op::minimum:
        case Op::maximum: {
            if (std::isnan(a) || std::isnan(b)) return {std::nan(""), 0};
            const bool first = op == Op::maximum ? a >= b : a <= b;
            return {first ? a : b, std::max(x.error, y.error)};
        }
        default:
            assert(false);
            return {};
    }
}

/// Elements of a broadcast operand: index of the result -> index of the operand.
class Stretch {
  public:
    Stretch(const Shape& to, const Shape& from) : to_(to), strides_(to.size(), 0) {
        std::int64_t stride = 1;
        for (size_t i = 0; i < from.size(); ++i) {
            const std::int64_t extent = from[from.size() - 1 - i];
            if (extent != 1) strides_[to.size() - 1 - i] = stride;
            stride *= extent;
        }
        same_ = to == from;
    }
    size_t operator()(std::int64_t index) const {
        if (same_) return size_t(index);
        std::int64_t at = 0;
        for (size_t i = to_.size(); i-- > 0;) {
            at += index % to_[i] * strides_[i];
            index /= to_[i];
        }
        return size_t(at);
    }

  private:
    Shape to_;
    std::vector<std::int64_t> strides_;
    bool same_ = false;
};

Bounded pointwise(const GraphNode& n, const std::vector<Bounded>& x, std::int64_t index, Element precision) {
    if (n.op == Op::cast) {
        if (n.element == Element::fp32) return x[0];
        const double r = rounded_to(x[0].value, n.element);
        return {r, x[0].error == 0 ? 0 : x[0].error + ulp_of(x[0].value, n.element)};
    }
    if (n.op == Op::where) {
        const Bounded &yes = x[1], &no = x[2];
        if (std::isinf(x[0].error)) return {x[0].value != 0 ? yes.value : no.value, infinity};
        return x[0].value != 0 ? yes : no;
    }
    if (n.op == Op::dropout) {
        const double scale = n.value < 1 ? 1 / (1 - n.value) : 0;
        const bool keep = dropout_keeps(std::uint64_t(index), n.value, n.seed, n.offset);
        return binary(Op::multiply, x[0], {keep ? scale : 0.0, keep ? scale * unit : 0});
    }
    Bounded r = x.size() == 1 ? unary(n.op, x[0], precision) : binary(n.op, x[0], x[1]);
    if (n.element == Element::boolean && !is_comparison(n.op))
        r = {double(r.value != 0), r.error > tiny ? r.error : 0};
    return r;
}

/// `out` may hold anything; its memory is used again.
BoundedTensor evaluate_node(const ExpressionGraph& graph, const GraphNode& n,
                            const std::vector<BoundedTensor>& values, std::span<const std::int64_t> rows,
                            BoundedTensor out) {
    if (is_row_operation(n.op) || reduces_all(n.op)) {
        const GraphNode& operand = graph.nodes[size_t(n.operands[0])];
        std::vector<const BoundedTensor*> operands;
        for (int i : n.operands) operands.push_back(&values[size_t(i)]);
        return evaluate_rows(n, operands,
                             reduces_all(n.op) ? elements_of(operand.shape) : operand.shape.back(),
                             std::move(out));
    }
    out.resize(size_t(elements_of(n.shape)));
    const Element precision = precision_of(graph);
    std::vector<Stretch> places;
    for (int i : n.operands) places.emplace_back(n.shape, graph.nodes[size_t(i)].shape);
    std::vector<Bounded> x(n.operands.size());
    for (size_t index = 0; index < out.size(); ++index) {
        for (size_t i = 0; i < x.size(); ++i)
            x[i] = values[size_t(n.operands[i])][places[i](std::int64_t(index))];
        std::int64_t element = std::int64_t(index);
        if (n.shape.size() == 2 && n.shape[0] == std::int64_t(rows.size()))
            element = rows[index / size_t(n.shape[1])] * n.shape[1] + element % n.shape[1];
        out[index] = pointwise(n, x, element, precision);
    }
    return out;
}

/// The last node that reads each node; outputs are read to the end.
std::vector<size_t> last_readers(const ExpressionGraph& graph) {
    std::vector<size_t> last(graph.nodes.size(), 0);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
        for (int operand : graph.nodes[i].operands) last[size_t(operand)] = i;
    for (const GraphOutput& o : graph.outputs) last[size_t(o.node)] = graph.nodes.size();
    return last;
}

BoundedTensor exact_numbers(std::span<const double> numbers, BoundedTensor out) {
    out.resize(numbers.size());
    std::ranges::transform(numbers, out.begin(), [](double x) { return Bounded{x, 0}; });
    return out;
}

}  // namespace

std::vector<BoundedTensor> evaluate(const ExpressionGraph& graph, std::span<const std::vector<double>> inputs,
                                    std::span<const std::int64_t> rows) {
    assert(inputs.size() == graph.inputs.size());
    const std::vector<size_t> last = last_readers(graph);
    std::vector<BoundedTensor> values(graph.nodes.size());
    // Of tensors that nobody reads any more, since asking the system for pages costs as much as filling them.
    BoundedTensor spare;
    size_t next = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const GraphNode& n = graph.nodes[i];
        if (n.op == Op::number) {
            values[i] = {{double(float(n.value)), 0}};
        } else if (n.op == Op::input) {
            assert(std::int64_t(inputs[next].size()) == elements_of(n.shape));
            values[i] = exact_numbers(inputs[next++], std::exchange(spare, {}));
        } else {
            values[i] = evaluate_node(graph, n, values, rows, std::exchange(spare, {}));
        }
        for (int operand : n.operands)
            if (last[size_t(operand)] == i && values[size_t(operand)].capacity() > spare.capacity())
                spare = std::exchange(values[size_t(operand)], {});
    }
    std::vector<BoundedTensor> out;
    for (const GraphOutput& o : graph.outputs) out.push_back(values[size_t(o.node)]);
    return out;
}

std::optional<ExpressionGraph> rows_of(const ExpressionGraph& graph, std::int64_t count) {
    Shape space;
    for (const GraphNode& n : graph.nodes) {
        if (reduces_all(n.op)) return std::nullopt;
        space = broadcast(space, n.shape);
    }
    if (space.empty()) return std::nullopt;
    ExpressionGraph cut = graph;
    for (GraphNode& n : cut.nodes) {
        if (n.shape.empty()) continue;
        const bool own =
            n.shape.size() == space.size() && std::equal(space.begin(), space.end() - 1, n.shape.begin());
        const bool shared =
            std::all_of(n.shape.begin(), n.shape.end() - 1, [](std::int64_t e) { return e == 1; });
        if (own && space.size() > 1) n.shape = {count, n.shape.back()};
        else if (shared) n.shape = {n.shape.back()};
        else return std::nullopt;
    }
    return cut;
}

double ulp_of(double value, Element element) {
    const Format f = format_of(element);
    // Of 0 and what is subnormal in fp64 it lies below every type's; of Inf and NaN, which have no unit, above.
    const int exponent = int(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
    const bool finite = exponent <= std::numeric_limits<double>::max_exponent - 1;
    return power_of_two((finite ? std::max(exponent, f.least_exponent) : f.least_exponent) - f.bits);
}

double rounded_to(double value, Element element) {
    if (element == Element::boolean) return value != 0;
    if (element == Element::int64 || !std::isfinite(value)) return value;
    if (element == Element::fp32) return double(float(value));
    const Type type = type_of(element);
    return value_of_bits(round_to_bits(value, type), type);
}

bool agrees(double got, const Bounded& expected, Element element) {
    if (std::isinf(expected.error)) return true;
    if (std::isnan(expected.value)) return std::isnan(got);
    if (element == Element::boolean || element == Element::int64) return got == expected.value;
    const double e = expected.error + ulp_of(expected.value, element);
    if (std::isinf(expected.value)) return got == expected.value;
    if (std::isinf(got)) return std::fabs(expected.value) + e >= format_of(element).largest;
    return std::fabs(got - expected.value) <= e;
}

bool dropout_keeps(std::uint64_t index, double p, std::uint64_t seed, std::uint64_t offset) {
    const std::uint64_t threshold = std::uint64_t(std::llround(p * 4294967296.0));
    const std::uint32_t word = philox(index / 8, offset, dropout_keys(seed)).word[index % 8 / 2];
    return (index % 2 ? word : word * dropout_fold) >= threshold;
}

}  // namespace rooftile
