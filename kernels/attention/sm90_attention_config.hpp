// What decides the code of sm90_attention: the kernel's only template parameter, which the planner fills.
#pragma once

#include "kernels/attention/attention_mask.hpp"
#include "kernels/types.hpp"

namespace rooftile {

struct Sm90AttentionConfig {
    int tile_q = 128;   ///< queries of a tile, 64 a consumer warpgroup
    int tile_kv = 128;  ///< keys of a block; a multiple of 16
    int dim = 128;      ///< of queries and keys, rounded up to 16
    int dim_v = 128;    ///< of values, rounded up to 8
    int stages = 2;     ///< of keys and of values each
    bool turns = true;  ///< warpgroups issue their products in turns, so that one's softmax runs beside another's products
    int producer_registers = 24, consumer_registers = 240;
    Type type = Type::bf16;
    AttentionMask mask = AttentionMask::none;
    bool packed = false;  ///< sequences of unlike lengths, one behind the other, in place of batches

    static constexpr int element_bytes = 2;
    static constexpr int swizzle_bytes = 128;   ///< a row of a box: 64 elements
    static constexpr int box_elements = swizzle_bytes / element_bytes;
    static constexpr int tile_alignment = 1024;  ///< after which a swizzle repeats
    static constexpr int warpgroup_q = 64;       ///< rows of a wgmma
    static constexpr int barrier_bytes = 8;
    static constexpr int tile_number_bytes = 8;  ///< which tile Q is of, for the consumers
    static constexpr int told_bytes = 32;        ///< and of packed sequences where it lies, of this tile and of the one before

    constexpr int consumer_warpgroups() const { return tile_q / warpgroup_q; }
    constexpr int threads() const { return 128 * (1 + consumer_warpgroups()); }
    static constexpr int boxes(int elements) { return (elements + box_elements - 1) / box_elements; }
    /// Bytes of a box of `rows` rows, and of what is loaded of `rows` rows of `elements` each.
    static constexpr int box_bytes(int rows) { return rows * swizzle_bytes; }
    static constexpr int rows_bytes(int rows, int elements) { return boxes(elements) * box_bytes(rows); }
    constexpr int q_bytes() const { return rows_bytes(tile_q, dim); }
    constexpr int k_bytes() const { return rows_bytes(tile_kv, dim); }
    constexpr int v_bytes() const { return rows_bytes(tile_kv, dim_v); }
    /// Full and empty of Q's one stage, and of each stage of K and V.
    constexpr int all_barrier_bytes() const { return 2 * (1 + 2 * stages) * barrier_bytes; }
    constexpr int shared_bytes() const {
        return q_bytes() + stages * (k_bytes() + v_bytes()) + all_barrier_bytes()
               + (packed ? 2 * told_bytes : tile_number_bytes);
    }
    /// fp32 of O and of the scores, and the probabilities in pairs: registers of a consumer thread that live through the loop.
    constexpr int accumulator_registers() const { return dim_v / 2 + tile_kv / 2 + tile_kv / 4; }

    friend constexpr bool operator==(const Sm90AttentionConfig&, const Sm90AttentionConfig&) = default;
};

}  // namespace rooftile
