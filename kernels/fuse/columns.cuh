// Reductions of columns. The threads of a CTA lie `across` a row, a vector each, and `down` the rows; each brings its own columns
// together, then the CTA does, and where several CTAs have parts of the rows, the last of them that comes to an end.
// rooftile/fuse/column_tiles.hpp has how rows lie that are no whole vectors. Vectors are aligned and loaded whole: the last one of a
// tensor may reach behind its end, within an aligned vector and so within a page; what it has there is nobody's column.
#pragma once

#include "kernels/fuse/arguments.hpp"
#include "kernels/fuse/reduce.cuh"

namespace rooftile::fuse {

/// Made by the planner.
struct ColumnLanes {
    int vector_width = 1, vectors_per_thread = 1;
    int across = 1, down = 1;  ///< down: a power of two, and a multiple of the period
    int fold = 1;              ///< rows of the tensor that are one here
    int period = 1;            ///< rows after which vectors have the same columns again
};

/// A CTA's part of a tensor: tile blockIdx.x of the columns, every gridDim.y-th turn of the rows.
template <ColumnLanes lanes>
class ColumnTile {
  public:
    static constexpr int width = lanes.vector_width, across = lanes.across, down = lanes.down;
    static constexpr int threads = across * down;
    static constexpr int quad = 4;  ///< floats of an access
    /// What the threads tell each other: of each its columns, or as many as an access has.
    static constexpr int slab_floats = threads * (width > quad ? width : quad);
    static constexpr int found_floats = (width * across + quad - 1) / quad * quad;

    long long first_column;  ///< of the tile
    int columns;             ///< that it has
    long long rows;          ///< of the kernel, whole ones
    long long first_row, rows_a_turn;               ///< the thread's
    long long first_vector, vectors_down, vectors_a_turn;  ///< to the next of its rows; to its next turn

    __device__ explicit ColumnTile(const FuseSizes& size)
        : x_(threadIdx.x % across), y_(threadIdx.x / across), row_(size.columns * lanes.fold) {
        const long long own = gridDim.x == 1 ? row_ : (across - (lanes.period > 1)) * width;
        first_column = blockIdx.x * own;
        columns = static_cast<int>(lanes.fold > 1 ? size.columns : min(own, row_ - first_column));
        rows = size.rows / lanes.fold;
        // Where the thread has nothing of the tile, it has no rows.
        const bool has_columns = x_ * width - shift(y_) < (lanes.fold > 1 ? row_ : columns);
        const long long row = static_cast<long long>(blockIdx.y) * (down * lanes.vectors_per_thread) + y_;
        first_row = has_columns ? row : rows;
        rows_a_turn = static_cast<long long>(gridDim.y) * (down * lanes.vectors_per_thread);
        first_vector = vector_in(row);
        vectors_down = down * row_ / width;
        vectors_a_turn = rows_a_turn * row_ / width;
    }

    /// The tensor's column of the thread's element k, or one beside those of the tile, whose element nobody takes.
    __device__ long long column(int k) const {
        const long long at = first_column + x_ * width - shift(y_) + k;
        if (lanes.fold > 1) return at % (row_ / lanes.fold);
        return min(max(at, 0ll), row_ - 1);
    }
    /// Elements that the thread has of a last part of a row, and the first of them.
    __device__ int rest(const FuseSizes& size, long long& first) const {
        first = rows * row_ + x_ * width;
        if (blockIdx.y > 0 || y_ > 0) return 0;
        return static_cast<int>(max(0ll, min(static_cast<long long>(width), size.rows * size.columns - first)));
    }

    /// The tile's columns of `mine` of all threads, into `found`.
    template <class A>
    __device__ void reduce(A (&mine)[width], float* slab, float* found) const {
        // Down the rows by fours; who has told is through.
#pragma unroll
        for (int left = down; left > lanes.period; left = fewer(left, lanes.period)) {
            const int next = fewer(left, lanes.period);
            if (y_ >= next && y_ < left) put(mine, slab);
            __syncthreads();
            if (y_ < next)
#pragma unroll
                for (int y = y_ + next; y < left; y += next)
#pragma unroll
                    for (int k = 0; k < width; ++k) mine[k].merge(A{slab[place(y, x_, k)]});
        }
        if (y_ < lanes.period) put(mine, slab);
        __syncthreads();
        for (int c = threadIdx.x; c < columns; c += threads) {
            A all;
#pragma unroll
            for (int part = 0; part < lanes.fold * lanes.period; ++part) {
                const int y = lanes.fold > 1 ? 0 : part;
                const int at = lanes.fold > 1 ? part * columns + c : c + shift(part);
                all.merge(A{slab[place(y, at / width, at % width)]});
            }
            found[c] = __builtin_bit_cast(float, all);
        }
        __syncthreads();
    }

