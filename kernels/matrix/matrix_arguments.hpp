// Run-time arguments of matrix kernels, laid out alike on host and device. A kernel reads those that its configuration speaks of.
#pragma once

#include "kernels/ptx/cache_policy.hpp"
#include "kernels/ptx/tensor_map.hpp"

namespace rooftile {

/// Sizes in elements; C is row-major with `ldc` elements from row to row.
struct MatrixArguments {
    int m, n, k;
    int order;  ///< an Order
    int group;  ///< rows of cluster tiles taken together where the order is grouped or serpentine
    /// Bytes that arrive in a stage of the ring; less than the stage has where a tile is larger than C.
    int stage_bytes;
    /// First row and column of the tiles that end with C; beyond any tile where the last tile may stand partly outside it.
    int last_m, last_n;
    int a_slices, b_slices;  ///< of an operand's tile that hold anything; peers beyond them load nothing
    long long ldc;
    void* c;  ///< read only where C goes out by predicated stores
    void* more_results[2];  ///< the same of others beside it
    /// The cluster tiles in the scheduled order, row << 16 | column; null where `order` has a closed form.
    const unsigned* tiles;
    /// A cache_policy_word each; read only with the configuration's load_policy and store_policy.
    unsigned long long a_policy, b_policy, c_policy;
    // Read only by a batched kernel.
    int batch;
    int a_step, b_step;  ///< of an operand's matrices from one of C to the next: 1, or 0 where all of C share one
    int operand_step;    ///< the same of the epilogue's operand that is staged
    unsigned* next_tile;  ///< in the workspace, 0 before the launch and after it; read only with dynamic_scheduler
    long long c_stride;  ///< elements from one matrix of C to the next; read only where C goes out by predicated stores
    // Of groups of rows, each with a matrix of B of its own:
    int groups;
    const int* offsets;  ///< groups + 1: where a group's rows begin and the last one's end
    // Where clusters sum pieces of K by themselves:
    int pieces;
    void* sums;         ///< fp32, in the workspace
    unsigned* arrived;  ///< one a CTA of a piece and its warpgroup, 0 before the launch and after it
};

}  // namespace rooftile
