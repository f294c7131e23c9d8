// What an expression costs: the bytes and the instructions of each of its operations as a kernel of its own
// and of all of them in one [M24].
#pragma once

#include <cstdint>
#include <vector>

#include "rooftile/expression/cost.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Issue slots of one load or store of 16 bytes with its addresses.
inline constexpr double access_cost = 2;

/// One operation as a kernel that stores its result in the promoted type.
struct UnfusedOp {
    int node = 0;
    std::int64_t read_bytes = 0, written_bytes = 0;      ///< every distinct operand once, the result once
    double dram_read_bytes = 0, dram_written_bytes = 0;  ///< after L2
    OpCost cost;                                         ///< of all elements
    std::int64_t bytes() const { return read_bytes + written_bytes; }
};

/// Every call of the expression in order; numbers are folded, inputs cost nothing. `l2_bytes`: what L2 keeps
/// of a tensor until the next operation; NaN: nothing.
std::vector<UnfusedOp> unfused_ops(const ExpressionGraph& graph, double l2_bytes);

/// Every input read once, every output written once.
struct FusedBytes {
    std::int64_t read_bytes = 0, written_bytes = 0;
    std::int64_t sum() const { return read_bytes + written_bytes; }
};
FusedBytes fused_bytes(const ExpressionGraph& graph);
/// Whether it writes so much less than it reads that no copy is its roof.
bool mostly_reads(const ExpressionGraph& graph);

/// Elements that a node's operation works on: those of its operands together.
std::int64_t work_of(const ExpressionGraph& graph, int node);

}  // namespace rooftile
