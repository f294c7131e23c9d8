// The threads that share a row: part of a warp, a CTA, or the CTAs of a cluster. A reduction ends with its
// result in every thread.
#pragma once

#include "kernels/fuse/arguments.hpp"
#include "kernels/ptx/cluster_barrier.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile::fuse {

/// `lanes` threads of a CTA of `threads` share a row, in `cluster` CTAs. More than a warp: the whole CTA.
template <int lanes, int threads, int cluster = 1>
class Team {
    static_assert(lanes <= 32 ? 32 % lanes == 0 && cluster == 1 : lanes == threads);
    static constexpr int warps = lanes <= 32 ? 1 : lanes / 32;
    static_assert((warps & (warps - 1)) == 0 && (cluster & (cluster - 1)) == 0, "halves of halves");

  public:
    static constexpr int words = 3;  ///< 32-bit words of the largest accumulator
    static constexpr int rows = threads / lanes;
    struct Exchange {
        unsigned warp[2][warps][words];
        unsigned cta[2][cluster][words];
    };
    static_assert(sizeof(Exchange) <= exchange_bytes, "planned with that much");

    __device__ explicit Team(Exchange& exchange) : exchange_(exchange) {}

    /// Threads of the row before this one, over the whole cluster's.
    __device__ static unsigned lane() {
        if constexpr (cluster > 1) return ptx::cluster_rank() * lanes + threadIdx.x;
        return threadIdx.x % lanes;
    }
    /// The row that this thread's team takes first, and how many all teams of the grid take at once.
    template <class Index>
    __device__ static Index first_row() {
        return Index(blockIdx.x / cluster) * rows + threadIdx.x / lanes;
    }
    template <class Index>
    __device__ static Index all_rows() {
        return Index(gridDim.x / cluster) * rows;
    }

    /// Before the first reduction: no CTA writes to one that has not begun.
    __device__ static void arrive() {
        if constexpr (cluster > 1) ptx::cluster_arrive();
    }
    __device__ static void wait() {
        if constexpr (cluster > 1) ptx::cluster_wait();
    }

    template <class Accumulator>
    __device__ Accumulator reduced(Accumulator mine) {
        static_assert(sizeof(Accumulator) <= words * sizeof(unsigned));
        merge_lanes<least_of(lanes, 32)>(mine);
        if constexpr (warps > 1) merge_warps(mine);
        if constexpr (cluster > 1) merge_ctas(mine);
        turn_ ^= 1;  // who is one reduction ahead writes elsewhere, so one barrier is enough
        return mine;
    }

  private:
    static constexpr int least_of(int x, int y) { return x < y ? x : y; }

    template <class Accumulator>
    struct Raw {
        static constexpr int count = sizeof(Accumulator) / sizeof(unsigned);
        unsigned word[count];
    };
    template <class Accumulator>
    __device__ static Raw<Accumulator> raw_of(const Accumulator& a) {
        return __builtin_bit_cast(Raw<Accumulator>, a);
    }

    /// Merges `count` neighbouring lanes, a power of two.
    template <int count, class Accumulator>
    __device__ static void merge_lanes(Accumulator& mine) {
        const unsigned mask =
            count == 32 ? 0xffffffffu : ((1u << (count & 31)) - 1) << (threadIdx.x % 32 / count * count);
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2) {
            Raw<Accumulator> raw = raw_of(mine);
#pragma unroll
            for (int w = 0; w < Raw<Accumulator>::count; ++w)
                raw.word[w] = __shfl_xor_sync(mask, raw.word[w], away);
            mine.merge(__builtin_bit_cast(Accumulator, raw));
        }
    }

    template <class Accumulator>
    __device__ void merge_warps(Accumulator& mine) {
        Raw<Accumulator> raw = raw_of(mine);
        unsigned(*slots)[words] = exchange_.warp[turn_];
        if (threadIdx.x % 32 == 0)
#pragma unroll
            for (int w = 0; w < Raw<Accumulator>::count; ++w) slots[threadIdx.x / 32][w] = raw.word[w];
        __syncthreads();
#pragma unroll
        for (int w = 0; w < Raw<Accumulator>::count; ++w) raw.word[w] = slots[threadIdx.x % warps][w];
        mine = __builtin_bit_cast(Accumulator, raw);
        merge_lanes<warps>(mine);
    }

    template <class Accumulator>
    __device__ void merge_ctas(Accumulator& mine) {
        Raw<Accumulator> raw = raw_of(mine);
        const unsigned rank = ptx::cluster_rank();
        if (threadIdx.x < cluster) {
            const unsigned slot = ptx::shared_address(exchange_.cta[turn_][rank]);
            const unsigned there = ptx::map_to_rank(slot, threadIdx.x);
#pragma unroll
            for (int w = 0; w < Raw<Accumulator>::count; ++w) ptx::store_cluster(there + 4 * w, raw.word[w]);
        }
        ptx::cluster_arrive();
        ptx::cluster_wait();
#pragma unroll
        for (int w = 0; w < Raw<Accumulator>::count; ++w)
            raw.word[w] = exchange_.cta[turn_][threadIdx.x % cluster][w];
        mine = __builtin_bit_cast(Accumulator, raw);
        merge_lanes<cluster>(mine);
    }

    Exchange& exchange_;
    int turn_ = 0;
};

}  // namespace rooftile::fuse
