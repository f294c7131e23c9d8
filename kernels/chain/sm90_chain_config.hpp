// What decides the code of sm90_chain: the kernel's only template parameter, which the planner fills.
#pragma once

#include "kernels/matrix/back_to_back_shape.hpp"
#include "kernels/types.hpp"

namespace rooftile {

/// As rooftile/chain/problem.hpp counts them.
enum class ChainFunction : unsigned char { gelu, silu, relu, swiglu };

struct Sm90ChainConfig {
    int tile_m = 128;  ///< rows of a tile, 64 a consumer warpgroup
    int tile_ff = 64;  ///< columns of H of a block
    int d = 128;       ///< columns of X and Y, rounded up to 64
    int stages = 2;    ///< of W1 and of W2 each
    int x_stages = 1;  ///< of X: with two a tile's X comes while the tile before is computed
    bool resident = false;  ///< there are as many stages as blocks: W1 and W2 come once a CTA and stay for all its tiles
    bool turns = true; ///< warpgroups issue their products in turns, so that one's function runs beside another's products
    int producer_registers = 24, consumer_registers = 240;
    Type type = Type::bf16;
    ChainFunction act = ChainFunction::gelu;
    bool residual = false;  ///< Y = X + ...

    static constexpr int element_bytes = BackToBackShape::element_bytes;
    static constexpr int swizzle_bytes = BackToBackShape::swizzle_bytes;
    static constexpr int box_elements = BackToBackShape::box_elements;
    static constexpr int tile_alignment = BackToBackShape::tile_alignment;
    static constexpr int warpgroup_m = BackToBackShape::warpgroup_rows;

    /// A is X, B rows of W1, E columns of W2; between them the function. With two stages of X a warpgroup may be a tile ahead of another.
    constexpr BackToBackShape shape() const {
        return {.rows = tile_m, .depth = d, .block = tile_ff, .width = d, .stages = stages, .a_stages = x_stages,
                .products = hidden_products(), .e_major = Major::k, .resident = resident, .ordered = turns, .ordered_across_tiles = true, .told_slots = x_stages,
                .producer_registers = producer_registers, .consumer_registers = consumer_registers, .type = type};
    }
    /// Products that a column of H is made of: of swiglu a gate and an up.
    constexpr int hidden_products() const { return act == ChainFunction::swiglu ? 2 : 1; }
    constexpr int consumer_warpgroups() const { return shape().consumer_warpgroups(); }
    constexpr int threads() const { return shape().threads(); }
    static constexpr int boxes(int elements) { return BackToBackShape::boxes(elements); }
    static constexpr int box_bytes(int rows) { return BackToBackShape::box_bytes(rows); }
    constexpr int x_bytes() const { return shape().a_bytes(); }
    constexpr int w1_bytes() const { return shape().b_bytes(); }
    constexpr int w2_bytes() const { return shape().e_bytes(); }
    constexpr int shared_bytes() const { return shape().shared_bytes(); }
    constexpr int accumulator_registers() const { return shape().accumulator_registers(); }

    friend constexpr bool operator==(const Sm90ChainConfig&, const Sm90ChainConfig&) = default;
};

}  // namespace rooftile
