// The threads that share a row: part of a warp, a CTA, or the CTAs of a cluster. What they merge ends in
// every thread.
#pragma once

#include "kernels/fuse/grid_reduction.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/store_cluster_async.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile::fuse {

/// On which the words of a cluster's CTAs complete.
template <bool used>
struct JointBarriers {};
template <>
struct JointBarriers<true> {
    unsigned long long joint[2];
};

/// `threads_per_row` threads of a CTA of `threads` share a row, in `cluster` CTAs. More than a warp: the whole CTA.
/// `beside`: a producer warp stands beside them, so they synchronise without it, and CTAs by messages; between two
/// across_cluster() stands a within_cta() of more than one warp. `far`: the CTAs of a row are no
/// cluster of the hardware; they reduce through device memory, with a producer beside them or without. All teams of a
/// warp have as many rows, and synchronise together.
template <int threads_per_row, int threads, int cluster = 1, bool beside = false, bool far = false>
class Team {
    static_assert(threads_per_row <= 32 ? 32 % threads_per_row == 0 && cluster == 1
                                        : threads_per_row == threads);
    static constexpr int warps = threads_per_row <= 32 ? 1 : threads_per_row / 32;
    static constexpr bool near = cluster > 1 && !far;
    static_assert((warps & (warps - 1)) == 0 && (far || (cluster & (cluster - 1)) == 0), "halves of halves");
    static_assert(!far || (warps > 1 && cluster > 1));
    static_assert(!near || beside, "clusters stay, with a producer beside them");

  public:
    static constexpr int words = reduction_words;
    static constexpr int rows = threads / threads_per_row;
    /// Two of each in turn: who is one reduction ahead writes elsewhere, so one barrier a reduction is enough.
    struct Exchange : JointBarriers<near> {
        alignas(16) unsigned warp[2][words][warps];
        alignas(16) unsigned cta[2][words][far ? 1 : cluster];
    };
    static_assert(sizeof(Exchange) <= exchange_bytes, "planned with that much");

    /// `block`: in place of the CTA's own number where teams of no cluster go to SMs otherwise.
    __device__ explicit Team(Exchange& exchange, unsigned block = blockIdx.x)
        : exchange_(exchange), block_(block) {}

    /// Threads of the row before this one, over the whole cluster's.
    __device__ unsigned lane() const {
        if constexpr (cluster > 1) return rank() * threads_per_row + threadIdx.x;
        return threadIdx.x % threads_per_row;
    }
    /// The row that this thread's team takes first, and how many all teams of the grid take at once.
    template <class Index>
    __device__ Index first_row() const {
        return Index(block_ / cluster) * rows + threadIdx.x / threads_per_row;
    }
    /// Each CTA of a cluster takes `part` vectors that lie together, of all of a row or of what the cluster takes at
    /// once: the first of this one's, and how many of a row's `vectors` they are.
    __device__ unsigned part_begin(unsigned part) const {
        if constexpr (cluster == 1) return 0;
        return rank() * part;
    }
    __device__ unsigned part_size(unsigned part, unsigned vectors) const {
        if constexpr (cluster == 1) return vectors;
        const unsigned begin = part_begin(part), rest = vectors > begin ? vectors - begin : 0;
        return rest < part ? rest : part;
    }
    /// Of thread 0 of a team beside a producer, before any CTA of the cluster goes on.
    __device__ void init() {
        if constexpr (near) joint().init_full(1);
    }
    /// Of all threads that compute, before their first row and after their last one.
    __device__ void reduce_in(void* workspace) {
        if constexpr (far) grid_.open(workspace, block_);
    }
    __device__ void part_for_good(long long rows) {
        if constexpr (far)
            if (threadIdx.x == 0) grid_.close(rows);
    }
    /// Merges each of `mine` over this CTA's threads of the row; its warps synchronise once for all of them.
    template <class... Accumulators>
    __device__ void within_cta(Accumulators&... mine) {
        static_assert((word_count<Accumulators> + ...) <= words);
        merge_lanes < threads_per_row<32 ? threads_per_row : 32>(all_lanes, mine...);
        if constexpr (warps > 1) {
            auto& slots = exchange_.warp[phase_];
            int word = 0;
            if (threadIdx.x % 32 == 0) (leave(slots, word, threadIdx.x / 32, mine), ...);
            sync_row();
            word = 0;
            (gather(slots, word, mine), ...);
            phase_ ^= 1;
        }
    }

