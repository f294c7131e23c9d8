// The one template parameter of sm80_gemm: filled by the planner, read by the kernel.
//
// It holds only what changes registers, shared memory or instructions. Sizes, leading dimensions and
// the tile order are run-time arguments, so one cubin serves every shape.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

struct Sm80GemmConfig {
    int tile_m, tile_n, tile_k;
    int stages;            ///< tiles of A and B in the ring
    int warps_m, warps_n;  ///< the CTA's warps stand in a grid over its tile
    int ctas_per_sm;       ///< that registers leave room for
    Type type;
    Major a_major, b_major;
    /// Bytes of one copy to shared memory: 16, 8 or 4 by cp.async, 2 through a register. Operand address and
    /// leading dimension must be multiples of it; sizes need not.
    int a_copy_bytes = 16, b_copy_bytes = 16;
    /// Some copies reach past the end of a row: the contiguous extent of A or B is no multiple of its copies.
    bool partial_copies = false;
    /// C by 16-byte stores: its address, rows and n must be multiples of 16 B; else by element.
    bool vector_store = true;
    /// A CTA takes tile after tile, and the ring runs on from one into the next; else one tile a CTA.
    bool persistent = false;
    /// Many products of one shape; the batch is the outermost index of a tile.
    bool batched = false;
    /// Axes of the image, 2 or 3, whose pixels A's rows are gathered from; 0: A is a matrix.
    int image_axes = 0;
    /// What is stored is an expression of the sums; of a thread, beside the plain kernel's, what it holds. The planner's alone.
    bool expression = false;
    int epilogue_registers = 0;

    // What the hardware fixes.
    static constexpr int mma_m = 16, mma_n = 8, mma_k = 16;  ///< PTX ISA "mma.m16n8k16"
    static constexpr int element_bytes = 2;
    static constexpr int chunk_bytes = 16;  ///< a row of an 8x8 matrix of ldmatrix
    static constexpr int chunk_elements = chunk_bytes / element_bytes;
    static constexpr int bank_chunks = 8;           ///< that all 32 banks of 4 B hold
    static constexpr int quad_columns = 4 * mma_n;  ///< that the four lanes of a row store at once, 16 B each

    // What this kernel's code fixes.
    static constexpr int tile_alignment =
        bank_chunks * chunk_bytes;  ///< chunks are counted from address bits

    constexpr bool narrow_copies() const { return a_copy_bytes < 16 || b_copy_bytes < 16; }
    /// Beyond accumulators and fragments: addresses and bounds of the copies, places of fragments in a stage, loop
    /// state. Bisected with ptxas by ctas_per_sm; what is too little spills on one architecture or another.
    constexpr int working_registers() const {
        return 40 + 12 * (persistent + partial_copies + narrow_copies()) + 8 * batched + gather_registers() + epilogue_registers;
    }
    /// Of an image: where each row that a thread copies begins and which taps it meets, and what a step's tap is made of.
    constexpr int gather_registers() const { return image_axes == 0 ? 0 : 2 * tile_m * tile_k / (chunk_elements * threads()) + 8; }

    constexpr int warps() const { return warps_m * warps_n; }
    constexpr int threads() const { return 32 * warps(); }
    constexpr int warp_m() const { return tile_m / warps_m; }
    constexpr int warp_n() const { return tile_n / warps_n; }
    constexpr int k_steps() const { return tile_k / mma_k; }  ///< of one stage

    constexpr int accumulator_registers() const { return warp_m() * warp_n() / 32; }
    /// Operands of one k-step: four registers hold 16 x 16 elements.
    constexpr int fragment_registers() const { return (warp_m() + warp_n()) / 16 * 4; }
    /// That a thread needs; fragments of the next k-step are loaded beside the products of this one.
    constexpr int registers() const {
        return accumulator_registers() + 2 * fragment_registers() + working_registers();
    }

    /// Whether the threads cut both operands' tiles evenly: they stand in whole rows, and each copies as many
    /// pieces. So 96 or 192 rows or columns that are contiguous want a multiple of 3 warps.
    constexpr bool copies_evenly() const {
        return copies_evenly(a_major, tile_m, a_copy_bytes) && copies_evenly(b_major, tile_n, b_copy_bytes);
    }
    constexpr bool copies_evenly(Major major, int extent, int copy_bytes) const {
        const int rows = major == Major::k ? extent : tile_k;
        const int of_a_row = (major == Major::k ? tile_k : extent) * element_bytes / copy_bytes;
        const int across = of_a_row < threads() ? of_a_row : threads(), down = threads() / across;
        return threads() % across == 0 && of_a_row % across == 0 && rows % down == 0
               && (down % 8 == 0 || (down & (down - 1)) == 0);
    }

    constexpr int a_bytes() const { return tile_m * tile_k * element_bytes; }
    constexpr int b_bytes() const { return tile_n * tile_k * element_bytes; }
    constexpr int stage_bytes() const { return a_bytes() + b_bytes(); }
    constexpr int shared_bytes() const { return stages * stage_bytes(); }

    friend constexpr bool operator==(const Sm80GemmConfig&, const Sm80GemmConfig&) = default;
};

}  // namespace rooftile
