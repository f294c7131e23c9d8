// CTAs that share a row without being a cluster: each leaves its words in device memory and polls for those
// of the others. All CTAs of the grid must be resident at once.
#pragma once

#include "kernels/fuse/arguments.hpp"
#include "kernels/ptx/relaxed.cuh"
#include "kernels/ptx/wait_limit.cuh"

namespace rooftile::fuse {

/// The workspace: after one word of others a count of CTAs that are through and the tag of the last launch;
/// then, of each team of `cluster` CTAs, two sets of `words` words from each.
template <int cluster, int words>
class GridReduction {
  public:
    /// `block`: the CTA's number among those of the grid, teams side by side.
    __device__ void open(void* workspace, unsigned block) {
        rank_ = block % cluster;
        header_ = static_cast<volatile unsigned*>(workspace);
        tag_ = header_[2];
        constexpr int header_words = 2;  // of 8 bytes
        slots_ = static_cast<unsigned long long*>(workspace) + header_words
                 + block / cluster * (2 * words * cluster);
    }
    /// Before each reduction. A word carries its reduction's tag, so that no barrier stands between it and its
    /// readers; who has all words of a reduction knows that nobody reads those of the one before.
    __device__ void begin() {
        ++tag_;
        phase_ ^= 1;
    }
    __device__ void leave(int word, unsigned value) {
        const unsigned long long tagged = static_cast<unsigned long long>(tag_) << 32 | value;
        ptx::store_relaxed(place(word, rank_), tagged);
    }
    /// The words from number `first` on of the team's CTAs `rank`, rank + 32 and so on, behind the last one its once more;
    /// waits for all of them together.
    template <class Raw, int count>
    __device__ void wait_for(Raw (&to)[count], int first, unsigned rank) const {
        constexpr int each = sizeof(Raw) / sizeof(unsigned);
        bool all = false;
        const ptx::WaitLimit limit;
        for (; !all; limit.more()) {
            unsigned long long tagged[count][each];
#pragma unroll
            for (int i = 0; i < count; ++i) {
                const unsigned of = rank + 32 * i < cluster ? rank + 32 * i : cluster - 1;
#pragma unroll
                for (int w = 0; w < each; ++w) tagged[i][w] = ptx::load_relaxed(place(first + w, of));
            }
            all = true;
#pragma unroll
            for (int i = 0; i < count; ++i)
#pragma unroll
                for (int w = 0; w < each; ++w) {
                    all = all && tagged[i][w] >> 32 == tag_;
                    to[i].word[w] = static_cast<unsigned>(tagged[i][w]);
                }
        }
    }
    /// Of one thread of each CTA after its last row: the last of them all makes the workspace ready for the
    /// next launch, whose tags are new: a row has fewer than `max_reductions`.
    __device__ void close(long long rows) {
        constexpr unsigned max_reductions = 64;
        unsigned* through = const_cast<unsigned*>(header_) + 1;
        const unsigned first = header_[2];
        if (atomicInc(through, gridDim.x - 1) == gridDim.x - 1)
            header_[2] = first + max_reductions * static_cast<unsigned>(rows + 1);
    }

  private:
    __device__ unsigned long long* place(int word, unsigned rank) const {
        return slots_ + (phase_ * words + word) * cluster + rank;
    }

    volatile unsigned* header_ = nullptr;
    unsigned long long* slots_ = nullptr;
    unsigned tag_ = 0, rank_ = 0;
    int phase_ = 0;
};

}  // namespace rooftile::fuse
