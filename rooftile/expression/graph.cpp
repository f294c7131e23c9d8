#include "rooftile/expression/graph.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace rooftile {
namespace {

std::string number_text(const GraphNode& n) {
    if (n.integer) return fmt::format("{:.0f}", n.value);
    // Without a point a whole number would be read as an integer, which takes the other operand's type.
    const std::string text = fmt::format("{}", n.value);
    return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

class Writer {
  public:
    Writer(const ExpressionGraph& graph, std::size_t most) : graph_(graph), max_(most) {}

    void write(int index, int least, int depth) {
        // Shared values would be written once a use, which can double with every operation.
        if (out_.size() > max_ || depth > max_depth) {
            out_ += "...";
            return;
        }
        const GraphNode& n = graph_.nodes[size_t(index)];
        if (n.op == Op::input) {
            out_ += n.name;
            return;
        }
        if (n.op == Op::number) {
            const bool brackets = n.value < 0 && least > 1;
            out_ += brackets ? "(" + number_text(n) + ")" : number_text(n);
            return;
        }
        const Operator& row = operator_of(n.op);
        if (row.precedence < precedence::call) return sign(n, row.precedence, least, depth);
        out_ += n.op == Op::cast ? name_of(n.element) : name_of(n.op);
        out_ += "(";
        for (size_t i = 0; i < n.operands.size(); ++i) {
            if (i) out_ += ", ";
            write(n.operands[i], 0, depth + 1);
        }
        const bool told = !reduces_columns(n.op) || n.value != 0;
        if (!row.attributes[0].name.empty() && told) out_ += fmt::format(", {}={}", row.attributes[0].name, n.value);
        for (int i : {1, 2})
            if (!row.attributes[i].name.empty())
                out_ += fmt::format(", {}={}", row.attributes[i].name, i == 1 ? n.seed : n.offset);
        out_ += ")";
    }

    std::string take() { return std::move(out_); }

  private:
    static constexpr int max_depth = 200;

    void sign(const GraphNode& n, int strength, int least, int depth) {
        const bool brackets = strength < least;
        if (brackets) out_ += "(";
        if (n.operands.size() == 1) {
            out_ += "-";
            write(n.operands[0], strength, depth + 1);
        } else {
            const bool right = n.op == Op::power;
            write(n.operands[0], strength + (right || is_comparison(n.op)), depth + 1);
            out_ += right ? "**" : fmt::format(" {} ", name_of(n.op));
            write(n.operands[1], strength + !right, depth + 1);
        }
        if (brackets) out_ += ")";
    }

    const ExpressionGraph& graph_;
    std::size_t max_;
    std::string out_;
};

}  // namespace

bool too_large(const Shape& shape) {
    double product = 1;
    for (std::int64_t extent : shape) product *= double(std::max<std::int64_t>(1, extent));
    return product >= max_elements;
}

std::int64_t elements_of(const Shape& shape) {
    std::int64_t product = 1;
    for (std::int64_t extent : shape) product *= extent;
    return product;
}

std::string text_of(const Shape& shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) out += fmt::format("{}{}", i ? "," : "", shape[i]);
    return out + "]";
}

Element precision_of(const ExpressionGraph& graph) {
    const auto element = [&](const GraphOutput& o) { return graph.nodes[size_t(o.node)].element; };
    if (graph.outputs.empty()) return Element::fp32;
    const Element first = element(graph.outputs[0]);
    const bool same = std::all_of(graph.outputs.begin(), graph.outputs.end(),
                                  [&](const GraphOutput& o) { return element(o) == first; });
    return same && (first == Element::bf16 || first == Element::fp16) ? first : Element::fp32;
}

std::vector<Element> precisions_of(const ExpressionGraph& graph) {
    std::vector<Element> out(graph.nodes.size(), precision_of(graph));
    if (precision_of(graph) != Element::bf16) return out;
    for (std::size_t i = graph.nodes.size(); i-- > 0;)
        for (int operand : graph.nodes[i].operands)
            if (out[i] != Element::bf16 || !operator_of(graph.nodes[i].op).scales) out[std::size_t(operand)] = Element::fp16;
    return out;
}

std::int64_t bytes_of(const GraphNode& node) {
    return node.op == Op::number ? 0 : elements_of(node.shape) * bytes_of(node.element);
}

std::string expression_of(const ExpressionGraph& graph, int node, std::size_t most) {
    Writer writer(graph, most);
    writer.write(node, 0, 0);
    return writer.take();
}

}  // namespace rooftile
