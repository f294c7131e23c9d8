// Pieces of K that clusters sum each by itself, where there are fewer tiles than SMs. Every CTA of a piece leaves its
// share of a tile's fp32 sums in the workspace; of those that have the same share in all pieces whoever comes last adds
// them all up, in the order of the pieces, and stores. So no CTA waits for another one, whether or not all of them run at
// once, and which one comes last changes no bit of C. A counter that reaches the number of pieces is 0 again, as the
// next launch finds it.
//
// A thread reads what the threads of its place left, in slots [slot][thread] of four sums: nobody's layout but its own.
#pragma once

#include "kernels/matrix/accumulators.cuh"
#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile {

template <MatrixConfig C>
class SumsOfPieces {
  public:
    /// `warpgroup`: of the consumers.
    __device__ SumsOfPieces(const MatrixArguments& args, const MatrixTileScheduler<C>& scheduler, int warpgroup)
        : pieces_(args.pieces), piece_(scheduler.piece), warpgroup_(warpgroup) {
        // CTAs of one piece, and which of them this is.
        const int ctas = scheduler.tiles.rows * scheduler.tiles.columns * C.cluster_ctas();
        const int cta = scheduler.tiles.index * C.cluster_ctas() + scheduler.part * C.peers() + scheduler.rank;
        arrived_ = args.arrived + cta * C.consumer_warpgroups + warpgroup;
        stride_ = static_cast<long long>(ctas) * C.share_bytes();
        const int thread = threadIdx.x - C.warpgroup_threads;
        slots_ = static_cast<char*>(args.sums) + static_cast<long long>(cta) * C.share_bytes() + thread * vector_bytes;
    }

    /// Leaves this thread's sums of its piece.
    template <class Sums>
    __device__ void leave(const Sums& sums) const {
        char* to = slots_ + piece_ * stride_;
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
            for (int j = 0; j < row; j += 4) {
                float x[4];
                sums.template take<1>(x, i, j);
                ptx::Words<vector_bytes> words;
#pragma unroll
                for (int e = 0; e < 4; ++e) words.word[e] = __float_as_uint(x[e]);
                ptx::store_words(to + (i * row + j) / 4 * slot_bytes, words);
            }
    }

    /// Of a whole warpgroup: whether all other pieces' sums are there.
    __device__ bool came_last() const { return rooftile::came_last(store_barrier + warpgroup_, C.warpgroup_threads, arrived_, pieces_); }

    /// The sums of all pieces, in the share's columns from 0 on. While those of one piece are added, those of the next are on
    /// their way.
    __device__ void add_up(Accumulators<C>& sums) const {
#pragma unroll
        for (int first = 0; first < vectors; first += together) {
            const int end = first + together < vectors ? first + together : vectors;
            ptx::Words<vector_bytes> words[deep][together];
            const auto load = [&](int p, int piece) {
#pragma unroll
                for (int v = first; v < end; ++v)
                    if (piece < pieces_)
                        ptx::load_in_order(words[p][v - first], slots_ + piece * stride_ + v * slot_bytes);
            };
#pragma unroll
            for (int v = first; v < end; ++v)
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[v * 4 / row][v * 4 % row + e] = 0;
#pragma unroll
            for (int p = 0; p < deep; ++p) load(p, p);
            for (int piece = 0; piece < pieces_; piece += deep) {
#pragma unroll
                for (int p = 0; p < deep; ++p) {
                    if (piece + p >= pieces_) break;
#pragma unroll
                    for (int v = first; v < end; ++v)
#pragma unroll
                        for (int e = 0; e < 4; ++e)
                            sums[v * 4 / row][v * 4 % row + e] += __uint_as_float(words[p][v - first].word[e]);
                    load(p, piece + p + deep);
                }
            }
        }
    }

  private:
    static constexpr int vector_bytes = 16;
    static constexpr int slot_bytes = vector_bytes * C.consumer_warpgroups * C.warpgroup_threads;
    static constexpr int row = C.share_n() / 2;  // sums of a thread in 64 rows
    static constexpr int vectors = C.wgmma_rows() * row / 4;
    // Loads in flight of a thread: of so many slots, of so many pieces.
    static constexpr int in_flight = C.sums_in_flight();
    static constexpr int together = vectors < in_flight / 2 ? vectors : in_flight / 2;
    static constexpr int deep = in_flight / together;

    int pieces_, piece_, warpgroup_;
    unsigned* arrived_;
    char* slots_;
    long long stride_;
};

}  // namespace rooftile
