// Epilogue tiles: pieces of a tile of C in shared memory on their way out, and an operand of the epilogue that comes there by TMA.
#pragma once

#include "kernels/matrix/layout.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// Where a warpgroup's stores of C go.
template <MatrixConfig C>
struct StoreTarget {
    const TensorMap& map_c;
    const MatrixShared<C>& shared;
    const MatrixArguments& args;
    int warpgroup;
    /// The epilogue tile to use next; goes on from tile to tile: with an odd number of epilogue tiles a tile ends on the one
    /// that a fresh count would overwrite first.
    int epilogue_tile = 0;
    TileOrigin at{};  ///< the first element of what this warpgroup stores
    // With operand_staged:
    const TensorMap& map_operand = map_c;
    const TensorMap &map_second = map_c, &map_third = map_c;  ///< of results beside C
    unsigned operand_parity = 0;  ///< a bit an epilogue tile
    unsigned operand = 0;         ///< where the epilogue tile at hand lies, for this warp; and what of C it has:
    int operand_row = 0, operand_column = 0;

    /// Of `rows` of C from `down` on, those that are the group's; below 0: none.
    __device__ int rows_inside(int down) const { return at.end - (at.m + down); }
    /// A box of shared memory to C, or another result, `right` and `down` from there.
    template <int result>
    __device__ void store_box(unsigned from, int right, int down) const {
        const int x = at.n + right, y = at.m + down;
        const TensorMap& map = result == 0 ? map_c : result == 1 ? map_second : map_third;
        [[maybe_unused]] const int matrix = C.grouped() ? 0 : at.batch;
        if constexpr (C.ablated == Ablation::store) {
        } else if constexpr (C.batched && C.store_policy) ptx::tma_store_3d(map, from, x, y, matrix, args.c_policy);
        else if constexpr (C.batched) ptx::tma_store_3d(map, from, x, y, matrix);
        else if constexpr (C.store_policy) ptx::tma_store_2d(map, from, x, y, args.c_policy);
        else ptx::tma_store_2d(map, from, x, y);
    }
    /// The operand's box there, which completes on `barrier`.
    __device__ void load_box(unsigned to, int right, int down, unsigned barrier) const {
        const int x = at.n + right, y = at.m + down;
        if constexpr (C.batched) ptx::tma_load_3d(to, map_operand, x, y, at.batch * args.operand_step, barrier);
        else ptx::tma_load_2d(to, map_operand, x, y, barrier);
    }
};

/// Which of a tile's elements epilogue tile `s` has, for one warp; of a transposed one all warps have the same.
template <MatrixConfig C>
struct EpilogueTilePlace {
    int i;             // of the tile's 64-row wgmmas
    int half;          // which rows of the warp's 16
    int row, column;   // first of the tile's part that the warp stores
    __device__ EpilogueTilePlace(int s, int warp) {
        if constexpr (C.swap_ab) {
            i = s / C.turned_tiles(), half = 0;
            row = C.turned_row(s % C.turned_tiles()), column = C.turned_columns() * i;
        } else {
            i = s / C.epilogue_tiles_of_a_row() / C.halves(), half = s / C.epilogue_tiles_of_a_row() % C.halves();
            row = 64 * i + 16 * warp + 8 * half, column = s % C.epilogue_tiles_of_a_row() * C.epilogue_columns();
        }
    }
};

/// Bytes from an epilogue tile of a warpgroup to what `warp` stores of it.
template <MatrixConfig C>
__device__ inline int epilogue_part(int warp) {
    return C.swap_ab ? 0 : warp * C.warp_rows() * C.epilogue_columns() * C.result_bytes();
}

/// Asks for the operand's part of epilogue tile `s`, once what was last stored from `slot` has been read. By whole warps; where the
/// tile is transposed, one warp asks for all.
template <MatrixConfig C>
__device__ void ask_for_operand(const StoreTarget<C>& target, int s, int slot) {
    const int warp = ptx::warp_uniform(threadIdx.x % C.warpgroup_threads / 32);
    if ((C.swap_ab && warp != 0) || !ptx::elect_one()) return;
    const EpilogueTilePlace<C> place(s, warp);
    const unsigned barrier = target.shared.operand_barrier(target.warpgroup, slot, warp);
    ptx::tma_store_wait_read<0>();  // of this lane, which is always the same
    ptx::mbarrier_arrive_expect(barrier, C.swap_ab ? C.epilogue_tile_bytes() : C.epilogue_tile_bytes() / 4);
    target.load_box(target.shared.epilogue_tile(target.warpgroup, slot) + epilogue_part<C>(warp), place.column, place.row, barrier);
}

/// Beside a tile's first products: as many of its epilogue tiles as there is room for.
template <MatrixConfig C>
__device__ void begin_operand(StoreTarget<C>& target, const TileOrigin& at) {
    target.at = at;
#pragma unroll
    for (int s = 0; s < C.epilogue_tiles_in_flight && s < C.epilogue_tiles(); ++s)
        ask_for_operand<C>(target, s, (target.epilogue_tile + s) % C.epilogue_tiles_in_flight);
}

/// Before epilogue tile `s` is written: its operand has come.
template <MatrixConfig C>
__device__ void take_operand(StoreTarget<C>& target, int s, int warp) {
    const int slot = target.epilogue_tile;
    ptx::mbarrier_wait(target.shared.operand_barrier(target.warpgroup, slot, warp), target.operand_parity >> slot & 1);
    target.operand_parity ^= 1u << slot;
    const EpilogueTilePlace<C> place(s, warp);
    target.operand = target.shared.epilogue_tile(target.warpgroup, slot) + epilogue_part<C>(warp);
    target.operand_row = place.row, target.operand_column = place.column;
}

/// After it is on its way out: the one behind those that are asked for takes its room.
template <MatrixConfig C>
__device__ void follow_operand(const StoreTarget<C>& target, int s) {
    if (s + C.epilogue_tiles_in_flight < C.epilogue_tiles())
        ask_for_operand<C>(target, s + C.epilogue_tiles_in_flight, target.epilogue_tile);
}

/// Where a byte of an epilogue tile lies that would be at `at` if rows lay as they are: 16-byte chunks of a row, xored with address bits 7
/// to 9. A tile, and a warp's share of one, begins where these are those of its first row.
template <MatrixConfig C>
__device__ inline unsigned swizzled(unsigned at) {
    constexpr unsigned mask = C.epilogue_swizzle_bytes() > 0 ? C.epilogue_swizzle_bytes() / 16 - 1 : 0;
    return at ^ ((at >> 7 & mask) << 4);
}

}  // namespace rooftile
