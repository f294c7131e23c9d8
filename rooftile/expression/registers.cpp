#include "rooftile/expression/registers.hpp"

#include <algorithm>
#include <vector>

#include "rooftile/expression/operators.hpp"

namespace rooftile {

int values_at_once(const ExpressionGraph& graph) {
    std::vector<int> last(graph.nodes.size(), -1);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (int operand : graph.nodes[i].operands) last[std::size_t(operand)] = int(i);
    int most = 0;
    for (int i = 0; i < int(graph.nodes.size()); ++i) {
        int held = 0;
        for (int value = 0; value < i; ++value)
            held += !graph.nodes[std::size_t(value)].operands.empty() && last[std::size_t(value)] > i;
        most = std::max(most, held);
    }
    return most;
}

int functions_of(const ExpressionGraph& graph) {
    return int(std::ranges::count_if(graph.nodes, [](const GraphNode& n) {
        return n.op == Op::divide || n.op == Op::power || (n.op >= Op::exp && n.op != Op::cast && n.op != Op::where);
    }));
}

}  // namespace rooftile
