// How a tile of C leaves: where a thread's values come from, and the two ways out, by epilogue tiles through TMA and
// by predicated stores.
#pragma once

#include "kernels/gemm/sm90_gemm_layout.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// A thread's fp32 sums of its warpgroup's part of a tile, one 64-row wgmma after the other.
template <Sm90GemmConfig C>
using Sm90Accumulators = float[C.wgmma_rows()][C.row_accumulators()];

template <int bytes>
struct Sm90ElementOf {
    using type = unsigned short;
};
template <>
struct Sm90ElementOf<1> {
    using type = unsigned char;
};
template <>
struct Sm90ElementOf<4> {
    using type = float;
};

/// What a CTA stores of a tile, share_n columns of the sums: pairs() gives a thread's values of the i-th wgmma in
/// C's type, two columns a register, from accumulator j of the share on; with a `stride` of 2 every other two,
/// which are those of every other row of 8x8 matrices.
template <Sm90GemmConfig C>
struct OwnSums {
    const Sm90Accumulators<C>& sums;
    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e)
            to[e] = ptx::pack2<C.c_type>(sums[i][j + 2 * stride * e], sums[i][j + 2 * stride * e + 1]);
    }
    /// The same in fp32.
    template <int stride = 1, int count>
    __device__ void take(float (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e) to[e] = sums[i][j + 2 * stride * (e / 2) + e % 2];
    }
};

/// The same of a tile that is finished and not yet stored.
template <Sm90GemmConfig C>
struct KeptSums {
    unsigned kept[C.wgmma_rows()][C.row_accumulators() / 2];
    __device__ void keep(const Sm90Accumulators<C>& sums) {
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i) OwnSums<C>{sums}.pairs(kept[i], i, 0);
    }
    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e) to[e] = kept[i][j / 2 + stride * e];
    }
};

