// The one template parameter of matrix kernels for Hopper: filled by a planner, read by the kernel.
//
// It holds only what changes registers, shared memory or instructions. Sizes, leading dimensions and
// the block order are run-time arguments, so one cubin serves every shape.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

struct MatrixConfig {
    int tile_m, tile_n, tile_k;
    int stages;
    int consumer_warpgroups;
    Schedule schedule;
    /// B's columns stand on wgmma's m, which goes in steps of 64, and A's rows on its n, which goes in steps of 8: the sums are
    /// C^T, and are turned on their way out. Tile, cluster and operands keep their names: tile_m is over C's rows.
    bool swap_ab = false;
    int cluster_m, cluster_n;
    int split_k = 1;  ///< CTAs of a cluster that sum parts of K of the same tile
    bool in_pieces = false;  ///< clusters sum pieces of K of the same tile, which meet in the workspace
    int ctas_per_sm;
    int producer_registers, consumer_registers;  ///< setmaxnreg a thread; 0: the launch value is kept
    Type type;                                     ///< of A
    Type b_type = Type::bf16, c_type = Type::bf16;  ///< A and B are of one width; C of 16 bits or fp32
    Major a_major, b_major;
    /// C by TMA; else by predicated stores, where n or ldc is no multiple of 16 B: TMA cannot address such an
    /// ldc, and it writes whole 16-byte pieces, past column n into the padding (docs/facts.md).
    bool tma_store;
    bool overlapped_epilogue = false;  ///< C leaves between the next tile's first products
    int epilogue_tile_n = 0;  ///< columns of C that one TMA store takes; 0: as swizzled_columns() says
    /// Loads of A and B, stores of C carry the policy that the arguments name; else the instruction has no
    /// hint.
    bool load_policy = false, store_policy = false;
    /// B was complete before the kernel in front began: its boxes of the first stages are asked for before the wait for that kernel.
    bool early_weights = false;
    /// Copies of A and B, the matrix instructions, or the copies of C: a kernel that is timed, never used.
    Ablation ablated = Ablation::nothing;
    /// Many products of one shape, by tensor maps of three axes; the batch is the outermost index of a tile.
    bool batched = false;
    /// An epilogue's operand of 16 bits that has an element for each of C comes by TMA into the epilogue tiles, where the result
    /// takes its place.
    bool operand_staged = false;
    /// Groups of rows that shared memory has room for, of which each has a matrix of B: a power of two, 32 at least. 0: there are
    /// none. They are batched, A and C are one matrix.
    int group_slots = 0;
    /// Of a batch or groups: clusters take tiles from a counter in the workspace as they come for them, not in fixed turns.
    bool dynamic_scheduler = false;
    /// Of 8-bit operands: after each stage sums leave the matrix units' accumulators, which keep 14 bits, for fp32 registers of
    /// their own.
    bool promoted = false;
    /// What they are promoted by: a scale for each row of A and 128 columns of B, of that stage's 128 of K.
    bool block_scales = false;
    /// The expression is of pairs of B's columns, a gate and an up, and the result has half as many columns. A tile of B holds
    /// pair_step gates, then the ups that belong to them, and so on, however they lie in memory: a thread has both.
    bool pairs = false;
    int results = 1;  ///< of the expression: C, and others as large, of its type, dense
    /// A's rows are places of an image of so many axes, 2 or 3, and K its channels, tap by tap of a filter, in reverse where B is n-major; with A
    /// m-major B is of the image, K its places and columns its channels, tap by tap. 0: both are matrices.
    int image_axes = 0;
    /// Of a kernel of two products, which share the ring and the epilogue tiles: B from stage to stage, and of all epilogue tiles; 0: what
    /// this product's need.
    int stage_room = 0, epilogue_room = 0;
    /// What is stored is an expression of the sums; of a thread, beside the plain kernel's, what it holds. The planner's alone.
    bool expression = false;
    int epilogue_registers = 0;

    // What the hardware fixes.
    static constexpr int warpgroup_threads = 128;
    static constexpr int wgmma_m = 64;         ///< rows of one wgmma, PTX ISA "wgmma.mma_async"
    static constexpr int wgmma_k_bytes = 32;   ///< 16 elements of 16 bits
    static constexpr int swizzle_bytes = 128;  ///< the widest TMA swizzle span
    static constexpr int barrier_bytes = 8;      ///< one mbarrier
    static constexpr int told_tile_bytes = 16;   ///< one, and a number
    static constexpr int tile_alignment = 1024;  ///< of a 128-byte-swizzled tile: 8 rows of 128 B
    static constexpr int sector_bytes = 32;      ///< the least that L2 writes whole
    static constexpr int tma_bytes = 16;         ///< the least that a box has of a row
    static constexpr int box_alignment = 128;    ///< of what TMA writes without a swizzle