    /// Of reduction `slot`: the CTA's columns to the workspace.
    __device__ void leave(void* workspace, int slot, const float* found) const {
        float* to = left_by(workspace, slot) + static_cast<long long>(blockIdx.y) * found_floats;
        for (int c = threadIdx.x; c < columns; c += threads) to[c] = found[c];
    }
    /// True in all threads of the tile's CTA that came last; the tile's counter is 0 again then.
    __device__ bool came_last(void* workspace) const {
        __shared__ bool last;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();  // all that the CTA left, before the count
            last = atomicInc(static_cast<unsigned*>(workspace) + blockIdx.x, gridDim.y - 1) == gridDim.y - 1;
            __threadfence();
        }
        __syncthreads();
        return last;
    }
    /// What all CTAs of the tile left, always in the same order: `parts` threads for four columns, then by fours again.
    template <class A>
    __device__ void gather(void* workspace, int slot, float* slab, float* found) const {
        constexpr int together = gathered_splits;
        const int quads = (columns + quad - 1) / quad, side_by_side = min(quads, threads);
        const int parts = max(1, min(threads / quads, static_cast<int>(gridDim.y + together - 1) / together));
        const int part = threadIdx.x / side_by_side, lane = threadIdx.x % side_by_side;
        const float* from = left_by(workspace, slot);
        for (int q = lane; q - lane < quads; q += side_by_side) {
            const bool mine = part < parts && q < quads;
            A sum[quad];
            for (unsigned split = mine ? part : gridDim.y; split < gridDim.y; split += together * parts) {
                Pack<float, quad> of[together];
#pragma unroll
                for (int i = 0; i < together; ++i)
                    if (split + i * parts < gridDim.y)
                        load_in_order(of[i], from + (split + i * parts) * found_floats, q);
#pragma unroll
                for (int i = 0; i < together; ++i)
                    if (split + i * parts < gridDim.y)
#pragma unroll
                        for (int k = 0; k < quad; ++k) sum[k].merge(A{of[i].element[k]});
            }
            for (int left = parts; left > 1;) {
                const int next = (left + 3) / 4;
                if (mine && part >= next && part < left)
#pragma unroll
                    for (int k = 0; k < quad; ++k)
                        slab[(k * parts + part) * side_by_side + lane] = __builtin_bit_cast(float, sum[k]);
                __syncthreads();
                if (mine && part < next)
                    for (int other = part + next; other < left; other += next)
#pragma unroll
                        for (int k = 0; k < quad; ++k)
                            sum[k].merge(A{slab[(k * parts + other) * side_by_side + lane]});
                left = next;
            }
            if (mine && part == 0)
#pragma unroll
                for (int k = 0; k < quad; ++k) found[quad * q + k] = __builtin_bit_cast(float, sum[k]);
            __syncthreads();
        }
    }

  private:
    /// Elements by which the thread's vectors of row y, y + period, ... begin before the row's.
    __device__ int shift(int y) const {
        return lanes.period > 1 ? static_cast<int>((row_ % width) * y % width) : 0;
    }
    __device__ long long vector_in(long long row) const {
        return (row * row_ - shift(y_) + first_column) / width + x_;
    }
    /// Rows of threads that are left when `left` have come together.
    __device__ static constexpr int fewer(int left, int last) { return left / 4 > last ? left / 4 : last; }
    /// Element k of thread (x, y): neighbours' lie side by side.
    __device__ static int place(int y, int x, int k) { return (k * down + y) * across + x; }
    template <class A>
    __device__ void put(const A (&mine)[width], float* slab) const {
#pragma unroll
        for (int k = 0; k < width; ++k) slab[place(y_, x_, k)] = __builtin_bit_cast(float, mine[k]);
    }
    /// Counters of all tiles, then of each reduction and tile `found_floats` of each CTA.
    __device__ float* left_by(void* workspace, int slot) const {
        constexpr unsigned aligned = 16;
        const unsigned counters = (4 * gridDim.x + aligned - 1) / aligned * aligned;
        float* first = reinterpret_cast<float*>(static_cast<char*>(workspace) + counters);
        const long long tile = static_cast<long long>(slot) * gridDim.x + blockIdx.x;
        return first + tile * gridDim.y * found_floats;
    }

    int x_, y_;
    long long row_;
};

}  // namespace rooftile::fuse