/// Where a warpgroup's stores of C go.
template <Sm90GemmConfig C>
struct Sm90Target {
    const TensorMap& map_c;
    const Sm90Shared<C>& shared;
    const GemmArguments& args;
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

/// Which of a tile's elements epilogue tile `s` has, for one warp; of a turned one all warps have the same.
template <Sm90GemmConfig C>
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
template <Sm90GemmConfig C>
__device__ inline int epilogue_part(int warp) {
    return C.swap_ab ? 0 : warp * C.warp_rows() * C.epilogue_columns() * C.result_bytes();
}

/// Asks for the operand's part of epilogue tile `s`, once what was last stored from `slot` has been read. By whole warps; where the
/// tile is turned, one warp asks for all.
template <Sm90GemmConfig C>
__device__ void ask_for_operand(const Sm90Target<C>& target, int s, int slot) {
    const int warp = ptx::warp_uniform(threadIdx.x % Sm90GemmConfig::warpgroup_threads / 32);
    if ((C.swap_ab && warp != 0) || !ptx::elect_one()) return;
    const EpilogueTilePlace<C> place(s, warp);
    const unsigned barrier = target.shared.operand_barrier(target.warpgroup, slot, warp);
    ptx::tma_store_wait_read<0>();  // of this lane, which is always the same
    ptx::mbarrier_arrive_expect(barrier, C.swap_ab ? C.epilogue_tile_bytes() : C.epilogue_tile_bytes() / 4);
    target.load_box(target.shared.epilogue_tile(target.warpgroup, slot) + epilogue_part<C>(warp), place.column, place.row, barrier);
}

/// Beside a tile's first products: as many of its epilogue tiles as there is room for.
template <Sm90GemmConfig C>
__device__ void begin_operand(Sm90Target<C>& target, const TileOrigin& at) {
    target.at = at;
#pragma unroll
    for (int s = 0; s < Sm90GemmConfig::epilogue_tiles_in_flight && s < C.epilogue_tiles(); ++s)
        ask_for_operand<C>(target, s, (target.epilogue_tile + s) % Sm90GemmConfig::epilogue_tiles_in_flight);
}

/// Before epilogue tile `s` is written: its operand has come.
template <Sm90GemmConfig C>
__device__ void take_operand(Sm90Target<C>& target, int s, int warp) {
    const int slot = target.epilogue_tile;
    ptx::mbarrier_wait(target.shared.operand_barrier(target.warpgroup, slot, warp), target.operand_parity >> slot & 1);
    target.operand_parity ^= 1u << slot;
    const EpilogueTilePlace<C> place(s, warp);
    target.operand = target.shared.epilogue_tile(target.warpgroup, slot) + epilogue_part<C>(warp);
    target.operand_row = place.row, target.operand_column = place.column;
}

/// After it is on its way out: the one behind those that are asked for takes its room.
template <Sm90GemmConfig C>
__device__ void follow_operand(const Sm90Target<C>& target, int s) {
    if (s + Sm90GemmConfig::epilogue_tiles_in_flight < C.epilogue_tiles())
        ask_for_operand<C>(target, s + Sm90GemmConfig::epilogue_tiles_in_flight, target.epilogue_tile);
}

/// Where a byte of an epilogue tile lies that would be at `at` if rows lay as they are: 16-byte chunks of a row, xored with address bits 7
/// to 9. A tile, and a warp's share of one, begins where these are those of its first row.
template <Sm90GemmConfig C>
__device__ inline unsigned swizzled(unsigned at) {
    constexpr unsigned mask = C.epilogue_swizzle_bytes() > 0 ? C.epilogue_swizzle_bytes() / 16 - 1 : 0;
    return at ^ ((at >> 7 & mask) << 4);
}

/// A warp's share of an epilogue tile, [warp_rows][epilogue_columns], to `to`. `i`: of the tile's 64-row wgmmas; `half`: which rows
/// of the warp's 16; `column`: of the tile.
template <Sm90GemmConfig C, class Sums>
__device__ void write_epilogue_tile(unsigned to, const Sums& sums, int i, int half, int column) {
    constexpr int epilogue_columns = C.epilogue_columns();
    constexpr int row_bytes = epilogue_columns * C.result_bytes();
    const int lane = threadIdx.x % 32;
    if constexpr (C.c_type == Type::fp32) {
        float values[epilogue_columns / 2];  // a thread has two neighbours of each eight, in two rows
        sums.take(values, i, column / 2);
#pragma unroll
        for (int e = 0; e < epilogue_columns / 2; e += 2) {
            const int row = lane / 4 + e / 2 % 2 * 8, x = e / 4 * 8 + lane % 4 * 2;
            ptx::store_shared_2(swizzled<C>(to + row * row_bytes + x * 4), &values[e]);
        }
    } else if constexpr (C.result_bytes() == 1) {
        // Two bytes a thread of each eight columns. Neighbours give each other theirs of every other eight, and write words.
        unsigned pairs[epilogue_columns / 4];
        sums.pairs(pairs, i, column / 2);
        const bool odd = lane % 2 != 0;
#pragma unroll
        for (int e = 0; e < epilogue_columns / 4; e += 4) {
#pragma unroll
            for (int down = 0; down < 2; ++down) {  // rows of eight
                const unsigned first = pairs[e + down], second = pairs[e + 2 + down];
                const unsigned other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
                const unsigned word = odd ? other | second << 16 : first | other << 16;
                ptx::store_shared(swizzled<C>(to + (lane / 4 + 8 * down) * row_bytes + e * 4 + (odd ? 8 : 0) + lane % 4 / 2 * 4), word);
            }
        }
    } else if constexpr (C.wide_epilogue_tiles()) {
        unsigned pairs[epilogue_columns / 8];  // of one half, one from each matrix
        sums.template pairs<2>(pairs, i, column / 2 + 2 * half);
        if constexpr (C.operand_staged) __syncwarp();  // its elements are read by other lanes than those that write there
        const unsigned row = to + lane % 8 * row_bytes;
#pragma unroll
        for (int j = 0; j + 32 <= epilogue_columns; j += 32) {
            const unsigned* d = &pairs[j / 8];
            ptx::store_matrix_x4(row + (j + lane / 8 * 8) * 2, d[0], d[1], d[2], d[3]);
        }
        constexpr int rest = epilogue_columns / 32 * 32;  // 16 columns: the sectors are an odd number
        ptx::store_matrix_x2(row + (rest + lane / 8 % 2 * 8) * 2, pairs[rest / 8], pairs[rest / 8 + 1]);
    } else {
        unsigned pairs[epilogue_columns / 4];
        sums.pairs(pairs, i, column / 2);
        if constexpr (C.operand_staged) __syncwarp();
        const unsigned row = lane % 16;
        if constexpr (epilogue_columns == 8) {
            ptx::store_matrix_x2(to + row * row_bytes, pairs[0], pairs[1]);
        } else {
#pragma unroll
            for (int j = 0; j < epilogue_columns; j += 16) {
                const unsigned* d = &pairs[j / 4];
                ptx::store_matrix_x4(swizzled<C>(to + row * row_bytes + (j * 2 + lane / 16 * 16)), d[0], d[1], d[2], d[3]);
            }
        }
    }
}

/// Each warp stores its own rows and waits for no other warp.
template <Sm90GemmConfig C, int result, class Sums>
__device__ void store_upright_tile(const Sums& sums, Sm90Target<C>& target, int s) {
    const int warp = ptx::warp_uniform(threadIdx.x % Sm90GemmConfig::warpgroup_threads / 32);
    const EpilogueTilePlace<C> place(s, warp);
    const unsigned from = target.shared.epilogue_tile(target.warpgroup, target.epilogue_tile) + epilogue_part<C>(warp);
    // The store that last read this epilogue tile must be done with it before anyone overwrites it.
    if constexpr (C.operand_staged) take_operand<C>(target, s, warp);
    else if (ptx::elect_one()) ptx::tma_store_wait_read<Sm90GemmConfig::epilogue_tiles_in_flight - 1>();
    __syncwarp();
    write_epilogue_tile<C>(from, sums, place.i, place.half, place.column);
    ptx::fence_async_proxy();
    __syncwarp();
    const bool whole = !C.grouped() || target.rows_inside(place.row) >= C.warp_rows();
    if (ptx::elect_one()) {  // the same lane every time: a lane waits for its own stores only
        if (whole) target.template store_box<result>(from, place.column, place.row);
        ptx::tma_store_commit();  // of nothing too: the wait counts commits
    }
    if constexpr (C.grouped() && C.ablated != Ablation::store) {
        if (!whole) {
            constexpr int row_bytes = C.epilogue_columns() * C.result_bytes();
            const unsigned mask = C.epilogue_swizzle_bytes() > 0 ? row_bytes / 16 - 1 : 0;
            store_rows<C, row_bytes>(target.args, target.at.m + place.row, target.at.n + place.column, target.rows_inside(place.row), threadIdx.x % 32, 32,
                                     [&](int row, int chunk) {
                                         const unsigned at = from + row * row_bytes + chunk * 16;
                                         return at ^ ((at >> 7 & mask) << 4);
                                     });
        }
    }
    if constexpr (C.operand_staged) follow_operand<C>(target, s);
    target.epilogue_tile = (target.epilogue_tile + 1) % Sm90GemmConfig::epilogue_tiles_in_flight;
}

/// The same in fp32: 32 columns of C, and the other 32 behind all rows of these.
template <Sm90GemmConfig C, class Sums>
__device__ void write_turned_floats(unsigned to, const Sums& sums, int i, int row, int warp) {
    float values[C.turned_rows() / 2];  // a thread has two rows of each eight, in two columns
    sums.take(values, i, row / 2);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < C.turned_rows() / 2; ++e) {
        const int r = e / 4 * 8 + lane % 4 * 2 + e % 2, column = 16 * warp + lane / 4 + e / 2 % 2 * 8;
        const unsigned at = to + column / 32 * C.turned_rows() * Sm90GemmConfig::swizzle_bytes + r * Sm90GemmConfig::swizzle_bytes
                            + column % 32 * 4;
        ptx::store_shared_1(at ^ (r % 8 << 4), values[e]);
    }
}

