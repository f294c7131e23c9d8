// Run-time arguments of attention kernels, laid out alike on host and device.
#pragma once

#include "kernels/attention/attention_mask.hpp"

namespace rooftile {

/// Elements from one row (query), head and batch of a tensor to the next; the head's own dimension is contiguous.
struct AttentionStrides {
    long long row, head, batch;
};

struct AttentionArguments {
    AttentionExtent extent;  ///< of packed sequences, which the kernel cuts into their own: rows of all together
    int heads, kv_heads, batches;
    const int* cu_seqlens;  ///< of packed sequences: where each begins, and behind them their end; null: not packed
    int sequences;          ///< packed
    int section_heads;  ///< heads (of all batches) taken together: attention_tile()
    float scale;        ///< what Q K^T is multiplied by; above 0
    float scale_log2;   ///< what an exponential's argument is made of by base 2: log2(e), and `scale` where scores are plain
    int dim, dim_v;     ///< elements of a row of Q and K, and of V and O; multiples of 8
    const void *q, *k, *v;
    void* o;  ///< all four 16-byte aligned, and so are their strides
    AttentionStrides q_strides, k_strides, v_strides, o_strides;
    float* log_sum_exp;  ///< [batches][heads][queries], natural logarithm; null: not asked for
    unsigned* counter;   ///< of tiles begun, 0 before the launch and after it; null: fixed turns
    // Where keys are split: in how many parts, what each leaves of a tile, and how many of its parts have, of each warpgroup; 0 before and after.
    int splits;
    float* partials;
    unsigned* arrived;
};

}  // namespace rooftile
