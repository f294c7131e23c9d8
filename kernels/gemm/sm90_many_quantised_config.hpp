// The one template parameter of sm90_many_quantised: filled by the planner, read by the kernel.
//
// It holds only what changes registers, shared memory or instructions. Sizes, the order of tiles and how they are shared out are run-time
// arguments, so one cubin serves every shape.
#pragma once

#include "kernels/gemm/quantised_store_shape.hpp"

namespace rooftile {

struct Sm90ManyQuantisedConfig {
    int tile_m, tile_n;  ///< rows of A, in steps of 32; columns of C, which are rows of W: 64 a consumer warpgroup
    int stages;
    int producer_registers, consumer_registers;  ///< setmaxnreg of the two roles
    Type type;                                   ///< of activations and the result
    QuantisedLayout layout;
    /// K is no multiple of 64: rows of A are copied 64 of K at a time, so that none reaches into the next row.
    bool ragged_k = false;
    /// Rows of A in groups, each with columns of W of its own: as many as there is room for, a power of two from 32 on; 0: no groups.
    int group_slots = 0;
    /// That an epilogue holds beside the sums it is of. The planner's alone.
    int epilogue_registers = 0;

    // What the hardware fixes.
    static constexpr int wgmma_m = 64, mma_k = 16;  ///< columns of C are on the instruction's m, rows on its n
    static constexpr int row_step = 32;             ///< of its n with its first operand in registers, as wgmma_registers() has it
    static constexpr int span_k = 64;               ///< of K in 128 B, the widest swizzle
    static constexpr int span_bytes = 128;
    static constexpr int alignment = 1024;  ///< B, of what TMA swizzles by 128 B
    static constexpr int warpgroup_threads = 128, warpgroup_warps = 4;
    static constexpr int cluster_m = 1;

    // What this kernel's code fixes.
    static constexpr int tile_k = QuantisedLayout::block_k;  ///< of K in a stage
    static constexpr int early_stages = 4;                   ///< whose weights are asked for before the kernel before has ended
    static constexpr int summing_warps = 3;                  ///< of the producer's warpgroup, where rows of A are summed
    static constexpr int steps = tile_k / mma_k, spans = tile_k / span_k;

    constexpr int warpgroups() const { return tile_n / wgmma_m; }
    constexpr int group_steps() const { return layout.scaled_k() / mma_k; }
    /// Products that are issued together: of a group, at most a span.
    constexpr int burst_steps() const { return group_steps() < steps / spans ? group_steps() : steps / spans; }
    constexpr int bursts() const { return steps / burst_steps(); }
    constexpr int groups() const { return layout.block_groups(); }  ///< in a stage
    /// Zero points that are no whole numbers: rows of A are summed too.
    constexpr bool sums_rows() const { return layout.zeros == ZeroType::real; }
    /// A row has one scale and products are added up as they are, until the tile ends.
    constexpr bool scales_last() const { return layout.group == 0 && !sums_rows(); }
    constexpr int weight_loads() const { return layout.bits() / 4; }  ///< of 16 B, for a warp's 16 rows of W by 64 of K

    constexpr int activation_bytes() const { return spans * tile_m * span_bytes; }
    constexpr int packed_bytes() const { return warpgroups() * layout.block_bytes(); }
    constexpr int row_sums_at() const { return activation_bytes() + (packed_bytes() + 15) / 16 * 16; }  ///< fp32 [group][tile_m]
    constexpr int row_sums_bytes() const { return sums_rows() ? groups() * tile_m * 4 : 0; }
    constexpr int stage_bytes() const { return (row_sums_at() + row_sums_bytes() + alignment - 1) / alignment * alignment; }
    /// Of each warpgroup, which stores its own 64 columns while the others multiply.
    constexpr QuantisedStoreShape store_shape() const { return {tile_m, wgmma_m, row_step, 1, warpgroup_threads, type, layout, true}; }
    constexpr int sums_bytes() const { return warpgroups() * store_shape().bytes(); }
    /// Full and empty of a stage, and that its rows are summed.
    constexpr int barriers() const { return sums_rows() ? 3 : 2; }
    constexpr bool grouped() const { return group_slots > 0; }
    constexpr int group_bytes() const { return grouped() ? (4 * (2 * group_slots + 4) + 2 * group_slots + 15) / 16 * 16 : 0; }  ///< RowGroups
    /// Beside the stages: these, the table that weights are places in, and where groups are.
    constexpr int reserved_bytes() const { return sums_bytes() + layout.table_bytes() + group_bytes(); }
    constexpr int shared_bytes() const { return stages * stage_bytes() + reserved_bytes() + barriers() * stages * 8; }
    constexpr int threads() const { return warpgroup_threads * (warpgroups() + 1); }

    constexpr int accumulator_registers() const { return tile_m / 2; }
    /// Sums of the tile and of a group, two bursts' fragments; addresses, words on their way and loop state are the rest. Tried with ptxas.
    static constexpr int working_registers = 44, storing_registers = 60;
    constexpr int registers() const {
        const int of_zeros = layout.zeros == ZeroType::integer ? 4 : sums_rows() ? 4 : 0;
        const int multiplied = (scales_last() ? 1 : 2) * accumulator_registers() + 2 * 4 * burst_steps() + working_registers + of_zeros;
        // A tile is stored between its products and the next one's, of which the first fragments are there.
        const int stored = accumulator_registers() + 4 * burst_steps() + storing_registers + epilogue_registers;
        return stored > multiplied ? stored : multiplied;
    }

    // Instructions of a warp, as compiled.
    constexpr int unpack_instructions() const { return layout.unpack_instructions(type); }  ///< of 8 weights a thread
    /// Of a group: sums times scales, and sums of rows times zero points, two of these a load.
    constexpr int group_instructions() const {
        if (scales_last()) return 0;
        const int of_zeros = layout.zeros == ZeroType::integer ? 6 : 0;
        return 8 + of_zeros + accumulator_registers() + (sums_rows() ? accumulator_registers() + accumulator_registers() / 4 : 0);
    }
    static constexpr int stage_instructions = 51;
    static constexpr int step_instructions = 4;   ///< a product, and three that make its descriptor
    static constexpr int pair_instructions = 36;  ///< of two neighbours' sums from shared memory to C
    constexpr int warp_instructions() const {
        return steps * (unpack_instructions() + step_instructions) + spans * weight_loads() + groups() * group_instructions()
               + stage_instructions;
    }

    /// fp32 sums of cut tiles that a CTA leaves to others: of its first and of its last.
    constexpr int part_floats() const { return tile_m * tile_n; }

    friend constexpr bool operator==(const Sm90ManyQuantisedConfig&, const Sm90ManyQuantisedConfig&) = default;
};

/// Run-time arguments, laid out alike on host and device.
struct Sm90ManyQuantisedArguments {
    const unsigned char* weights;  ///< as QuantisedLayout has them
    void* c;
    float* partials;    ///< [CTA][2][warpgroup][tile_m][64]: its part of a tile that it shares with CTAs before it, and with those after it
    unsigned* arrived;  ///< [cut tile][warpgroup] how many parts, 0 before the launch and after it
    int m, n, k;
    int band;  ///< rows of tiles that are taken together, column by column
    long long ldc;
    int groups = 0;                ///< W has the n columns of each, one after the other, n a multiple of 64
    const int* offsets = nullptr;  ///< groups + 1: where a group's rows begin and the last one's end
};

}  // namespace rooftile
