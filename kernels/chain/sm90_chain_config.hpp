// What decides the code of sm90_chain: the kernel's only template parameter, which the planner fills.
#pragma once

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

    static constexpr int element_bytes = 2;
    static constexpr int swizzle_bytes = 128;  ///< a row of a box: 64 elements
    static constexpr int box_elements = swizzle_bytes / element_bytes;
    static constexpr int tile_alignment = 1024;  ///< after which a swizzle repeats
    static constexpr int warpgroup_m = 64;       ///< rows of a wgmma
    static constexpr int barrier_bytes = 8;
    static constexpr int tile_number_bytes = 8;  ///< which tile X is of, for the consumers

    constexpr int consumer_warpgroups() const { return tile_m / warpgroup_m; }
    constexpr int threads() const { return 128 * (1 + consumer_warpgroups()); }
    /// Products that a column of H is made of: of swiglu a gate and an up.
    constexpr int hidden_products() const { return act == ChainFunction::swiglu ? 2 : 1; }
    static constexpr int boxes(int elements) { return (elements + box_elements - 1) / box_elements; }
    static constexpr int box_bytes(int rows) { return rows * swizzle_bytes; }
    constexpr int x_bytes() const { return boxes(d) * box_bytes(tile_m); }
    /// A block of W1: rows of tile_ff, of swiglu twice; of W2: d rows of tile_ff columns.
    constexpr int w1_bytes() const { return hidden_products() * boxes(d) * box_bytes(tile_ff); }
    constexpr int w2_bytes() const { return boxes(tile_ff) * box_bytes(d); }
    /// Full and empty of each stage of X, W1 and W2.
    constexpr int all_barrier_bytes() const { return 2 * (x_stages + 2 * stages) * barrier_bytes; }
    constexpr int shared_bytes() const {
        return x_stages * (x_bytes() + tile_number_bytes) + stages * (w1_bytes() + w2_bytes()) + all_barrier_bytes();
    }
    /// fp32 of Y and of a block of H, and H in pairs: registers of a consumer thread that live through the loop.
    constexpr int accumulator_registers() const { return d / 2 + hidden_products() * tile_ff / 2 + tile_ff / 4; }

    friend constexpr bool operator==(const Sm90ChainConfig&, const Sm90ChainConfig&) = default;
};

}  // namespace rooftile
