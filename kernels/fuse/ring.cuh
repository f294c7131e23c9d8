// Chunks of rows on their way through shared memory: slots that a producer thread has filled by bulk copies
// and that the other warps give back, round after round.
#pragma once

#include "kernels/fuse/dynamic_scheduler.cuh"
#include "kernels/fuse/staged.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile::fuse {

/// A place in a ring of `count` slots that `warps` warps read. Copies of it advance on their own.
template <int count, int warps>
class Ring {
  public:
    struct Barriers {
        unsigned long long full[count], empty[count];
        unsigned row[count];  ///< whose chunk lies there, where rows are scheduled dynamically
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
        : barriers_(ptx::shared_address(&barriers)), nothing_(nothing) {
        ptx::keep(barriers_);  // else the compiler makes the address again for every wait
    }

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
    /// Of the producer, before it announces the slot's bytes.
    __device__ void mark(unsigned row) const { ptx::store_shared(row_place(), row); }
    /// Of the producer behind the last row: who waits for a chunk learns that there is none.
    __device__ void end() const {
        const unsigned barrier = vacant();
        mark(beyond_last);
        ptx::mbarrier_arrive(barrier);
    }
    /// Waits for the slot's bytes.
    __device__ void arrived() const { ptx::mbarrier_wait(full(), round_); }
    /// Whose chunk has arrived.
    __device__ unsigned row() const {
        ptx::Words<4> row;
        ptx::load_shared(row, row_place());
        return row.word[0];
    }
    /// Of who has given back the last chunk of `row`: the row behind it, or once more that one.
    __device__ unsigned row_behind(unsigned row) const {
        Ring coming = *this;
        coming.next();
        coming.arrived();
        const unsigned behind = coming.row();
        return behind == beyond_last ? row : behind;
    }
    /// Of a whole warp, which has read all it needs of the slot; `seen` holds words of each of its reads. An
    /// arrival does not wait for loads, which lie behind stores where memory is slow, and bulk copies would
    /// overtake them. The vote waits, since it takes what they bring, and the arrival takes its result. A
    /// fence would wait for all other loads and stores of the thread too. A vote orders no memory, though (PTX ISA,
    /// "vote.sync"); the barrier of the warp does, for what was not seen: whose chunk lay there.
    __device__ void release(unsigned seen) const {
        const bool never = __any_sync(0xffffffffu, (seen & nothing_) != 0);
        __syncwarp();
        if (threadIdx.x % 32 == 0 && !never) ptx::mbarrier_arrive(empty());
    }

  private:
    static constexpr unsigned bytes = sizeof(unsigned long long);
    __device__ unsigned full() const { return barriers_ + slot_ * bytes; }
    __device__ unsigned empty() const { return barriers_ + (count + slot_) * bytes; }
    __device__ unsigned row_place() const { return barriers_ + 2 * count * bytes + slot_ * sizeof(unsigned); }

    unsigned barriers_, nothing_, slot_ = 0, round_ = 0;
};

/// Values of a row on their way from the threads that reduce it to `warps` warps that compute its result; two rows
/// have their places in turn.
template <int count, int warps>
class Handover {
  public:
    struct Places {
        unsigned long long full[2], empty[2];
        float value[2][count];
    };

    /// Of thread 0, before the first use by any.
    __device__ static void init(Places& places) {
        for (int i = 0; i < 2; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&places.full[i]), 1);
            ptx::mbarrier_init(ptx::shared_address(&places.empty[i]), warps);
        }
    }
    __device__ explicit Handover(Places& places) : places_(places) {}

    /// Of one thread; waits until all warps are through with the row before last.
    __device__ void give(const float (&values)[count]) {
        ptx::mbarrier_wait(ptx::shared_address(&places_.empty[phase_]), round_ ^ 1);
#pragma unroll
        for (int i = 0; i < count; ++i) places_.value[phase_][i] = values[i];
        ptx::mbarrier_arrive(ptx::shared_address(&places_.full[phase_]));
        next();
    }
    /// Waits for the next row's.
    __device__ void take(float (&values)[count]) const {
        ptx::mbarrier_wait(ptx::shared_address(&places_.full[phase_]), round_);
#pragma unroll
        for (int i = 0; i < count; ++i) values[i] = places_.value[phase_][i];
    }
    /// Of a whole warp, which has used them.
    __device__ void release() {
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ptx::shared_address(&places_.empty[phase_]));
        next();
    }

  private:
    __device__ void next() {
        round_ ^= phase_;
        phase_ ^= 1;
    }

    Places& places_;
    unsigned phase_ = 0, round_ = 0;
};

/// A word of each access that a read was: of 16 bytes or fewer, as waiting() makes them.
template <class T, int vector_width>
__device__ inline unsigned words_of(const Pack<T, vector_width>& pack) {
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