/// A warp's part of a turned epilogue tile, [turned_rows][64 columns of C] at `to`: 16 of the columns. `row`: the first, of the
/// share.
template <Sm90GemmConfig C, class Sums>
__device__ void write_turned_tile(unsigned to, const Sums& sums, int i, int row, int warp) {
    constexpr int matrices = C.turned_rows() / 8;  // along C's rows; each pairs with one 8 columns further
    unsigned pairs[2 * matrices];
    sums.pairs(pairs, i, row / 2);
    if constexpr (C.operand_staged) __syncwarp();  // a warp reads what it writes, 16 of the columns
    const int lane = threadIdx.x % 32;
    const unsigned at = to + Sm90GemmConfig::turned_offset(warp, lane);
#pragma unroll
    for (int j = 0; j + 2 <= matrices; j += 2)
        ptx::store_matrix_x4_transposed(at + j * 8 * Sm90GemmConfig::swizzle_bytes, pairs[2 * j],
                                        pairs[2 * j + 1], pairs[2 * j + 2], pairs[2 * j + 3]);
    if constexpr (matrices % 2 == 1) {
        constexpr int last = matrices - 1;
        // Lanes 0 to 15 alone address them.
        const unsigned half = at + last * 8 * Sm90GemmConfig::swizzle_bytes;
        ptx::store_matrix_x2_transposed(half, pairs[2 * last], pairs[2 * last + 1]);
    }
}

