// Reductions of columns. The threads of a CTA lie `across` a row, a vector each, and `down` the rows; each brings its own columns
// together, then the CTA does, and where several CTAs have parts of the rows, the last of them that comes to an end.
// rooftile/fuse/column_tiles.hpp has how rows lie that are no whole vectors.
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
    static constexpr int slab_floats = width * across * (down / 2 > lanes.period ? down / 2 : lanes.period);
    static constexpr int found_floats = width * across;

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
        merge_down<lanes.period>(mine, slab);
        if (y_ < lanes.period) put(mine, slab, lanes.period, y_);
        __syncthreads();
        for (int c = threadIdx.x; c < columns; c += threads) {
            A all;
#pragma unroll
            for (int part = 0; part < lanes.fold * lanes.period; ++part) {
                const int y = lanes.fold > 1 ? 0 : part;
                const int at = lanes.fold > 1 ? part * columns + c : c + shift(part);
                all.merge(A{slab[place(lanes.period, y, at / width, at % width)]});
            }
            found[c] = __builtin_bit_cast(float, all);
        }
        __syncthreads();
    }

    /// Of reduction `slot`: the CTA's columns to the workspace.
    __device__ void leave(void* workspace, int slot, const float* found) const {
        float* to = parts(workspace, slot) + blockIdx.y * found_floats;
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
    /// What all CTAs of the tile left, always in the same order.
    template <class A>
    __device__ void gather(void* workspace, int slot, float* slab, float* found) const {
        const float* from = parts(workspace, slot) + x_ * width;
        A mine[width];
        constexpr int together = gathered_splits;
        for (unsigned split = y_; split < gridDim.y; split += together * down) {
            Pack<float, width> part[together];
#pragma unroll
            for (int i = 0; i < together; ++i)
                if (split + i * down < gridDim.y)
                    load_in_order(part[i], from, 0, (split + i * down) * across);
#pragma unroll
            for (int i = 0; i < together; ++i)
                if (split + i * down < gridDim.y)
#pragma unroll
                    for (int k = 0; k < width; ++k) mine[k].merge(A{part[i].element[k]});
        }
        merge_down<1>(mine, slab);
        if (y_ == 0)
#pragma unroll
            for (int k = 0; k < width; ++k) found[x_ * width + k] = __builtin_bit_cast(float, mine[k]);
        __syncthreads();
    }

  private:
    /// Elements by which the thread's vectors of row y, y + period, ... begin before the row's.
    __device__ int shift(int y) const {
        return lanes.period > 1 ? static_cast<int>((row_ % width) * y % width) : 0;
    }
    __device__ long long vector_in(long long row) const {
        return (row * row_ - shift(y_) + first_column) / width + x_;
    }
    /// Element k of thread (x, y), where `ys` rows of threads tell theirs: neighbours' lie side by side.
    __device__ static int place(int ys, int y, int x, int k) { return (k * ys + y) * across + x; }
    template <class A>
    __device__ void put(const A (&mine)[width], float* slab, int ys, int y) const {
#pragma unroll
        for (int k = 0; k < width; ++k) slab[place(ys, y, x_, k)] = __builtin_bit_cast(float, mine[k]);
    }
    /// The upper half of the threads to the lower, until `last` rows of them are left.
    template <int last, class A>
    __device__ void merge_down(A (&mine)[width], float* slab) const {
#pragma unroll
        for (int half = down / 2; half >= last; half /= 2) {
            if (y_ >= half && y_ < 2 * half) put(mine, slab, half, y_ - half);
            __syncthreads();
            if (y_ < half)
#pragma unroll
                for (int k = 0; k < width; ++k) mine[k].merge(A{slab[place(half, y_, x_, k)]});
            __syncthreads();
        }
    }
    /// Counters of all tiles, then of each reduction and tile `found_floats` of each CTA.
    __device__ float* parts(void* workspace, int slot) const {
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