    // What the format of block scales fixes.
    static constexpr int scale_block = 128;  ///< columns of B and steps of K that share one
    static constexpr int scales_a_box = tma_bytes / 4;

    // What this kernel's code fixes.
    static constexpr int epilogue_tiles_in_flight =
        2;  ///< C epilogue tiles a consumer warpgroup stores through
    static constexpr int most_registers = 255;  ///< that an instruction can name: what a thread has where none are moved
    static constexpr int max_results = 3;
    static constexpr int pair_step = 8;  ///< columns that a thread's neighbouring accumulators skip
    static constexpr int max_groups = 1024;  ///< a lane of a warp counts a 32nd of them in registers
    static constexpr int sums_in_flight_bytes =
        32768;  ///< at most, of other pieces' sums of a CTA: more than its SM's port brings within L2's latency

    constexpr bool grouped() const { return group_slots > 0; }
    constexpr int operand_bytes() const { return bytes_of(type); }  ///< of an element
    constexpr int result_bytes() const { return bytes_of(c_type); }
    constexpr int sector_columns() const { return sector_bytes / result_bytes(); }

    /// Registers beyond the accumulators: descriptors, addresses, loop state, conversion; predicated stores
    /// hold a row's address and bounds besides. Bisected with ptxas by compile tests.
    constexpr int working_registers() const {
        return (tma_store ? 32 : 48) + (in_pieces ? 16 : 0) + promotion_registers() + epilogue_registers;
    }
    /// Of other pieces' sums, four at a time, that a thread has on their way: what is left beside the accumulators.
    constexpr int sums_in_flight() const {
        const int registers = consumer_registers > 0 ? consumer_registers : most_registers;
        const int part = split_k > 1 ? 4 : 0;  // where its part of the tile begins
        const int room = (registers - accumulator_registers() - working_registers() - part) / 4,
                  most = sums_in_flight_bytes / (16 * warpgroup_threads * consumer_warpgroups);
        return room < 2 ? 2 : room < most ? room : most;
    }
    /// With overlapped_epilogue a tile in C's type stands beside the next tile's accumulators.
    constexpr int kept_registers() const { return accumulator_registers() / 2; }
    constexpr int overlapping_registers() const {
        return accumulator_registers() + kept_registers() + working_registers();
    }
    constexpr int threads() const { return warpgroup_threads * (1 + consumer_warpgroups); }
    /// CTAs of a cluster that share operands: one part of K.
    constexpr int peers() const { return cluster_m * cluster_n; }
    constexpr int cluster_ctas() const { return peers() * split_k; }

    /// The tile's sides on the instruction's m and n.
    constexpr int mma_m() const { return swap_ab ? tile_n : tile_m; }
    constexpr int mma_n() const { return swap_ab ? tile_m : tile_n; }
    /// Of mma_m, what one consumer warpgroup accumulates: rows of C; with swap_ab columns.
    constexpr int warpgroup_m() const {
        return schedule == Schedule::pingpong ? mma_m() : mma_m() / consumer_warpgroups;
    }
    constexpr int wgmma_rows() const { return warpgroup_m() / wgmma_m; }  ///< wgmmas stacked along mma_m
    constexpr int accumulator_registers() const { return warpgroup_m() * mma_n() / warpgroup_threads; }
    constexpr int row_accumulators() const { return mma_n() / 2; }  ///< a thread, of one 64-row wgmma
    /// Those of one wgmma that a stage begins anew.
    constexpr int promotion_registers() const { return promoted ? row_accumulators() : 0; }
    /// Warps of a CTA that multiply the same stage and hand it back.
    constexpr int tile_warps() const {
        return 4 * (schedule == Schedule::pingpong ? 1 : consumer_warpgroups);
    }
    constexpr int wgmma_k() const { return wgmma_k_bytes / operand_bytes(); }
    constexpr int k_steps() const { return tile_k / wgmma_k(); }  ///< of one stage

    constexpr int a_bytes() const { return tile_m * tile_k * operand_bytes(); }
    constexpr int b_bytes() const { return tile_n * tile_k * operand_bytes(); }
    constexpr int stage_bytes() const { return a_bytes() + b_bytes(); }
    constexpr int stage_pitch() const { return stage_room > 0 ? stage_room : stage_bytes(); }
    /// Of B's scales that a stage needs: one for each 128 columns.
    constexpr int b_scales() const { return tile_n <= scale_block ? 1 : tile_n / scale_block; }
    /// Of A's, those that come: a group's first row may lie within the 16 bytes that a box begins at.
    constexpr int scale_rows() const { return tile_m + (grouped() ? scales_a_box : 0); }
    /// Of a stage in shared memory: A's scales, then of each of B's 16 bytes of a row, of which one number counts.
    constexpr int a_scale_bytes() const { return (scale_rows() * 4 + box_alignment - 1) / box_alignment * box_alignment; }
    constexpr int scale_bytes() const { return block_scales ? a_scale_bytes() + box_alignment : 0; }
    /// What arrives of them.
    constexpr int scale_copies() const { return block_scales ? scale_rows() * 4 + b_scales() * tma_bytes : 0; }
    /// [tile_k][64] of an mn-major tile: one TMA box.
    constexpr int mn_box_bytes() const { return tile_k * swizzle_bytes; }