    /// Merges what within_cta() gave over the CTAs of the row.
    template <class... Accumulators>
    __device__ void across_cluster(Accumulators&... mine) {
        if constexpr (far) {
            across_grid(mine...);
        } else if constexpr (near) {
            auto& slots = exchange_.cta[across_.stage];
            int word = 0;
            constexpr unsigned bytes = cluster * (sizeof(Accumulators) + ...);
            if (threadIdx.x == 0) joint().expect(across_.stage, bytes);
            if (threadIdx.x < cluster) (send(slots, word, mine, joint().full(across_.stage)), ...);
            // Peers write what it guards, with its bytes: an acquire of the whole cluster would add nothing
            // but the loss of L1.
            joint().wait(across_);
            word = 0;
            (gather(slots, word, mine), ...);
            across_.advance_of_two();
        }
    }

    template <class Accumulator>
    __device__ Accumulator reduced(Accumulator mine) {
        within_cta(mine);
        across_cluster(mine);
        return mine;
    }

  private:
    template <class Accumulator>
    static constexpr int word_count = sizeof(Accumulator) / sizeof(unsigned);
    template <class Accumulator>
    struct Raw {
        unsigned word[word_count<Accumulator>];
    };

    __device__ Ring<2> joint() const { return {ptx::shared_address(exchange_.joint)}; }
    __device__ unsigned rank() const {
        if constexpr (far) return block_ % cluster;
        else return ptx::cluster_rank();
    }

    /// One thread tells, one warp listens, then all hear of it.
    template <class... Accumulators>
    __device__ void across_grid(Accumulators&... mine) {
        auto& slots = exchange_.cta[across_.stage];
        int word = 0;
        if (threadIdx.x < 32) {
            grid_.begin();
            if (threadIdx.x == 0) (tell(word, mine), ...);
            word = 0;
            (hear(word, mine), ...);
            merge_lanes<32>(all_lanes, mine...);
            word = 0;
            if (threadIdx.x == 0) (leave(slots, word, 0, mine), ...);
        }
        sync_row();
        word = 0;
        (take(slots, word, mine), ...);
        across_.advance_of_two();
    }
    template <class Accumulator>
    __device__ void tell(int& word, const Accumulator& mine) {
        const auto raw = __builtin_bit_cast(Raw<Accumulator>, mine);
#pragma unroll
        for (unsigned w : raw.word) grid_.leave(word++, w);
    }
    /// What a lane's share of the CTAs told, of several side by side; lanes behind the last CTA have nothing.
    template <class Accumulator>
    __device__ void hear(int& word, Accumulator& mine) {
        constexpr int rounds = (cluster + 31) / 32, most = 4, together = rounds < most ? rounds : most;
#pragma unroll
        for (int from = 0; from < rounds; from += together) {
            Raw<Accumulator> raw[together];
            grid_.wait_for(raw, word, from * 32 + threadIdx.x);
#pragma unroll
            for (int i = 0; i < together; ++i) {
                const bool there = (from + i) * 32 + threadIdx.x < cluster;
                const auto part = there ? __builtin_bit_cast(Accumulator, raw[i]) : Accumulator{};
                if (from + i == 0) mine = part;
                else mine.merge(part);
            }
        }
        word += word_count<Accumulator>;
    }
    template <class Accumulator>
    __device__ static void take(const unsigned (&slots)[words][1], int& word, Accumulator& mine) {
        Raw<Accumulator> raw;
#pragma unroll
        for (unsigned& w : raw.word) w = slots[word++][0];
        mine = __builtin_bit_cast(Accumulator, raw);
    }

    __device__ static void sync_row() {
        constexpr int own_barrier = 1;
        if constexpr (beside) ptx::named_barrier_sync(own_barrier, threads_per_row);
        else __syncthreads();
    }

