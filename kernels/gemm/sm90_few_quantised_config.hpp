// The one template parameter of sm90_few_quantised: filled by the planner, read by the kernel.
//
// It holds only what changes registers, shared memory or instructions. Sizes, and how tiles are shared out, are run-time arguments, so
// one cubin serves every N and K.
#pragma once

#include "kernels/gemm/quantised_store_shape.hpp"

namespace rooftile {

struct Sm90QuantisedConfig {
    int tile_m, tile_n,
        tile_k;  ///< rows of A, all of them; columns of C, which are rows of W; of K in a stage
    int stages;
    int consumer_warps;
    int ctas_per_sm;  ///< that registers leave room for
    Type type;        ///< of activations and the result
    QuantisedLayout layout;
    /// K is no multiple of 64: rows of A are copied 64 of K at a time, so that none reaches into the next row.
    bool ragged_k = false;
    /// That an epilogue holds beside the sums it is of. The planner's alone.
    int epilogue_registers = 0;

    // What the hardware fixes.
    static constexpr int mma_m = 16, mma_n = 8,
                         mma_k = 16;   ///< PTX ISA "mma.m16n8k16"; columns of C are on its m
    static constexpr int span_k = 64;  ///< of K in 128 B, the widest swizzle
    static constexpr int span_bytes = 128;
    static constexpr int alignment = 1024;  ///< B, of what TMA swizzles by 128 B

    // What this kernel's code fixes.
    static constexpr int most_rows = 64;
    static constexpr int early_stages =
        4;  ///< whose weights are asked for before the kernel before has ended
    /// Beyond accumulators and fragments, and beside what an expression holds: addresses, the unit at hand and its edges. Tried with ptxas.
    static constexpr int working_registers = 20, storing_registers = 44;

    constexpr int block_bytes() const { return layout.block_bytes(); }
    constexpr int blocks() const { return tile_k / QuantisedLayout::block_k; }      ///< of K in a stage
    constexpr int columns() const { return tile_n / QuantisedLayout::block_rows; }  ///< of 64 rows of W
    constexpr int spans() const { return tile_k / span_k; }
    constexpr int row_groups() const { return tile_n / mma_m; }  ///< of 16 rows of W: a warp's
    constexpr int k_parts() const {
        return consumer_warps / row_groups();
    }  ///< of a stage, that warps share along K
    constexpr int own_spans() const { return spans() / k_parts(); }
    constexpr int row_tiles() const { return tile_m / mma_n; }
    /// Zero points that are no whole numbers: A is summed too, by products with ones.
    constexpr bool sums_rows() const { return layout.zeros == ZeroType::real; }
    constexpr int products() const { return sums_rows() ? 2 : 1; }  ///< of a fragment of A

    constexpr int activation_bytes() const { return spans() * tile_m * span_bytes; }
    constexpr int column_bytes() const { return blocks() * block_bytes(); }
    constexpr int packed_bytes() const { return columns() * column_bytes(); }
    constexpr int stage_bytes() const {
        return activation_bytes() + (packed_bytes() + alignment - 1) / alignment * alignment;
    }
    constexpr QuantisedStoreShape store_shape() const { return {tile_m, tile_n, tile_m, k_parts(), 32 * consumer_warps, type, layout}; }
    /// fp32 sums of a tile on their way out.
    constexpr int sums_bytes() const { return store_shape().bytes(); }
    /// Beside the stages: these, and the table that weights are places in.
    constexpr int reserved_bytes() const { return sums_bytes() + layout.table_bytes(); }
    constexpr int shared_bytes() const { return stages * stage_bytes() + reserved_bytes() + 2 * stages * 8; }
    constexpr int threads() const { return 32 * (consumer_warps + 1); }

    // Instructions of a warp, as compiled.
    constexpr int unpack_instructions() const { return layout.unpack_instructions(type); }  ///< of 8 weights a thread
    constexpr int weight_loads() const { return layout.bits() / 4; }  ///< of 16 B, for 16 rows of W by 64 of K
    /// Of 16 rows of W by 64 of K: unpacking, the loads of W and A, the products.
    constexpr int span_instructions() const { return 4 * unpack_instructions() + weight_loads() + (2 + 4 * products()) * row_tiles(); }
    /// Of a group: its scales and zero points, sums that begin at 0 and are added.
    constexpr int group_instructions() const {
        const int of_zeros = layout.zeros == ZeroType::integer ? 6 : sums_rows() ? 4 : 0;
        return 4 + of_zeros + 8 * products() * row_tiles();
    }
    /// Of a warp's part of a stage, that nothing of it overlaps: the barrier, and from the loads to the last product. Cycles, from kernels
    /// with one CTA an SM beside those with two.
    static constexpr int stage_instructions = 20, hand_over_cycles = 220;
    constexpr int groups_of_stage() const {
        return (own_spans() * span_k + layout.scaled_k() - 1) / layout.scaled_k();
    }
    constexpr int warp_instructions() const {
        return own_spans() * span_instructions() + groups_of_stage() * group_instructions()
               + stage_instructions;
    }

    /// A loop of whole stages beside the one of those that end with K, so that loads of all spans run ahead: where the SM's registers, among
    /// its warps, hold two loops of 8 rows; sums of A's rows weigh as much again. Tried with ptxas.
    constexpr bool runs_ahead() const {
        const int warps = consumer_warps * ctas_per_sm;
        return row_tiles() == 1 && own_spans() * products() * products() <= (warps > 16 ? 1 : 128 / warps);
    }

    constexpr int accumulator_registers() const { return row_tiles() * 4; }
    /// Sums of a group beside those of the tile, a span's fragments of A and of W.
    constexpr int registers() const {
        // A tile is stored between its products and the next one's, whose sums are 0 and take no registers yet.
        const int stored = storing_registers + epilogue_registers;
        const int of_zeros = layout.zeros == ZeroType::integer ? 6 : layout.zeros == ZeroType::real ? 2 : 0;
        const int multiplied =
            (1 + products()) * accumulator_registers() + row_tiles() * 8 + 8 + working_registers + of_zeros;
        return stored > multiplied ? stored : multiplied;
    }
    /// fp32 sums of cut tiles that a CTA leaves to others: of its first and of its last.
    constexpr int part_floats() const { return tile_m * tile_n; }

    friend constexpr bool operator==(const Sm90QuantisedConfig&, const Sm90QuantisedConfig&) = default;
};

/// Run-time arguments, laid out alike on host and device.
struct Sm90QuantisedArguments {
    const unsigned char* weights;  ///< as QuantisedLayout has them
    void* c;
    float*
        partials;  ///< [CTA][2][tile_m][tile_n]: its part of a tile that it shares with CTAs before it, and with those after it
    unsigned* arrived;  ///< of each tile how many parts, 0 before the launch and after it
    int m, n, k;
    long long ldc;
};

}  // namespace rooftile