    /// Of mma_n, what one CTA adds up and stores: with split_k each part of K stores its share.
    constexpr int share_n() const { return mma_n() / split_k; }
    /// Columns of C that come of so many of B.
    constexpr int result_columns(int columns) const { return pairs ? columns / 2 : columns; }
    /// Of the share, as it is stored.
    constexpr int stored_n() const { return result_columns(share_n()); }
    /// fp32 sums of what one CTA stores, which it leaves in the workspace with K in pieces.
    constexpr int share_bytes() const { return tile_m * tile_n * 4 / split_k; }
    /// Sums are whole only when others' are added: the accumulators serve again for that.
    constexpr bool adds_up() const { return split_k > 1 || in_pieces; }
    /// fp32 sums of one tile, which the parts of K leave in the ring for each other.
    constexpr int exchange_bytes() const { return split_k > 1 ? tile_m * tile_n * 4 : 0; }

    // Without swap_ab a warp writes a C epilogue tile by 8x8 matrices, eight rows at once, which should lie in different banks: by a
    // swizzle, or, two at a time, because a row is an odd number of 32-byte sectors long. Rows of other lengths
    // write parts of sectors, which L2 takes slowly (docs/facts.md).

    /// The widest swizzle span that divides `columns`.
    constexpr int swizzled_columns(int columns) const {
        for (int span = swizzle_bytes / result_bytes(); span > 8; span /= 2)
            if (columns % span == 0) return span;
        return 8;
    }
    /// The widest divisor of `columns`, a multiple of 16, that is an odd number of sectors.
    constexpr int odd_columns(int columns) const {
        while (columns % (2 * sector_columns()) == 0) columns /= 2;
        return columns;
    }
    /// Columns of one C epilogue tile.
    constexpr int epilogue_columns() const {
        if (swap_ab) return turned_columns() < swizzle_bytes / result_bytes() ? turned_columns() : swizzle_bytes / result_bytes();
        return epilogue_tile_n > 0 ? epilogue_tile_n : swizzled_columns(stored_n());
    }
    /// Whether it is of the second kind.
    constexpr bool wide_epilogue_tiles() const {
        return epilogue_columns() != swizzled_columns(epilogue_columns());
    }
    /// Of an epilogue tile's rows; 0: they lie as they are.
    constexpr int epilogue_swizzle_bytes() const {
        return wide_epilogue_tiles() || epilogue_columns() * result_bytes() < sector_bytes ? 0 : epilogue_columns() * result_bytes();
    }
    /// Rows of an epilogue tile that one warp stores; half of its rows where they are wide.
    constexpr int warp_rows() const { return wide_epilogue_tiles() ? 8 : 16; }
    constexpr int halves() const { return 16 / warp_rows(); }
    constexpr int epilogue_tiles_of_a_row() const { return stored_n() / epilogue_columns(); }

    // With swap_ab the four warps of a warpgroup fill one epilogue tile together: the 64 columns of C of one wgmma, a
    // whole swizzle span (of fp32 two, one box behind the other; of pairs 32 columns, half a span in 16 bits), by some of its rows. One box serves all of them: the last of a tile ends where the tile does, and
    // stores again what it shares with the one before.

    constexpr int turned_columns() const { return result_columns(wgmma_m); }
    constexpr int turned_tiles() const { return (share_n() + wgmma_m - 1) / wgmma_m; }  ///< of one wgmma
    constexpr int turned_rows() const { return (share_n() / 8 + turned_tiles() - 1) / turned_tiles() * 8; }
    constexpr int turned_row(int i) const {  ///< the first of the i-th, of the share
        return i + 1 < turned_tiles() ? i * turned_rows() : share_n() - turned_rows();
    }

    /// Bytes from a turned epilogue tile's beginning to the 16 B that a lane of warp `warp` addresses. A warp writes four
    /// matrices at once, two beside each other, its 16 columns, and two below; a row's eight 16-byte chunks are xored with
    /// the row's place among eight.
    static constexpr int turned_offset(int warp, int lane) {
        const int row = lane / 16 * 8 + lane % 8, chunk = 2 * warp + lane / 8 % 2;
        return row * swizzle_bytes + (chunk ^ lane % 8) * 16;
    }