/// The same of pairs, [turned_rows][32 columns of C]: 8 of the columns are a warp's, a matrix a step of 8 rows.
template <Sm90GemmConfig C, class Sums>
__device__ void write_turned_pairs(unsigned to, const Sums& sums, int i, int row, int warp) {
    constexpr int steps = C.turned_rows() / 8, row_bytes = C.epilogue_columns() * C.result_bytes();
    const int lane = threadIdx.x % 32;
    if constexpr (C.c_type == Type::fp32) {
        float values[2 * steps];
        sums.template take<2>(values, i, row / 2);
        if constexpr (C.operand_staged) __syncwarp();
#pragma unroll
        for (int e = 0; e < 2 * steps; ++e) {
            const int r = e / 2 * 8 + lane % 4 * 2 + e % 2, column = 8 * warp + lane / 4;
            ptx::store_shared_1((to + r * row_bytes + column * 4) ^ (r % 8 << 4), values[e]);
        }
    } else {
        unsigned pairs[steps];
        sums.template pairs<2>(pairs, i, row / 2);
        if constexpr (C.operand_staged) __syncwarp();
        const auto at = [&](int step) { return swizzled<C>(to + (step * 8 + lane % 8) * row_bytes + warp * 16); };  // of this lane's row of it
#pragma unroll
        for (int e = 0; e + 4 <= steps; e += 4)
            ptx::store_matrix_x4_transposed(at(e + lane / 8), pairs[e], pairs[e + 1], pairs[e + 2], pairs[e + 3]);
        constexpr int done = steps / 4 * 4;
        if constexpr (steps - done >= 2) ptx::store_matrix_x2_transposed(at(done + lane / 8 % 2), pairs[done], pairs[done + 1]);
        // One is left: both halves of the instruction write it.
        if constexpr (steps % 2 == 1) ptx::store_matrix_x2_transposed(at(steps - 1), pairs[steps - 1], pairs[steps - 1]);
    }
}

