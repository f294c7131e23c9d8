#include "rooftile/expression/graph_builder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "rooftile/expression/text.hpp"

namespace rooftile {
namespace {

void check_shape(const Shape& shape, int column) {
    if (too_large(shape))
        throw ExpressionError(fmt::format("{} spans 2^48 elements or more", text_of(shape)), column);
}

/// Names stand in generated code: what is no name never gets there.
void check_name(const std::string& name, int column) {
    bool good = !name.empty() && name.size() <= 48 && ((name[0] | 32) >= 'a' && (name[0] | 32) <= 'z');
    for (char c : name)
        good = good && (((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_');
    if (!good)
        throw ExpressionError("a name must be letters, digits and \"_\", at most 48, and begin with a letter",
                              column);
}

std::string words(const GraphNode& n) { return fmt::format("{}{}", name_of(n.element), text_of(n.shape)); }

/// The element type of a result whose operands mix to `mixed`; refuses what has no floating meaning.
Element result_of(Op op, Element mixed, int column) {
    const ResultType result = operator_of(op).result;
    if (result == ResultType::boolean) return Element::boolean;
    if (result == ResultType::index) return Element::int64;
    if (is_floating(mixed)) return mixed;
    if (result == ResultType::floating_or_fp32) return Element::fp32;
    if (result == ResultType::floating_or_bool && mixed == Element::boolean) return mixed;
    throw ExpressionError(
        fmt::format("\"{}\" of {} values: expected a floating type; cast with fp32(...), or "
                    "write numbers with a point",
                    name_of(op), name_of(mixed)),
        column);
}

void check_attribute(const Operator& row, double value, int column) {
    const Attribute& a = row.attributes[0];
    if (a.name.empty() || (value >= 0 && value <= a.most)) return;
    throw ExpressionError(fmt::format("{}: {} = {} must be {}", row.name, a.name, value, a.domain), column);
}

}  // namespace

Shape broadcast(const Shape& x, const Shape& y, int column) {
    Shape out(std::max(x.size(), y.size()));
    for (size_t i = 0; i < out.size(); ++i) {  // from the last axis
        const std::int64_t a = i < x.size() ? x[x.size() - 1 - i] : 1;
        const std::int64_t b = i < y.size() ? y[y.size() - 1 - i] : 1;
        if (a != b && a != 1 && b != 1)
            throw ExpressionError(
                fmt::format("shapes {} and {} do not go together: {} against {} on axis {} from the end",
                            text_of(x), text_of(y), a, b, i + 1),
                column);
        out[out.size() - 1 - i] = a == 1 ? b : a;
    }
    return out;
}

int GraphBuilder::add(GraphNode node) {
    constexpr size_t max_nodes = 2 * size_t(max_expression_nodes);
    if (graph_.nodes.size() >= max_nodes)
        throw ExpressionError(fmt::format("more than {} operations", max_nodes), node.column);
    check_shape(node.shape, node.column);
    graph_.nodes.push_back(std::move(node));
    return int(graph_.nodes.size()) - 1;
}

int GraphBuilder::input(std::string name, Element element, Shape shape, int column) {
    if (int(shape.size()) > max_axes)
        throw ExpressionError(fmt::format("{} has {} axes: at most {}", name, shape.size(), max_axes),
                              column);
    for (std::int64_t extent : shape)
        if (extent < 0 || double(extent) >= max_elements)
            throw ExpressionError(fmt::format("{}: an extent of {}; must be 0 .. 2^48 - 1", name, extent),
                                  column);
    if (element == Element::int64)
        throw ExpressionError(
            fmt::format("{}: int64 tensors are not supported; bf16, fp16, fp32 or bool", name), column);
    check_name(name, column);
    for (int i : graph_.inputs)
        if (node(i).name == name)
            throw ExpressionError(fmt::format("two tensors are named {}", name), column);
    const int index = add({.op = Op::input,
                           .element = element,
                           .shape = std::move(shape),
                           .name = std::move(name),
                           .column = column});
    graph_.inputs.push_back(index);
    return index;
}

int GraphBuilder::integer(std::int64_t value, int column) {
    return add({.op = Op::number,
                .element = Element::int64,
                .value = double(value),
                .integer = true,
                .column = column});
}

int GraphBuilder::number(double value, int column) {
    return add({.op = Op::number, .element = Element::fp32, .value = value, .column = column});
}

Rank GraphBuilder::rank_of(const GraphNode& node) const {
    if (node.op == Op::number) return Rank::number;
    return node.shape.empty() ? Rank::scalar : Rank::tensor;
}

Element GraphBuilder::mixture(const std::vector<int>& operands, size_t first) const {
    Promotion promotion;
    for (size_t i = first; i < operands.size(); ++i) {
        const GraphNode& n = node(operands[i]);
        promotion.add(n.element, rank_of(n));
    }
    return promotion.result();
}

/// Numbers stay Python's: integers as long as they are exact in an fp64.
int GraphBuilder::fold(Op op, const std::vector<int>& operands, int column) {
    const GraphNode& x = node(operands[0]);
    const GraphNode& y = node(operands.back());
    const Operator& row = operator_of(op);
    const double value =
        row.meaning.folded ? row.meaning.folded(x.value, operands.size() > 1 ? y.value : 0) : std::nan("");
    if (std::isnan(value) && !std::isnan(x.value) && !std::isnan(y.value))
        throw ExpressionError(fmt::format("\"{}\" of numbers alone has no value here", row.name), column);
    const bool whole = x.integer && y.integer && row.result != ResultType::floating_or_fp32
                       && value == std::floor(value) && !(op == Op::power && y.value < 0);
    if (whole && std::fabs(value) <= 9007199254740992.0) return integer(std::int64_t(value), column);
    return number(value, column);
}

void GraphBuilder::check_weight(Op op, const GraphNode& row, int weight, int column) const {
    const GraphNode& w = node(weight);
    const Shape expected{row.shape.back()};
    if (w.op == Op::number || w.shape != expected || !is_floating(w.element))
        throw ExpressionError(
            fmt::format("{}: a weight of {} floating values expected, as the rows of {}; found {}",
                        name_of(op), row.shape.back(), words(row), words(w)),
            column);
}

void GraphBuilder::check_operands(Op op, const std::vector<int>& operands, int column) const {
    if (is_row_operation(op) || reduces_columns(op) || reduces_all(op)) {
        const GraphNode& row = node(operands[0]);
        if (row.op == Op::number || !is_floating(row.element))
            throw ExpressionError(fmt::format("{} needs a floating tensor; found {}", name_of(op),
                                              row.op == Op::number ? "a number" : words(row)),
                                  column);
        if (!reduces_all(op) && row.shape.empty())
            throw ExpressionError(
                fmt::format("{} works along the last axis; {} has none", name_of(op), words(row)), column);
        if (reduces_columns(op) && row.shape.size() < 2)
            throw ExpressionError(fmt::format("{} works along all axes but the last; {} has no other", name_of(op), words(row)),
                                  column);
        const Shape reduced = reduces_all(op)       ? row.shape
                              : reduces_columns(op) ? Shape(row.shape.begin(), row.shape.end() - 1)
                                                    : Shape{row.shape.back()};
        const bool empty = elements_of(reduced) == 0;
        if (empty && operator_of(op).needs_elements)
            throw ExpressionError(fmt::format("{} of nothing: {} is empty", name_of(op), words(row)), column);
        for (size_t i = 1; i < operands.size(); ++i) check_weight(op, row, operands[i], column);
    }
    if (op == Op::where
        && (node(operands[0]).element != Element::boolean || node(operands[0]).op == Op::number))
        throw ExpressionError(
            fmt::format("where: the condition must be bool, as x > 0; found {}", words(node(operands[0]))),
            column);
    if (op == Op::dropout && !is_floating(node(operands[0]).element))
        throw ExpressionError(
            fmt::format("dropout needs a floating tensor; found {}", words(node(operands[0]))), column);
}

int GraphBuilder::apply(Op op, const std::vector<int>& operands, const Attributes& attributes, int column) {
    assert(!operands.empty() && op != Op::cast);
    check_operands(op, operands, column);
    bool numbers = op != Op::where && op != Op::dropout;
    for (int i : operands) numbers = numbers && node(i).op == Op::number;
    if (numbers) return fold(op, operands, column);
    check_attribute(operator_of(op), attributes.value, column);
    if (const GraphNode& x = node(operands[0]);
        reduces_columns(op) && attributes.value != 0 && attributes.value != double(x.shape.size() - 1))
        throw ExpressionError(fmt::format("{} along {} axes of {}: it works along all but the last, which are {}", name_of(op),
                                          attributes.value, words(x), x.shape.size() - 1),
                              column);

    GraphNode n{.op = op,
                .operands = operands,
                .value = attributes.value,
                .seed = attributes.seed,
                .offset = attributes.offset,
                .column = column};
    const GraphNode& first = node(operands[0]);
    if (is_row_operation(op) || reduces_columns(op) || reduces_all(op)) {
        n.element = result_of(op, first.element, column);
        n.shape = reduces_all(op) ? Shape{} : reduces_columns(op) ? Shape{first.shape.back()} : first.shape;
        if (reduces_row(op)) n.shape.back() = 1;
        return add(std::move(n));
    }
    const Element mixed = mixture(operands, op == Op::where ? 1 : 0);
    for (int i : operands)
        if (node(i).element == Element::int64 && node(i).op != Op::number)
            throw ExpressionError(
                fmt::format("\"{}\" of indices (int64): cast them with fp32(...) first", name_of(op)),
                column);
    n.element = result_of(op, mixed, column);
    for (int i : operands) n.shape = broadcast(n.shape, node(i).shape, column);
    return add(std::move(n));
}

int GraphBuilder::cast(Element to, int operand, int column) {
    const GraphNode& from = node(operand);
    if (from.op == Op::number)
        throw ExpressionError("a cast needs a tensor; a number takes the type of what it meets", column);
    if (from.element == to) return operand;
    return add({.op = Op::cast, .operands = {operand}, .element = to, .shape = from.shape, .column = column});
}

void GraphBuilder::name(int index, std::string name) {
    check_name(name, 0);
    GraphNode& n = graph_.nodes[size_t(index)];
    if (n.op != Op::input) n.name = std::move(name);
}

void GraphBuilder::output(std::string name, int index, int column) {
    check_name(name, column);
    for (const GraphOutput& o : graph_.outputs)
        if (o.name == name) throw ExpressionError(fmt::format("two outputs are named {}", name), column);
    if (node(index).op == Op::number)
        throw ExpressionError(fmt::format("{} is a number: there is nothing to compute", name), column);
    graph_.outputs.push_back({std::move(name), index});
}

ExpressionGraph GraphBuilder::take() {
    if (graph_.outputs.empty()) throw ExpressionError("there is no output", 0);
    std::vector<int> place(graph_.nodes.size(), -1);
    for (const GraphOutput& out : graph_.outputs) place[size_t(out.node)] = 0;
    for (size_t i = graph_.nodes.size(); i-- > 0;)
        if (place[i] == 0)
            for (int operand : graph_.nodes[i].operands) place[size_t(operand)] = 0;
    ExpressionGraph kept;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
        GraphNode& n = graph_.nodes[i];
        if (place[i] < 0) {
            if (n.op == Op::input)
                throw ExpressionError(fmt::format("the tensor \"{}\" is not used", n.name), 0);
            continue;
        }
        for (int& operand : n.operands) operand = place[size_t(operand)];
        place[i] = int(kept.nodes.size());
        if (n.op == Op::input) kept.inputs.push_back(place[i]);
        kept.nodes.push_back(std::move(n));
    }
    for (GraphOutput& out : graph_.outputs) out.node = place[size_t(out.node)];
    kept.outputs = std::move(graph_.outputs);
    for (const GraphOutput& out : kept.outputs)
        kept.text +=
            fmt::format("{}{} = {}", kept.text.empty() ? "" : "; ", out.name, expression_of(kept, out.node));
    graph_ = {};
    return kept;
}

}  // namespace rooftile
