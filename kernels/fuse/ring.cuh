// Chunks of rows on their way through shared memory: slots that a producer thread has filled by bulk copies
// and that the other warps give back, round after round.
#pragma once

#include "kernels/fuse/staged.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile::fuse {

/// A place in a ring of `count` slots that `warps` warps read. Copies of it walk on their own.
template <int count, int warps>
class Ring {
  public:
    struct Barriers {
        unsigned long long full[count], empty[count];
    };

    /// Of thread 0, before the first use by any.
    __device__ static void init(Barriers& barriers) {
        for (int i = 0; i < count; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&barriers.full[i]), 1);
            ptx::mbarrier_init(ptx::shared_address(&barriers.empty[i]), warps);
        }
    }
    __device__ explicit Ring(Barriers& barriers) : barriers_(ptx::shared_address(&barriers)) {}

    __device__ unsigned slot() const { return slot_; }
    __device__ void next() {
        if (++slot_ < count) return;
        slot_ = 0;
        round_ ^= 1;
    }

    /// Of the producer: waits until all warps have given the slot back; the barrier on which its bytes
    /// complete.
    __device__ unsigned vacant() const {
        ptx::mbarrier_wait(empty(), round_ ^ 1);  // in the first round nobody has taken it
        return full();
    }
    /// Waits for the slot's bytes.
    __device__ void arrived() const { ptx::mbarrier_wait(full(), round_); }
    /// Of a whole warp, which has read what it needs of the slot. The fence: an arrival does not wait for
    /// loads, which lie behind stores where memory is slow, and bulk copies would overtake them.
    __device__ void release() const {
        ptx::fence_async_proxy();
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty());
    }

  private:
    static constexpr unsigned bytes = sizeof(unsigned long long);
    __device__ unsigned full() const { return barriers_ + slot_ * bytes; }
    __device__ unsigned empty() const { return barriers_ + (count + slot_) * bytes; }

    unsigned barriers_, slot_ = 0, round_ = 0;
};

}  // namespace rooftile::fuse
