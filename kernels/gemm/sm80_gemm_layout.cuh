// What the parts of sm80_gemm share: the rules of the hardware, where an element lies in shared memory, and the
// tile scheduler.
#pragma once

#include "kernels/gemm/sm80_gemm_arguments.hpp"
#include "kernels/pipeline/tile_order.cuh"
#include "kernels/ptx/load.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// One operand's tile in a stage: [rows][row_elements], a row as contiguous as in global memory.
///
/// ldmatrix reads eight rows of one 16-byte chunk at once, which must lie in eight different groups of four
/// banks. Rows are an odd multiple of `period` chunks long, so that every `rows_apart` rows begin in the same
/// group; there chunk c of row r lies at position c xor (r / rows_apart) % period.
template <Sm80GemmConfig C, bool is_a>
struct Sm80Operand {
    static constexpr Major major = is_a ? C.a_major : C.b_major;
    static constexpr int extent = is_a ? C.tile_m : C.tile_n;  // of M or N
    static constexpr int warp_extent = is_a ? C.warp_m() : C.warp_n();
    static constexpr int rows = major == Major::k ? extent : C.tile_k;
    static constexpr int row_elements = major == Major::k ? C.tile_k : extent;
    static constexpr int row_bytes = row_elements * C.element_bytes;
    static constexpr int copy_bytes = is_a ? C.a_copy_bytes : C.b_copy_bytes;

    static constexpr int chunks = row_elements / C.chunk_elements;  // of a row
    static constexpr int period = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : chunks % 2 == 0 ? 2 : 1;
    static constexpr int rows_apart = C.bank_chunks / period;
    /// What row r's positions are xored with, in bytes. Of rows without a common bit, that of their sum is the
    /// xor of theirs.
    static constexpr __device__ unsigned twist(int row) { return row / rows_apart % period * C.chunk_bytes; }
    /// In bytes from the tile's beginning.
    static constexpr __device__ unsigned place(int row, int chunk) {
        return row * row_bytes + (chunk * C.chunk_bytes ^ twist(row));
    }
};

/// How the threads of a CTA cut an operand's tile into pieces of copy_bytes: side by side along a row, and the
/// rest of them on the next rows.
template <Sm80GemmConfig C, bool is_a>
struct Sm80Pieces {
    using Tile = Sm80Operand<C, is_a>;
    static constexpr int elements = Tile::copy_bytes / C.element_bytes;
    static constexpr int of_a_row = Tile::row_elements / elements;
    static constexpr int across = of_a_row < C.threads() ? of_a_row : C.threads();  // threads side by side
    static constexpr int down = C.threads() / across;                               // rows at a time
    static constexpr int columns = of_a_row / across;  // pieces of a thread in a row
    static constexpr int rows = Tile::rows / down;     // and rows of a thread
};

template <Sm80GemmConfig C, bool is_a>
constexpr bool copies_whole_tiles() {
    using Pieces = Sm80Pieces<C, is_a>;
    constexpr int bytes = Pieces::Tile::copy_bytes, down = Pieces::down;
    static_assert(bytes == 16 || bytes == 8 || bytes == 4 || bytes == 2, "cp.async's sizes; an element");
    static_assert(C.threads() % Pieces::across == 0 && Pieces::of_a_row % Pieces::across == 0,
                  "threads stand in whole rows");
    static_assert(Pieces::Tile::rows % down == 0, "every thread copies as many rows");
    static_assert(down % 8 == 0 || (down & (down - 1)) == 0, "rows of a thread are twisted by constants");
    static_assert(Pieces::columns == 1 || Pieces::across * bytes % C.tile_alignment == 0,
                  "pieces of one row are twisted alike");
    return true;
}

template <Sm80GemmConfig C>
constexpr bool obeys_the_hardware() {
    static_assert(C.tile_m % C.warps_m == 0 && C.warp_m() % C.mma_m == 0, "a warp owns whole mma.m16n8k16");
    static_assert(C.tile_n % C.warps_n == 0 && C.warp_n() % (2 * C.mma_n) == 0,
                  "ldmatrix.x4 brings two operands of N = 8");
    static_assert(!C.vector_store || C.warp_n() % C.quad_columns == 0,
                  "four lanes store four chunks of 16 B of a row");
    static_assert(C.k_steps() >= 2 && C.k_steps() % 2 == 0, "fragments of two k-steps take turns");
    static_assert(C.stages >= 2, "a ring needs two stages");
    static_assert(C.threads() <= 1024, "CTA size");
    static_assert(copies_whole_tiles<C, true>() && copies_whole_tiles<C, false>());
    return true;
}

/// Of positive integers, without the sum that overflows near 2^31.
__device__ inline int sm80_ceil_div(int x, int y) { return (x - 1) / y + 1; }

/// Which tile of C a CTA is at. Counts tiles when it is asked: StaticTileScheduler keeps them, in 4 registers more.
template <Sm80GemmConfig C>
struct Sm80TileScheduler {
    int index = blockIdx.x;

    static __device__ int rows(const Sm80GemmArguments& args) { return sm80_ceil_div(args.m, C.tile_m); }
    static __device__ int columns(const Sm80GemmArguments& args) { return sm80_ceil_div(args.n, C.tile_n); }
    __device__ bool more(const Sm80GemmArguments& args) const {
        return index < rows(args) * columns(args) * (C.batched ? args.batch : 1);
    }
    __device__ void advance() { index += gridDim.x; }
    /// First row and column of C, and of which product.
    __device__ void origin(const Sm80GemmArguments& args, int& m, int& n, int& product) const {
        int at = index;
        product = 0;
        if constexpr (C.batched) {
            const int tiles = rows(args) * columns(args);
            product = index / tiles;
            at -= product * tiles;
        }
        const TileCoordinate t = args.tiles ? tile_of(ptx::load_constant(args.tiles + at))
                                            : tile_at(at, rows(args), columns(args),
                                                      static_cast<Order>(args.order), args.group);
        m = t.row * C.tile_m;
        n = t.column * C.tile_n;
    }
};

/// Of a product of a batch: its matrix.
template <Sm80GemmConfig C, class T>
__device__ T* matrix_of(T* first, int product, long long stride) {
    if constexpr (C.batched) return first + product * stride;
    else return first;
}

}  // namespace rooftile
