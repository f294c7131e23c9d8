// Chunks of rows on their way through shared memory: slots that a producer thread has filled by bulk copies
// and that the other warps give back, round after round.
#pragma once

#include "kernels/fuse/staged.cuh"

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
    /// `nothing`: 0, and the compiler must not know that.
    __device__ Ring(Barriers& barriers, unsigned nothing)
        : barriers_(ptx::shared_address(&barriers)), nothing_(nothing) {}

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
    /// Of a whole warp, which has read all it needs of the slot; `seen` holds words of each of its reads. An
    /// arrival does not wait for loads, which lie behind stores where memory is slow, and bulk copies would
    /// overtake them. The vote waits, since it takes what they bring, and the arrival takes its result. A
    /// fence would wait for all other loads and stores of the thread too.
    __device__ void release(unsigned seen) const {
        const bool never = __any_sync(0xffffffffu, (seen & nothing_) != 0);
        if (threadIdx.x % 32 == 0 && !never) ptx::mbarrier_arrive(empty());
    }

  private:
    static constexpr unsigned bytes = sizeof(unsigned long long);
    __device__ unsigned full() const { return barriers_ + slot_ * bytes; }
    __device__ unsigned empty() const { return barriers_ + (count + slot_) * bytes; }

    unsigned barriers_, nothing_, slot_ = 0, round_ = 0;
};

/// A word of each access that a read was: of 16 bytes or fewer, as waiting() makes them.
template <class T, int width>
__device__ inline unsigned words_of(const Pack<T, width>& pack) {
    constexpr int bytes = sizeof(pack), access = 16;
    if constexpr (bytes < 4) {
        return *reinterpret_cast<const unsigned char*>(&pack);
    } else {
        unsigned words = 0;
#pragma unroll
        for (int i = 0; i < bytes; i += access) words |= reinterpret_cast<const unsigned*>(&pack)[i / 4];
        return words;
    }
}

}  // namespace rooftile::fuse