    static constexpr unsigned all_lanes = 0xffffffffu;
    /// Merges `count` neighbouring lanes, a power of two, in all teams of the warp. Of a mask that is no constant the compiler
    /// would ask, at every reduction, whether all its lanes have the same.
    template <int count, class... Accumulators>
    __device__ static void merge_lanes(unsigned mask, Accumulators&... mine) {
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2) (merge_from<count>(mine, mask, away), ...);
        if constexpr (count > 1) (merge_together<count>(mine, mask), ...);
    }
    /// What knows a shorter way than word by word from half to half.
    template <int count, class Accumulator>
    static constexpr bool merges_together = requires(Accumulator a) {
        a.template merge_lanes<count>(0u);
    };
    template <class Accumulator>
    static constexpr bool merges_warp = requires(Accumulator a) {
        a.merge_warp();
    };

    template <int count, class Accumulator>
    __device__ static void merge_together(Accumulator& mine, unsigned mask) {
        if constexpr (count == 32 && merges_warp<Accumulator>) mine.merge_warp();
        else if constexpr (merges_together<count, Accumulator>) mine.template merge_lanes<count>(mask);
    }
    template <int count, class Accumulator>
    __device__ static void merge_from(Accumulator& mine, unsigned mask, int away) {
        if constexpr (!(count == 32 && merges_warp<Accumulator>)&&!merges_together<count, Accumulator>) {
            Raw<Accumulator> raw = __builtin_bit_cast(Raw<Accumulator>, mine);
#pragma unroll
            for (unsigned& word : raw.word) word = __shfl_xor_sync(mask, word, away);
            mine.merge(__builtin_bit_cast(Accumulator, raw));
        }
    }

    /// One word of everybody after the other, so that they are read four at a time.
    template <int count, class Accumulator>
    __device__ static void leave(unsigned (&slots)[words][count], int& word, unsigned place,
                                 const Accumulator& mine) {
        const auto raw = __builtin_bit_cast(Raw<Accumulator>, mine);
#pragma unroll
        for (unsigned w : raw.word) slots[word++][place] = w;
    }
    /// To CTA number threadIdx.x, as a message.
    template <class Accumulator>
    __device__ static void send(unsigned (&slots)[words][cluster], int& word, const Accumulator& mine,
                                unsigned joint) {
        const auto raw = __builtin_bit_cast(Raw<Accumulator>, mine);
        const unsigned rank = ptx::cluster_rank();
#pragma unroll
        for (unsigned w : raw.word) {
            const unsigned slot = ptx::map_to_rank(ptx::shared_address(&slots[word++][rank]), threadIdx.x);
            ptx::store_cluster_async(slot, w, ptx::map_to_rank(joint, threadIdx.x));
        }
    }
    /// Few words every thread merges itself: that is shorter than the shuffles.
    template <int count, class Accumulator>
    __device__ static void gather(const unsigned (&slots)[words][count], int& word, Accumulator& mine) {
        constexpr int max_own = 16;
        if constexpr (word_count<Accumulator> == 1 && count <= max_own) {
            Accumulator part[count];
#pragma unroll
            for (int i = 0; i < count; ++i) part[i] = __builtin_bit_cast(Accumulator, slots[word][i]);
            merge_halves<count / 2>(part);
            mine = part[0];
            ++word;
        } else {
            Raw<Accumulator> raw;
#pragma unroll
            for (unsigned& w : raw.word) w = slots[word++][threadIdx.x % count];
            mine = __builtin_bit_cast(Accumulator, raw);
            merge_lanes<count>(all_lanes, mine);
        }
    }

    template <int half, class Accumulator, int count>
    __device__ static void merge_halves(Accumulator (&part)[count]) {
#pragma unroll
        for (int i = 0; i < half; ++i) part[i].merge(part[i + half]);
        if constexpr (half > 1) merge_halves<half / 2>(part);
    }

    Exchange& exchange_;
    unsigned block_;
    int phase_ = 0;
    RingPosition<2> across_;  // of reductions of CTAs
    GridReduction<cluster, words> grid_;
};

}  // namespace rooftile::fuse
