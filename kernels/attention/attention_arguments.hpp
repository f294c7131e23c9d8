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
    int heads, kv_heads, batches;  ///< heads: of tiles, `extent.group` heads of Q each
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
    // Where blocks are shared out to CTAs: what each leaves of a tile that others have parts of, and how many of a tile's parts have, by the CTA
    // that has the first one, of each warpgroup; 0 before and after.
    float* partials;
    unsigned* arrived;
    const int* lengths;  ///< keys of each batch, at most those of the extent; null: all have as many
    // Where keys lie in pages: which one, of each batch `table_pages` in a row, each of `page` keys; a tensor's "batch" is a page. 0: they do not.
    const int* block_table;
    int page, table_pages;
};

}  // namespace rooftile
