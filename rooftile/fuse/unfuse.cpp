#include "rooftile/fuse/unfuse.hpp"

#include <algorithm>

namespace rooftile {

int first_output(const ExpressionGraph& chain, int node) {
    const auto first = std::ranges::find(chain.outputs, node, &GraphOutput::node);
    return first == chain.outputs.end() ? -1 : int(first - chain.outputs.begin());
}

bool is_copy(const ExpressionGraph& chain, std::size_t output) {
    const int node = chain.outputs[output].node;
    return chain.nodes[size_t(node)].op == Op::input || first_output(chain, node) != int(output);
}

std::vector<UnfusedKernel> unfused_kernels(const ExpressionGraph& chain) {
    constexpr const char* names[] = {"a", "b", "c"};  // no operation has more operands
    std::vector<UnfusedKernel> kernels;
    for (int index = 0; index < int(chain.nodes.size()); ++index) {
        const GraphNode& n = chain.nodes[size_t(index)];
        if (n.op == Op::input || n.op == Op::number) continue;
        UnfusedKernel kernel;
        kernel.node = index;
        std::vector<GraphNode>& nodes = kernel.problem.nodes;
        GraphNode alone = n;
        alone.name.clear();
        for (int& operand : alone.operands) {
            const GraphNode& x = chain.nodes[size_t(operand)];
            const auto seen = std::find(kernel.operands.begin(), kernel.operands.end(), operand);
            if (x.op != Op::number && seen != kernel.operands.end()) {
                operand = kernel.problem.inputs[size_t(seen - kernel.operands.begin())];
                continue;
            }
            GraphNode copy = x;
            if (x.op != Op::number) {
                copy = {.op = Op::input,
                        .element = x.element,
                        .shape = x.shape,
                        .name = names[kernel.operands.size()]};
                kernel.operands.push_back(operand);
                kernel.problem.inputs.push_back(int(nodes.size()));
            }
            operand = int(nodes.size());
            nodes.push_back(std::move(copy));
        }
        nodes.push_back(std::move(alone));
        kernel.problem.outputs = {{"y", int(nodes.size()) - 1}};
        kernel.problem.text = "y = " + expression_of(kernel.problem, int(nodes.size()) - 1);
        kernels.push_back(std::move(kernel));
    }
    for (int output = 0; output < int(chain.outputs.size()); ++output) {
        const int index = chain.outputs[size_t(output)].node;
        const GraphNode& n = chain.nodes[size_t(index)];
        if (!is_copy(chain, size_t(output))) continue;
        UnfusedKernel copy;
        copy.operands = {index};
        copy.node = index;
        copy.output = output;
        copy.problem.nodes = {{.op = Op::input, .element = n.element, .shape = n.shape, .name = names[0]}};
        copy.problem.inputs = {0};
        copy.problem.outputs = {{"y", 0}};
        copy.problem.text = "y = a";
        kernels.push_back(std::move(copy));
    }
    return kernels;
}

}  // namespace rooftile
