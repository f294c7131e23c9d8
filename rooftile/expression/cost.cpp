#include "rooftile/expression/cost.hpp"

#include "rooftile/expression/graph.hpp"

namespace rooftile {

OpCost cost_of(const GraphNode& node, Element precision) {
    const OperatorCost& cost = operator_of(node.op).cost;
    OpCost one = cost.fp32;
    if (precision == Element::fp16) one = cost.fp16.value_or(one);
    if (precision == Element::bf16) one = cost.bf16.value_or(one);
    one.issue += cost.issue_per_operand * double(node.operands.size());
    return one;
}

OpCost score_cost_of(const GraphNode& node) {
    const std::optional<OpCost>& own = operator_of(node.op).cost.score;
    return own ? *own : cost_of(node, Element::fp16);
}

OpCost conversion_cost(Element element) {
    switch (element) {
        case Element::fp32:
            return {};
        case Element::bf16:
            return {1, 0, 1};
        case Element::fp16:
            return {1, 0};
        case Element::boolean:
        case Element::int64:
            return {2, 0, 2};
    }
    return {};
}

}  // namespace rooftile