/// The same with swap_ab: the warps of a warpgroup wait for each other twice, and its first one stores.
template <Sm90GemmConfig C, int result, class Sums>
__device__ void store_turned_tile(const Sums& sums, Sm90Target<C>& target, int s) {
    const int i = s / C.turned_tiles(), row = C.turned_row(s % C.turned_tiles());
    const int warp = ptx::warp_uniform(threadIdx.x % Sm90GemmConfig::warpgroup_threads / 32);
    const unsigned to = target.shared.epilogue_tile(target.warpgroup, target.epilogue_tile);
    const auto meet = [&] {
        ptx::named_barrier_sync(sm90_store_barrier + target.warpgroup, Sm90GemmConfig::warpgroup_threads);
    };
    // The store that last read this epilogue tile must be done with it before anyone overwrites it.
    if constexpr (C.operand_staged) {
        take_operand<C>(target, s, warp);
    } else {
        if (warp == 0 && ptx::elect_one())
            ptx::tma_store_wait_read<Sm90GemmConfig::epilogue_tiles_in_flight - 1>();
        meet();
    }
    if constexpr (C.pairs) write_turned_pairs<C>(to, sums, i, row, warp);
    else if constexpr (C.c_type == Type::fp32) write_turned_floats<C>(to, sums, i, row, warp);
    else write_turned_tile<C>(to, sums, i, row, warp);
    ptx::fence_async_proxy();
    meet();
    const bool whole = !C.grouped() || target.rows_inside(row) >= C.turned_rows();
    if (whole && warp == 0 && ptx::elect_one()) {  // the same lane every time: a lane waits for its own stores only
#pragma unroll
        for (int part = 0; part < C.turned_columns() / C.epilogue_columns(); ++part)
            target.template store_box<result>(to + part * C.turned_rows() * Sm90GemmConfig::swizzle_bytes,
                                              C.turned_columns() * i + part * C.epilogue_columns(), row);
        ptx::tma_store_commit();
    }
    if constexpr (C.grouped() && C.ablated != Ablation::store) {
        if (!whole) {
            if (warp == 0 && ptx::elect_one()) ptx::tma_store_commit();  // of nothing: the wait counts commits
            constexpr int row_bytes = Sm90GemmConfig::swizzle_bytes;
            for (int part = 0; part < Sm90GemmConfig::wgmma_m / C.epilogue_columns(); ++part)
                store_rows<C, row_bytes>(target.args, target.at.m + row, target.at.n + 64 * i + part * C.epilogue_columns(),
                                         target.rows_inside(row), threadIdx.x % Sm90GemmConfig::warpgroup_threads,
                                         Sm90GemmConfig::warpgroup_threads, [&](int r, int chunk) {
                                             return to + (part * C.turned_rows() + r) * row_bytes + (chunk ^ r % 8) * 16;
                                         });
        }
    }
    if constexpr (C.operand_staged) follow_operand<C>(target, s);
    target.epilogue_tile = (target.epilogue_tile + 1) % Sm90GemmConfig::epilogue_tiles_in_flight;
}

/// Epilogue tile `s` of a tile: registers -> shared memory -> TMA.
template <Sm90GemmConfig C, int result = 0, class Sums>
__device__ void store_epilogue_tile(const Sums& sums, Sm90Target<C>& target, int s) {
    if constexpr (C.swap_ab) store_turned_tile<C, result>(sums, target, s);
    else store_upright_tile<C, result>(sums, target, s);
}

template <Sm90GemmConfig C, int result = 0, class Sums>
__device__ void store_by_tma(const Sums& sums, Sm90Target<C>& target) {
#pragma unroll
    for (int s = 0; s < C.epilogue_tiles(); ++s) store_epilogue_tile<C, result>(sums, target, s);
}

/// An element of C as it is stored.
template <Sm90GemmConfig C>
using Sm90Element = typename Sm90ElementOf<C.result_bytes()>::type;

/// Two neighbours of a part's sums as they are stored.
template <Sm90GemmConfig C, class Sums>
__device__ void finished_pair(Sm90Element<C> (&to)[2], const Sums& sums, int i, int j) {
    if constexpr (C.c_type == Type::fp32) {
        sums.take(to, i, j);
    } else {
        unsigned pair[1];
        sums.pairs(pair, i, j);
        to[0] = static_cast<Sm90Element<C>>(pair[0]), to[1] = static_cast<Sm90Element<C>>(pair[0] >> 8 * C.result_bytes());
    }
}

/// Where a result begins, of the product at hand, and its elements from row to row.
template <Sm90GemmConfig C, int result>
__device__ Sm90Element<C>* result_at(const GemmArguments& args, int product, long long& pitch) {
    if constexpr (result == 0) {
        pitch = args.ldc;
        auto* c = static_cast<Sm90Element<C>*>(args.c);
        if constexpr (C.batched && !C.grouped()) c += product * args.c_stride;
        return c;
    } else {
        pitch = C.result_columns(args.n);
        return static_cast<Sm90Element<C>*>(args.more_results[result - 1]) + product * (args.m * pitch);
    }
}

