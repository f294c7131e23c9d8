// Chunks of rows on their way through shared memory: slots that a producer thread has filled by bulk copies
// and that the other warps give back, round after round.
#pragma once

#include "kernels/fuse/staged.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile::fuse {

/// A place in a ring of `count` slots that `warps` warps read. Copies of it advance on their own.
template <int count, int warps>
class ChunkRing {
  public:
    struct Barriers {
        unsigned long long barriers[2 * count];
        unsigned row[count];  ///< whose chunk lies there, where rows are scheduled dynamically
    };

    /// Of thread 0, before the first use by any.
    __device__ static void init(Barriers& barriers) {
        Ring<count>{ptx::shared_address(&barriers)}.init(1, warps);
    }
    /// `nothing`: 0, and the compiler must not know that.
    __device__ ChunkRing(Barriers& barriers, unsigned nothing)
        : ring_{ptx::shared_address(&barriers)}, nothing_(nothing) {
        ptx::keep(ring_.barriers);  // else the compiler makes the address again for every wait
    }

    __device__ unsigned slot() const { return at_.stage; }
    __device__ void next() { at_.advance(); }

    /// Of the producer: waits until all warps have given the slot back; the barrier on which its bytes
    /// complete.
    __device__ unsigned vacant() const {
        ring_.acquire(at_);
        return ring_.full(at_.stage);
    }
    /// Of the producer, before it announces the slot's bytes.
    __device__ void mark(unsigned row) const { ptx::store_shared(row_place(), row); }
    /// Of the producer behind the last row: who waits for a chunk learns that there is none.
    __device__ void end() const {
        ring_.acquire(at_);
        mark(no_tile);
        ring_.commit(at_.stage);
    }
    /// Waits for the slot's bytes.
    __device__ void arrived() const { ring_.wait(at_); }
    /// Whose chunk has arrived.
    __device__ unsigned row() const {
        ptx::Words<4> row;
        ptx::load_shared(row, row_place());
        return row.word[0];
    }
    /// Of who has given back the last chunk of `row`: the row behind it, or once more that one.
    __device__ unsigned row_behind(unsigned row) const {
        ChunkRing coming = *this;
        coming.next();
        coming.arrived();
        const unsigned behind = coming.row();
        return behind == no_tile ? row : behind;
    }
    /// Of a whole warp, which has read all it needs of the slot; `seen` holds words of each of its reads. An
    /// arrival does not wait for loads, which lie behind stores where memory is slow, and bulk copies would
    /// overtake them. The vote waits, since it takes what they bring, and the arrival takes its result. A
    /// fence would wait for all other loads and stores of the thread too. A vote orders no memory, though (PTX ISA,
    /// "vote.sync"); the barrier of the warp does, for what was not seen: whose chunk lay there.
    __device__ void release(unsigned seen) const {
        const bool never = __any_sync(0xffffffffu, (seen & nothing_) != 0);
        __syncwarp();
        if (!never) ring_.release(at_.stage);
    }

  private:
    __device__ unsigned row_place() const {
        return ring_.barriers + Ring<count>::bytes() + at_.stage * sizeof(unsigned);
    }

    Ring<count> ring_;
    unsigned nothing_;
    RingPosition<count> at_;
};

/// Values of a row on their way from the threads that reduce it to `warps` warps that compute its result; two rows
/// have their places in turn.
template <int count, int warps>
class Handover {
  public:
    struct Places {
        unsigned long long barriers[4];
        float value[2][count];
    };

    /// Of thread 0, before the first use by any.
    __device__ static void init(Places& places) { ring(places).init(1, warps); }
    __device__ explicit Handover(Places& places) : places_(places) {}

    /// Of one thread; waits until all warps are through with the row before last.
    __device__ void give(const float (&values)[count]) {
        ring(places_).acquire(at_);
#pragma unroll
        for (int i = 0; i < count; ++i) places_.value[at_.stage][i] = values[i];
        ring(places_).commit(at_.stage);
        at_.advance_of_two();
    }
    /// Waits for the next row's.
    __device__ void take(float (&values)[count]) const {
        ring(places_).wait(at_);
#pragma unroll
        for (int i = 0; i < count; ++i) values[i] = places_.value[at_.stage][i];
    }
    /// Of a whole warp, which has used them.
    __device__ void release() {
        __syncwarp();
        ring(places_).release(at_.stage);
        at_.advance_of_two();
    }

  private:
    __device__ static Ring<2> ring(Places& places) { return {ptx::shared_address(places.barriers)}; }

    Places& places_;
    RingPosition<2> at_;
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
