#include "rooftile/expression/evaluate.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "rooftile/expression/graph_builder.hpp"
#include "rooftile/expression/host_row.hpp"

namespace rooftile {
namespace {

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

/// The operation of `n` on rows as `rows_in` has them; operands behind the first are weights of a row.
BoundedTensor evaluate_rows(const GraphNode& n, const std::vector<BoundedTensor>& values,
                            const RowsIn& lie, BoundedTensor out) {
    const std::int64_t columns = lie.columns;
    const BoundedTensor& x = values[size_t(n.operands[0])];
    const bool keeps = keeps_row(n.op);
    out.resize(keeps ? x.size() : size_t(elements_of(n.shape)));
    const size_t rows = keeps ? (columns ? x.size() / size_t(columns) : 0) : out.size();
    HostRow row{.first = x.data(),
                .n = columns,
                .epsilon = n.value,
                .weights = int(n.operands.size()) - 1,
                .out = out.data(),
                .step = lie.step};
    for (int w = 0; w < row.weights; ++w) row.weight_of[w] = values[size_t(n.operands[size_t(w) + 1])].data();
    for (size_t r = 0; r < rows; ++r) {
        operator_of(n.op).meaning.row.host(row);
        row.first += lie.pitch;
        row.out += keeps ? columns : 1;
    }
    return out;
}

/// `out` may hold anything; its memory is used again.
BoundedTensor evaluate_node(const ExpressionGraph& graph, const GraphNode& n, Element precision,
                            const std::vector<BoundedTensor>& values, BoundedTensor out) {
    if (operator_of(n.op).meaning.row)
        return evaluate_rows(n, values, rows_in(n.op, graph.nodes[size_t(n.operands[0])].shape), std::move(out));
    out.resize(size_t(elements_of(n.shape)));
    std::vector<Stretch> places;
    for (int i : n.operands) places.emplace_back(n.shape, graph.nodes[size_t(i)].shape);
    ElementCall call = element_call(n, precision);
    Bounded* const operands[] = {&call.x, &call.y, &call.z};
    const auto element = operator_of(n.op).meaning.element.host;
    for (size_t index = 0; index < out.size(); ++index) {
        for (size_t i = 0; i < places.size(); ++i)
            *operands[i] = values[size_t(n.operands[i])][places[i](std::int64_t(index))];
        call.index = index;
        out[index] = meaning::as_flag(call, element(call));
    }
    return out;
}

BoundedTensor exact_numbers(std::span<const double> numbers, BoundedTensor out) {
    out.resize(numbers.size());
    std::ranges::transform(numbers, out.begin(), [](double x) { return Bounded{x, 0}; });
    return out;
}

}  // namespace

RowsIn rows_in(Op op, const Shape& shape) {
    if (reduces_all(op)) return {elements_of(shape), elements_of(shape), 1};
    const std::int64_t last = shape.back();
    if (!reduces_columns(op)) return {last, last, 1};
    return {elements_of(Shape(shape.begin(), shape.end() - 1)), 1, last};
}

std::vector<size_t> last_readers(const ExpressionGraph& graph) {
    std::vector<size_t> last(graph.nodes.size(), 0);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
        for (int operand : graph.nodes[i].operands) last[size_t(operand)] = i;
    for (const GraphOutput& o : graph.outputs) last[size_t(o.node)] = graph.nodes.size();
    return last;
}

ElementCall element_call(const GraphNode& node, Element precision) {
    const Operator& row = operator_of(node.op);
    return {.x = {},
            .y = {},
            .z = {},
            .index = 0,
            .element = node.element,
            .precision = precision,
            .value = node.value,
            .seed = node.seed,
            .offset = node.offset,
            .of_flags = row.result == ResultType::floating_or_bool && !row.code.of_flags.empty()
                        && node.element == Element::boolean};
}

std::vector<BoundedTensor> evaluate(const ExpressionGraph& graph,
                                    std::span<const std::vector<double>> inputs) {
    assert(inputs.size() == graph.inputs.size());
    const std::vector<size_t> last = last_readers(graph);
    const std::vector<Element> precisions = precisions_of(graph);
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
            values[i] = evaluate_node(graph, n, precisions[i], values, std::exchange(spare, {}));
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
        if (reduces_columns(n.op) || reduces_all(n.op)) return std::nullopt;
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

}  // namespace rooftile