/// C straight from registers, for an ldc that no tensor map can describe: an element at a time.
template <Sm90GemmConfig C, int result, class Sums>
__device__ void store_by_element(const Sums& sums, const GemmArguments& args, const TileOrigin& at) {
    const int thread = threadIdx.x % Sm90GemmConfig::warpgroup_threads;
    long long pitch;
    auto* c = result_at<C, result>(args, at.batch, pitch);
    // Unsigned: a tile beyond the last one may begin past 2^31, and still lies outside C.
    const unsigned row = at.m + thread / 32 * 16 + thread % 32 / 4;
    const unsigned column = at.n + thread % 4 * 2;
    const unsigned rows = C.grouped() ? at.end : args.m, columns = C.result_columns(args.n);
    [[maybe_unused]] unsigned folded = 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned r = row + 64 * i + 8 * half;
            if (r >= rows) continue;
            Sm90Element<C>* line = c + r * pitch;
#pragma unroll
            for (int j = 0; j < C.stored_n() / 8; ++j) {
                Sm90Element<C> pair[2];
                finished_pair<C>(pair, sums, i, 4 * j + 2 * half);
                const unsigned x = column + 8 * j;
                if constexpr (C.ablated == Ablation::store) {
                    folded ^= static_cast<unsigned>(pair[0]) ^ static_cast<unsigned>(pair[1]) << 16;
                    continue;
                }
                if (x < columns) line[x] = pair[0];
                if (x + 1 < columns) line[x + 1] = pair[1];
            }
        }
    }
    // Of sums that nobody reads ptxas leaves out the products too. No K is negative.
    if (C.ablated == Ablation::store && args.k < 0) ptx::store_matrix_x2(16 * thread, folded, folded);
}

/// The same with swap_ab: what lies side by side in a thread lies one above the other in C.
template <Sm90GemmConfig C, int result, class Sums>
__device__ void store_turned_by_element(const Sums& sums, const GemmArguments& args, const TileOrigin& at) {
    const int thread = threadIdx.x % Sm90GemmConfig::warpgroup_threads;
    long long pitch;
    auto* c = result_at<C, result>(args, at.batch, pitch);
    const unsigned row = at.m + thread % 4 * 2;
    const unsigned column = at.n + thread / 32 * 16 + thread % 32 / 4;
    const unsigned rows = C.grouped() ? at.end : args.m, columns = args.n;
    [[maybe_unused]] unsigned folded = 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned x = column + 64 * i + 8 * half;
            if (x >= columns) continue;
            Sm90Element<C>* line = c + row * pitch + x;
#pragma unroll
            for (int j = 0; j < C.share_n() / 8; ++j) {
                Sm90Element<C> pair[2];
                finished_pair<C>(pair, sums, i, 4 * j + 2 * half);
                const unsigned r = row + 8 * j;
                if constexpr (C.ablated == Ablation::store) {
                    folded ^= static_cast<unsigned>(pair[0]) ^ static_cast<unsigned>(pair[1]) << 16;
                    continue;
                }
                if (r < rows) line[0] = pair[0];
                if (r + 1 < rows) line[pitch] = pair[1];
                line += 8 * pitch;
            }
        }
    }
    if (C.ablated == Ablation::store && args.k < 0) ptx::store_matrix_x2(16 * thread, folded, folded);
}

template <Sm90GemmConfig C, int result = 0, class Sums>
__device__ void store(const Sums& sums, Sm90Target<C>& target, const GemmArguments& args, const TileOrigin& at) {
    target.at = at;
    if constexpr (C.tma_store) store_by_tma<C, result>(sums, target);
    else if constexpr (C.swap_ab) store_turned_by_element<C, result>(sums, args, at);
    else store_by_element<C, result>(sums, args, at);
}

}  // namespace rooftile
