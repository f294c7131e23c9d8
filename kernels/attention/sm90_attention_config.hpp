// What decides the code of sm90_attention: the kernel's only template parameter, which the planner fills.
#pragma once

#include "kernels/attention/attention_mask.hpp"
#include "kernels/matrix/back_to_back_shape.hpp"
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
    bool split = false;   ///< all blocks are shared out to CTAs evenly, and tiles cut where one's share ends
    bool grouped = false; ///< heads that share keys are rows of one tile
    bool cache = false;   ///< behind a sequence's keys stands what nobody wrote, as lengths are read on the device
    int page = 0;         ///< keys of a page where keys lie in pages
    int ctas_per_sm = 1;  ///< at once
    int piece = 0;        ///< blocks of a piece at least, where a tile's cuts follow from its own blocks alone; 0: from the shares
    bool packed = false;  ///< sequences of unlike lengths, one behind the other, in place of batches
    bool combine_apart = false;  ///< a second kernel adds up parts of tiles, on all SMs at once, in the place of who comes last
    bool latent = false;  ///< values are the first elements of keys' rows, which are loaded once: sm90_latent_attention

    static constexpr int element_bytes = BackToBackShape::element_bytes;
    static constexpr int swizzle_bytes = BackToBackShape::swizzle_bytes;
    static constexpr int box_elements = BackToBackShape::box_elements;
    static constexpr int tile_alignment = BackToBackShape::tile_alignment;
    static constexpr int warpgroup_q = BackToBackShape::warpgroup_rows;
    static constexpr int barrier_bytes = BackToBackShape::barrier_bytes;
    static constexpr int tile_number_bytes = 8;  ///< which tile Q is of, for the consumers
    static constexpr int told_bytes = 36;        ///< and of packed sequences and of pieces where it is, of this tile and its neighbours

    // Of a tile that is cut: parts at most, of each CTA an SM five a lane of the warp that adds them up; numbers behind a row of a part, two that it states and two
    // that keep rows at 16 bytes; parts of a row whose loads that warp has in flight.
    static constexpr int most_splits_a_cta = 160, split_pair = 4, split_loads = 8;

    constexpr int most_splits() const { return most_splits_a_cta * ctas_per_sm; }
    /// A share may have many tiles of few blocks: the next one's Q and keys come while this one is computed and stored.
    constexpr int q_stages() const { return split && !latent ? 2 : 1; }
    /// A is Q, B the keys, E the values; between them the softmax.
    constexpr BackToBackShape shape() const {
        return {.rows = tile_q, .depth = dim, .block = tile_kv, .width = dim_v, .stages = stages, .a_stages = q_stages(), .ordered = turns,
                .told_bytes = packed || split ? told_bytes : tile_number_bytes, .told_slots = packed || split ? q_stages() + 1 : 1,
                .producer_registers = producer_registers, .consumer_registers = consumer_registers, .type = type};
    }
    constexpr int consumer_warpgroups() const { return latent ? latent_warpgroups : shape().consumer_warpgroups(); }
    constexpr bool paged() const { return page > 0; }
    constexpr int threads() const { return 128 * (1 + consumer_warpgroups()); }
    static constexpr int boxes(int elements) { return BackToBackShape::boxes(elements); }
    static constexpr int box_bytes(int rows) { return BackToBackShape::box_bytes(rows); }
    constexpr int q_bytes() const { return shape().a_bytes(); }
    constexpr int k_bytes() const { return shape().b_bytes(); }
    constexpr int v_bytes() const { return latent ? 0 : shape().e_bytes(); }
    constexpr int shared_bytes() const {
        if (latent) return q_bytes() + stages * k_bytes() + probability_bytes() + latent_barrier_bytes() + (q_stages() + 1) * told_bytes + exchange_bytes;
        return shape().shared_bytes();
    }
    constexpr int accumulator_registers() const {
        return latent ? columns_of_warpgroup() / 2 + keys_of_warpgroup() / 2 : shape().accumulator_registers();
    }

    // Of latent rows: two warpgroups have the same rows of a tile, each half of a block's scores and half of O's columns. Probabilities go through shared
    // memory; so do rows' maxima, their sums, and which warps' rows are spoiled.
    static constexpr int latent_warpgroups = 2, row_numbers_bytes = latent_warpgroups * warpgroup_q * 4, exchange_bytes = 2 * row_numbers_bytes + 32;
    // Of the kernel that adds up parts: a warp has so many columns of a row.
    static constexpr int combine_threads = 256, combine_columns = 128;
    constexpr int combine_ctas_a_tile(int rows) const { return (rows * (dim_v / combine_columns) * 32 + combine_threads - 1) / combine_threads; }
    constexpr int keys_of_warpgroup() const { return tile_kv / latent_warpgroups; }
    constexpr int columns_of_warpgroup() const { return dim_v / latent_warpgroups; }
    constexpr int written_probability_bytes() const { return latent ? tile_q * tile_kv * element_bytes : 0; }
    constexpr int probability_bytes() const { return BackToBackShape::rows_bytes(tile_q, tile_kv); }
    constexpr int latent_barrier_bytes() const { return 2 * (q_stages() + stages) * barrier_bytes; }

    friend constexpr bool operator==(const Sm90AttentionConfig&, const Sm90AttentionConfig&) = default;
};

}  // namespace rooftile
