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
#include "rooftile/expression/meaning.hpp"

namespace rooftile {
namespace {

/// Mantissa bits below the leading one, and the least normal exponent.
struct Format {
    int bits, min_exponent;
    double largest;
};
Format format_of(Element e) {
    if (e == Element::bf16) return {7, -126, 3.3895313892515355e38};
    if (e == Element::fp16) return {10, -14, 65504};
    return {23, -126, bounds::largest};
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
        out[index] = bounded_element({n, x, element, precision});
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
    return power_of_two((finite ? std::max(exponent, f.min_exponent) : f.min_exponent) - f.bits);
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
