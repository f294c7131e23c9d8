// What decides the code of two products back to back (back_to_back.cuh) beside what stands between them: made of an operation's own
// configuration, for the planner and the kernel alike.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// D = f(A B) E by tiles of rows of A and D, and in them by blocks of columns of A B, which are rows of E.
struct BackToBackShape {
    int rows;         ///< of a tile, 64 a consumer warpgroup
    int depth;        ///< of the first product's sums, in whole k-steps
    int block;        ///< columns of A B that are computed at once
    int width;        ///< columns of D
    int stages;       ///< of B and of E each
    int a_stages = 1; ///< with two a tile's A comes while the tile before is computed
    int products = 1; ///< that a column of a block is made of: B has so many matrices
    Major e_major = Major::mn;  ///< of E: its rows lie as they are, or its columns do
    bool resident = false;      ///< there are as many stages as blocks: B and E come once a CTA and stay for all its tiles
    bool ordered = true;        ///< warpgroups issue their products one after the other (ordered sequence barrier)
    bool ordered_across_tiles = false;  ///< the order goes on from tile to tile, as it must where warpgroups may be a tile apart
    int told_bytes = 8;  ///< of what the producer tells of a tile
    int told_slots = 1;  ///< more than there are stages of A: consumers read it again at a tile's end
    int producer_registers = 24, consumer_registers = 240;
    Type type = Type::bf16;

    static constexpr int element_bytes = 2;
    static constexpr int swizzle_bytes = 128;    ///< a row of a box: 64 elements
    static constexpr int box_elements = swizzle_bytes / element_bytes;
    static constexpr int tile_alignment = 1024;  ///< after which a swizzle repeats
    static constexpr int warpgroup_rows = 64;    ///< of a wgmma
    static constexpr int barrier_bytes = 8;

    constexpr int consumer_warpgroups() const { return rows / warpgroup_rows; }
    constexpr int threads() const { return 128 * (1 + consumer_warpgroups()); }
    static constexpr int boxes(int elements) { return (elements + box_elements - 1) / box_elements; }
    /// Bytes of a box of `rows` rows, and of what is loaded of `rows` rows of `elements` each.
    static constexpr int box_bytes(int rows) { return rows * swizzle_bytes; }
    static constexpr int rows_bytes(int rows, int elements) { return boxes(elements) * box_bytes(rows); }
    constexpr int a_bytes() const { return rows_bytes(rows, depth); }
    constexpr int b_bytes() const { return products * rows_bytes(block, depth); }
    constexpr int e_bytes() const { return e_major == Major::mn ? rows_bytes(block, width) : rows_bytes(width, block); }
    /// Full and empty of each stage.
    constexpr int all_barrier_bytes() const { return 2 * (a_stages + 2 * stages) * barrier_bytes; }
    constexpr int shared_bytes() const {
        return a_stages * a_bytes() + stages * (b_bytes() + e_bytes()) + all_barrier_bytes() + told_slots * told_bytes;
    }
    /// fp32 of D and of a block, and the block in pairs: registers of a consumer thread that live through the loop.
    constexpr int accumulator_registers() const { return width / 2 + products * block / 2 + block / 4; }

    friend constexpr bool operator==(const BackToBackShape&, const BackToBackShape&) = default;
};

}  // namespace rooftile
