// Run-time arguments of attention kernels, laid out alike on host and device.
#pragma once

#include "kernels/attention/attention_mask.hpp"

namespace rooftile {

/// Elements from one row (query), head and batch of a tensor to the next; the head's own dimension is contiguous.
struct AttentionStrides {
    long long row, head, batch;
};

struct AttentionArguments {
    AttentionExtent extent;
    int heads, kv_heads, batches;
    int section_heads;   ///< heads (of all batches) taken together: attention_tile()
    float scale_log2;    ///< what a score is multiplied by, times log2(e); above 0
    int dim_v;           ///< elements of a row of O; a multiple of 8
    void* o;             ///< 16-byte aligned, and so are its strides
    AttentionStrides o_strides;
    float* log_sum_exp;  ///< [batches][heads][queries], natural logarithm; null: not asked for
};

}  // namespace rooftile
