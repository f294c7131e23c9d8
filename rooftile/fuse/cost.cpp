#include "rooftile/fuse/cost.hpp"

#include <algorithm>

#include "rooftile/fuse/unfuse.hpp"

namespace rooftile {
namespace {

bool is_float_tensor(const GraphNode& n) { return n.op != Op::number; }

/// Where a tensor was last touched, counted in bytes that the chain has moved.
class Residency {
  public:
    Residency(size_t nodes, double capacity) : touched_(nodes, -1), capacity_(capacity) {}

    /// Bytes of `size` that a read takes from DRAM: all or, where L2 still holds the tensor, none.
    double read(int node, double size) {
        const double last = touched_[size_t(node)];
        const bool held = last >= 0 && moved_ - last + size <= capacity_;
        touch(node, size);
        return held ? 0 : size;
    }
    void touch(int node, double size) {
        moved_ += size;
        touched_[size_t(node)] = moved_;
    }
    double moved() const { return moved_; }
    double last(int node) const { return touched_[size_t(node)]; }

  private:
    std::vector<double> touched_;
    double capacity_, moved_ = 0;
};

}  // namespace

std::int64_t work_of(const ExpressionGraph& graph, int node) {
    const GraphNode& n = graph.nodes[size_t(node)];
    std::int64_t most = elements_of(n.shape);
    for (int i : n.operands) most = std::max(most, elements_of(graph.nodes[size_t(i)].shape));
    return most;
}

std::vector<UnfusedOp> unfused_ops(const ExpressionGraph& graph, double l2_bytes) {
    std::vector<UnfusedOp> ops;
    Residency l2(graph.nodes.size(), l2_bytes);
    for (int index = 0; index < int(graph.nodes.size()); ++index) {
        const GraphNode& n = graph.nodes[size_t(index)];
        if (n.op == Op::input || n.op == Op::number) continue;
        UnfusedOp op;
        op.node = index;
        std::vector<int> operands = n.operands;
        std::sort(operands.begin(), operands.end());
        operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
        double accesses = 0;
        for (int i : operands) {
            const GraphNode& operand = graph.nodes[size_t(i)];
            if (!is_float_tensor(operand)) continue;
            op.read_bytes += bytes_of(operand);
            op.dram_read_bytes += l2.read(i, double(bytes_of(operand)));
            op.cost += double(elements_of(operand.shape)) * conversion_cost(operand.element);
            accesses += double(bytes_of(operand)) / 16;
        }
        op.written_bytes = bytes_of(n);
        l2.touch(index, double(op.written_bytes));
        op.cost += double(elements_of(n.shape)) * conversion_cost(n.element);
        accesses += double(op.written_bytes) / 16;
        // Alone in its kernel: what it stores asks for the precision.
        const bool narrow = n.element == Element::bf16 || n.element == Element::fp16;
        OpCost one = cost_of(n, narrow ? n.element : Element::fp32);
        if (const auto of_number = operator_of(n.op).cost.of_number)
            if (const GraphNode& second = graph.nodes[size_t(n.operands[1])]; second.op == Op::number)
                one = of_number(second.value);
        op.cost += double(work_of(graph, index)) * one;
        op.cost += accesses * OpCost{access_cost, 0};
        ops.push_back(op);
    }
    for (size_t output = 0; output < graph.outputs.size(); ++output) {
        const GraphOutput& o = graph.outputs[output];
        const GraphNode& n = graph.nodes[size_t(o.node)];
        if (!is_copy(graph, output)) continue;
        UnfusedOp copy;
        copy.node = o.node;
        copy.read_bytes = copy.written_bytes = bytes_of(n);
        copy.dram_read_bytes = l2.read(o.node, double(bytes_of(n)));
        copy.cost = 2 * double(bytes_of(n)) / 16 * OpCost{access_cost, 0};
        l2.touch(o.node, double(bytes_of(n)));
        ops.push_back(copy);
    }
    // A result that nothing pushes out of L2 before the end never reaches DRAM, unless it is an output.
    for (UnfusedOp& op : ops) {
        const bool output = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                        [&](const GraphOutput& o) { return o.node == op.node; });
        const bool stays = l2.moved() - l2.last(op.node) + double(op.written_bytes) <= l2_bytes;
        op.dram_written_bytes = stays && !output ? 0 : double(op.written_bytes);
    }
    return ops;
}

FusedBytes fused_bytes(const ExpressionGraph& graph) {
    FusedBytes bytes;
    for (int i : graph.inputs) bytes.read_bytes += bytes_of(graph.nodes[size_t(i)]);
    for (const GraphOutput& o : graph.outputs) bytes.written_bytes += bytes_of(graph.nodes[size_t(o.node)]);
    return bytes;
}

bool mostly_reads(const ExpressionGraph& graph) {
    constexpr std::int64_t much = 8;
    const FusedBytes bytes = fused_bytes(graph);
    return bytes.written_bytes * much < bytes.read_bytes;
}

}  // namespace rooftile