    /// Rows of C that one store takes.
    constexpr int epilogue_rows() const { return swap_ab ? turned_rows() : warp_rows(); }
    /// That a warpgroup stores of a tile.
    constexpr int epilogue_tiles() const {
        return wgmma_rows() * (swap_ab ? turned_tiles() : halves() * epilogue_tiles_of_a_row());
    }
    constexpr int epilogue_tile_bytes() const {
        return (swap_ab ? epilogue_rows() * turned_columns() : 4 * epilogue_rows() * epilogue_columns()) * result_bytes();
    }
    /// C of 16 bits that no tensor map describes leaves by rows, through shared memory.
    constexpr bool stores_rows() const { return !tma_store && !swap_ab && result_bytes() == 2; }
    /// Room for a row that begins up to 14 bytes past 16, from one of a warp's eight to the next: they fall into unlike banks.
    constexpr int staged_row_pitch() const { return (2 * stored_n() + 127) / 128 * 128 + 16; }
    constexpr int staged_bytes() const { return stores_rows() ? 8 * staged_row_pitch() : 0; }  ///< of a warp

    constexpr int epilogue_bytes() const {
        if (epilogue_room > 0) return epilogue_room;
        return consumer_warpgroups * (tma_store ? epilogue_tiles_in_flight * epilogue_tile_bytes() : 4 * staged_bytes());
    }
    /// One for each box of the operand that may be on its way: a warp loads what it stores; where the tile is turned, a warpgroup.
    constexpr int operand_barriers() const {
        return operand_staged ? consumer_warpgroups * epilogue_tiles_in_flight * (swap_ab ? 1 : 4) : 0;
    }
    /// Full and empty of each stage; two for the exchange between parts of K.
    constexpr int all_barrier_bytes() const {
        return (2 * stages + (split_k > 1 ? 2 : 0) + operand_barriers()) * barrier_bytes;
    }

    /// Two words a group, three more, and a number of 16 bits a group; in whole barriers.
    constexpr int group_bytes() const { return grouped() ? 4 * (2 * group_slots + 4) + 2 * group_slots : 0; }

    /// Of the tiles that follow, a CTA's roles may hear of so many: its ring runs as many stages ahead, each of which may be a tile.
    constexpr int told_tiles() const { return stages + 2; }
    /// Room for them, whether or not it is used.
    constexpr int told_bytes() const { return batched ? told_tiles() * told_tile_bytes : 0; }

    /// Everything but the stages.
    constexpr int reserved_bytes() const {
        return epilogue_bytes() + stages * scale_bytes() + all_barrier_bytes() + group_bytes() + told_bytes();
    }
    constexpr int shared_bytes() const { return stages * stage_pitch() + reserved_bytes(); }

    /// Every member that the kernel reads, with its name: instantiations are written from them.
    template <class Visit>
    static constexpr void each(Visit visit) {
        using C = MatrixConfig;
        visit("tile_m", &C::tile_m);
        visit("tile_n", &C::tile_n);
        visit("tile_k", &C::tile_k);
        visit("stages", &C::stages);
        visit("consumer_warpgroups", &C::consumer_warpgroups);
        visit("schedule", &C::schedule);
        visit("swap_ab", &C::swap_ab);
        visit("cluster_m", &C::cluster_m);
        visit("cluster_n", &C::cluster_n);
        visit("split_k", &C::split_k);
        visit("in_pieces", &C::in_pieces);
        visit("ctas_per_sm", &C::ctas_per_sm);
        visit("producer_registers", &C::producer_registers);
        visit("consumer_registers", &C::consumer_registers);
        visit("type", &C::type);
        visit("b_type", &C::b_type);
        visit("c_type", &C::c_type);
        visit("a_major", &C::a_major);
        visit("b_major", &C::b_major);
        visit("tma_store", &C::tma_store);
        visit("overlapped_epilogue", &C::overlapped_epilogue);
        visit("epilogue_tile_n", &C::epilogue_tile_n);
        visit("load_policy", &C::load_policy);
        visit("store_policy", &C::store_policy);
        visit("early_weights", &C::early_weights);
        visit("ablated", &C::ablated);
        visit("batched", &C::batched);
        visit("operand_staged", &C::operand_staged);
        visit("group_slots", &C::group_slots);
        visit("dynamic_scheduler", &C::dynamic_scheduler);
        visit("promoted", &C::promoted);
        visit("block_scales", &C::block_scales);
        visit("pairs", &C::pairs);
        visit("results", &C::results);
        visit("image_axes", &C::image_axes);
        visit("stage_room", &C::stage_room);
        visit("epilogue_room", &C::epilogue_room);
    }

    friend constexpr bool operator==(const MatrixConfig&, const MatrixConfig&) = default;
};

}  // namespace rooftile
