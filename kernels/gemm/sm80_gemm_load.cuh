// The copies of sm80_gemm: tiles of A and B into the ring, by all threads, some stages ahead of the products.
#pragma once

#include "kernels/gemm/sm80_gemm_layout.cuh"
#include "kernels/ptx/cp_async.cuh"

namespace rooftile {

/// Of `n`, no larger than `most`.
constexpr int largest_divisor(int n, int most) {
    while (n % most != 0) --most;
    return most;
}

/// A thread's pieces of one operand's tiles, block after block of K. What lies outside the operand is zero in
/// shared memory and is not read.
template <Sm80GemmConfig C, bool is_a>
struct Sm80Copier {
    using Pieces = Sm80Pieces<C, is_a>;
    using Tile = typename Pieces::Tile;
    const unsigned short* from;   // this thread's first piece of the next block
    int rows_left, columns_left;  // of the operand, from there on; may be less than 1

    static __device__ int row() { return threadIdx.x / Pieces::across; }
    static __device__ int column() { return threadIdx.x % Pieces::across * Pieces::elements; }

    /// Goes to the first block of K of the rows (A) or columns (B) of C from `first` on; `extent`: all of those.
    __device__ void begin(const unsigned short* operand, long long ld, int first, int extent, int k) {
        constexpr bool k_major = Tile::major == Major::k;
        const long long y = (k_major ? first : 0) + static_cast<long long>(row());
        const long long x = (k_major ? 0 : first) + static_cast<long long>(column());
        from = operand + y * ld + x;
        rows_left = (k_major ? extent - first : k) - row();
        columns_left = (k_major ? k : extent - first) - column();
    }

    __device__ void advance(long long ld) {
        if constexpr (Tile::major == Major::k) {
            from += C.tile_k;
            columns_left -= C.tile_k;
        } else {
            from += C.tile_k * ld;
            rows_left -= C.tile_k;
        }
    }

    /// Bytes of piece (r, c) of this thread that lie in the operand.
    __device__ int inside(int r, int c) const {
        const int columns = columns_left - c * Pieces::across * Pieces::elements;
        if constexpr (C.partial_copies)
            return r * Pieces::down < rows_left ? min(max(columns, 0), Pieces::elements) * C.element_bytes
                                                : 0;
        else return r * Pieces::down < (columns > 0 ? rows_left : 0) ? Tile::copy_bytes : 0;
    }
    /// Where it goes. Rows of a thread have no bits in common with its first, or begin a new period.
    static __device__ unsigned place(unsigned first, int r, int c) {
        return (first + r * Pieces::down * Tile::row_bytes + c * Pieces::across * Tile::copy_bytes)
               ^ Tile::twist(r * Pieces::down);
    }

    /// Begins to copy a block to the tile at `shared`.
    __device__ void copy(unsigned shared, long long ld) const {
        const unsigned first = shared + Tile::place(row(), column() / C.chunk_elements)
                               + column() % C.chunk_elements * C.element_bytes;
        if constexpr (Tile::copy_bytes == C.element_bytes) {
            copy_elements(first, ld);
        } else {
            // Narrow pieces are many: unrolled as a whole, their addresses would take the registers of the sums.
            [[maybe_unused]] constexpr int at_once = Pieces::rows * Pieces::columns > 8 ? 4 : Pieces::rows;
#pragma unroll at_once
            for (int r = 0; r < Pieces::rows; ++r) copy_row(first, ld, r);
        }
    }
    __device__ void copy_row(unsigned first, long long ld, int r) const {
#pragma unroll
        for (int c = 0; c < Pieces::columns; ++c)
            ptx::copy_async_filled<Tile::copy_bytes>(
                place(first, r, c), from + r * Pieces::down * ld + c * Pieces::across * Pieces::elements,
                inside(r, c));
    }
    /// cp.async takes 4 bytes at least: these pass through registers, some at a time.
    __device__ void copy_elements(unsigned first, long long ld) const {
        constexpr int pieces = Pieces::rows * Pieces::columns;
        constexpr int at_once = largest_divisor(pieces, 8);  // a piece too many would lie in the tile behind
#pragma unroll 1
        for (int begin = 0; begin < pieces; begin += at_once) {
            unsigned short values[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int r = (begin + i) / Pieces::columns, c = (begin + i) % Pieces::columns;
                const unsigned short* at = from + r * Pieces::down * ld + c * Pieces::across;
                values[i] = inside(r, c) > 0 ? *at : 0;
            }
#pragma unroll
            for (int i = 0; i < at_once; ++i)
                ptx::store_element(place(first, (begin + i) / Pieces::columns, (begin + i) % Pieces::columns),
                                   values[i]);
        }
    }
};

/// Fills stage after stage with the blocks of K of this CTA's tiles. `Left` copies A's.
template <Sm80GemmConfig C, class Left = Sm80Copier<C, true>>
struct Sm80Loader {
    const Sm80GemmArguments& args;
    Sm80TileScheduler<C> scheduler;
    Left a;
    Sm80Copier<C, false> b;
    int blocks_left = 0;  // of the tile; less than 1: nothing is left to load

    __device__ explicit Sm80Loader(const Sm80GemmArguments& arguments, const Left& left = {}) : args(arguments), a(left) { begin_tile(); }

    __device__ void begin_tile() {
        int m, n, product;
        scheduler.origin(args, m, n, product);
        a.begin(matrix_of<C>(static_cast<const unsigned short*>(args.a), product, args.a_stride), args.lda, m, args.m, args.k);
        b.begin(matrix_of<C>(static_cast<const unsigned short*>(args.b), product, args.b_stride), args.ldb, n, args.n, args.k);
        blocks_left = sm80_ceil_div(args.k, C.tile_k);
    }
    /// On to the next tile where this one's blocks are all loaded. Apart from fill(), whose copies are predicated
    /// and so stand among the products.
    __device__ void follow() {
        if (!C.persistent || blocks_left != 0) return;
        blocks_left = -1;
        scheduler.advance();
        if (scheduler.more(args)) begin_tile();
    }
    /// Begins to fill the stage at `shared`, as one group of copies: an empty one where nothing is left.
    __device__ void fill(unsigned shared) {
        if (blocks_left > 0) {
            a.copy(shared, args.lda);
            b.copy(shared + C.a_bytes(), args.ldb);
            a.advance(args.lda);
            b.advance(args.ldb);
            --blocks_left;
        }
        ptx::copy_async_commit();
    }
};

}  // namespace rooftile
