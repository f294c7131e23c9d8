// Rotary embedding of queries and keys, and keys and values into a cache: what one kernel is compiled for, and what a launch is told.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// Holds only what changes instructions: a head's elements are the work of `lanes()` threads, 16 of them each.
struct RotaryConfig {
    int dim = 128;      ///< elements of a head, a multiple of 16 up to 512
    int rotated = 128;  ///< of them, the first ones, in pairs `rotated / 2` apart; a multiple of 16
    Type type = Type::bf16;
    bool normed = false;  ///< queries and keys are scaled to a root mean square of 1 and by weights, head by head, before they are turned
    bool paged = false;   ///< the cache is pages that a table names

    static constexpr int vector = 8;     ///< elements of an access of 16 bytes
    static constexpr int threads = 128;  ///< of a CTA
    /// Threads that have something to do, and those that a head is given: lanes of one warp that a butterfly of shuffles stays within.
    constexpr int busy_lanes() const { return dim / (2 * vector); }
    constexpr int lanes() const {
        int lanes = 1;
        while (lanes < busy_lanes()) lanes *= 2;
        return lanes;
    }
    constexpr int heads_of_cta() const { return threads / lanes(); }
};

struct RotaryArguments {
    const void* rows;  ///< of one product: queries, then keys, then values of each token, densely
    void* q;           ///< [tokens, heads, dim]
    void* k;
    void* v;
    const float* turns;      ///< [positions, rotated / 2]: cosine and sine side by side
    const int* lengths;      ///< keys that each sequence has once this step's are among them
    const int* block_table;  ///< [sequences, table_pages]; null: the cache has a place for each sequence
    const void* q_weight;    ///< [dim], of normed
    const void* k_weight;
    float eps;
    int tokens, tokens_of_sequence;  ///< of all sequences; each sequence's stand at its end
    int heads, kv_heads;
    int positions;                                       ///< that `turns` has, and that a sequence has room for
    int page, table_pages;                               ///< keys of a page, pages of a sequence
    long long row_stride, head_stride, sequence_stride;  ///< of K and V, in elements; the last is a page's where there are pages
};

}  // namespace rooftile
