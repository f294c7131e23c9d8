// The one template parameter of sm80_few_gemm: filled by the planner, read by the kernel.
//
// It holds only what changes registers, shared memory or instructions. Sizes, leading dimensions, where rows begin and
// the parts of K are run-time arguments, so one cubin serves every shape.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

struct Sm80FewConfig {
    int tile_m, tile_n, tile_k;  ///< rows of A, all of them; columns of C, which are rows of B; of K in a stage
    int stages;                  ///< blocks of A and B in the ring
    int ctas_per_sm;             ///< that registers leave room for
    Type type;
    Major a_major = Major::k, b_major = Major::k;
    /// Some line of B begins amid a word of two elements.
    bool odd_rows = true;
    /// Many products of one shape; the batch is the outermost index of a tile.
    bool batched = false;
    /// Several CTAs sum parts of K of one tile.
    bool in_pieces = false;
    /// B was complete before the kernel in front began: the ring's first blocks of it are asked for before the wait for that kernel.
    bool early_weights = false;
    /// What is stored is an expression of the sums; of a thread, beside the plain kernel's, what it holds. The planner's alone.
    bool expression = false;
    int epilogue_registers = 0;

    // What the hardware fixes.
    static constexpr int mma_m = 16, mma_n = 8, mma_k = 16;  ///< PTX ISA "mma.m16n8k16"; columns of C are on its m
    static constexpr int element_bytes = 2;
    static constexpr int chunk_bytes = 16;  ///< of a copy, and a row of an 8x8 matrix of ldmatrix
    static constexpr int chunk_elements = chunk_bytes / element_bytes;
    static constexpr int bank_chunks = 8;  ///< that all 32 banks of 4 B hold

    // What this kernel's code fixes.
    /// Elements by which a line can begin past a multiple of 16 B. Lines that are `shifts` apart begin alike, whatever the
    /// leading dimension is; a warp multiplies those of one shift.
    static constexpr int shifts = chunk_elements;
    static constexpr int most_rows = 64;        ///< of A
    static constexpr int tile_alignment = 128;  ///< B, of a stage
    static constexpr int halo_chunks = 1;       ///< of a row of A, before a block's own: its elements meet those of lines of other shifts
    static constexpr int most_a_words = 17;     ///< of a block of A that a thread has on their way: of twice as many some spill
    static constexpr int most_a_blocks = 2, most_turning_registers = 36;  ///< of A on their way
    static constexpr int pairs_in_flight = 4;   ///< of neighbours that a thread stores: what they need is loaded together
    static constexpr int pieces_in_flight = 4;  ///< whose sums of those pairs are loaded together
    /// Beyond accumulators and fragments: addresses and bounds of the copies, loop state. Tried with ptxas by ctas_per_sm; for sm_100 and
    /// sm_120 40 spill in tiles of 48x256x128 and 40x256x256.
    constexpr int working_registers() const { return 52 + 8 * (ctas_per_sm > 1) + 8 * odd_rows + 8 * batched + 26 * (a_major != Major::k) + epilogue_registers; }

    static constexpr int warps() { return shifts; }
    static constexpr int threads() { return 32 * warps(); }
    constexpr bool along_k() const { return b_major == Major::k; }
    constexpr bool a_along_k() const { return a_major == Major::k; }
    /// Columns of a line along N in a stage: lines of another shift begin up to 7 columns before the tile's.
    constexpr int copied_n() const { return tile_n + chunk_elements; }
    /// Of B in a stage: columns, or k.
    constexpr int lines() const { return along_k() ? tile_n : tile_k; }
    constexpr int line_chunks() const { return (along_k() ? tile_k : copied_n()) / chunk_elements; }
    /// Of 16 columns of C, a warp's. Along K it has an eighth of the columns, along N an eighth of K.
    constexpr int warp_tiles() const { return along_k() ? tile_n / (mma_m * shifts) : copied_n() / mma_m; }
    constexpr int k_steps() const { return along_k() ? tile_k / mma_k : tile_k / (mma_k * shifts); }  ///< of a warp in one stage
    constexpr int row_tiles() const { return tile_m / mma_n; }                                        ///< of 8 rows of C
    constexpr int row_chunks() const { return tile_k / chunk_elements; }                              ///< of a row of A in a stage

    constexpr int accumulator_registers() const { return warp_tiles() * row_tiles() * 4; }
    /// Those of two k-steps: ptxas loads the next ones during the products of one.
    constexpr int fragment_registers() const { return 2 * (4 * warp_tiles() + 4); }
    /// Words of two elements of a row of A in a block and in the chunk before it; of an m-major A those that all threads bring at once, whole
    /// columns of the tile; and how many a thread brings: of a k-major one those of its warp's rows, and one of the chunks before.
    constexpr int a_row_words() const { return (tile_k + chunk_elements) / 2; }
    constexpr int a_words_at_once() const { return threads() / tile_m; }
    constexpr int a_words() const {
        if (a_along_k()) return tile_m / warps() * tile_k / (2 * 32) + 1;
        return (a_row_words() + a_words_at_once() - 1) / a_words_at_once();
    }
    /// Blocks of A that are on their way by registers, an element a register, each with a body of the main loop: a block of a CTA that is
    /// alone on its SM takes less time than L2.
    constexpr int a_blocks() const { return ctas_per_sm == 1 && 2 * a_words() * most_a_blocks <= most_turning_registers ? most_a_blocks : 1; }
    constexpr int turning_registers() const { return 2 * a_words() * a_blocks(); }
    /// That a thread needs.
    constexpr int registers() const { return accumulator_registers() + fragment_registers() + turning_registers() + working_registers(); }

    /// An odd number, so that a chunk of eight rows lies in eight different groups of banks.
    constexpr int a_pitch_chunks() const { return row_chunks() + halo_chunks; }
    constexpr int a_bytes() const { return tile_m * a_pitch_chunks() * chunk_bytes; }
    constexpr int b_bytes() const { return lines() * line_chunks() * chunk_bytes; }
    constexpr int stage_bytes() const { return a_bytes() + b_bytes(); }
    constexpr int shared_bytes() const { return stages * stage_bytes(); }
    /// fp32 sums that take the ring's place in the end, and elements from a row of them to the next: odd, against conflicts of banks.
    constexpr int sums_pitch() const { return tile_n + 1; }
    constexpr int part_bytes() const { return tile_m * sums_pitch() * 4; }
    constexpr int parts() const { return along_k() ? 1 : warps(); }  ///< of the sums: warps have parts of K
    constexpr int sums_bytes() const { return parts() * part_bytes(); }

    friend constexpr bool operator==(const Sm80FewConfig&, const Sm80FewConfig&) = default;
};

}  // namespace rooftile
