// A ring of stages in shared memory between those who fill and those who read, and where each stands in it.
//
// A stage has two mbarriers. The producer, one thread, waits until the stage is empty, announces the bytes of
// its copies and starts them: full completes with the last byte. A consumer warp waits until the stage is full,
// reads it, and gives it back by one arrival on empty. A stage that CTAs of a cluster multicast into is given
// back to each of them.
//
// Parity. Use number u of a ring takes stage u % stages in lap u / stages. An mbarrier's phases are numbered
// from 0, and a wait for parity p returns as soon as the last phase of that parity is over. Lap l completes
// phase l of full and, once it is read, phase l of empty. A consumer in lap l so waits for parity l % 2 of full;
// a producer in lap l waits for the reading of lap l - 1, the other parity of empty. A fresh barrier counts as
// past a phase of parity 1: in lap 0 the producer does not wait.
//
// Nobody is ever two phases behind: the producer enters lap l + 1 of a stage only when all have read lap l. So
// one bit tells the laps apart. Each role advances a position of its own; rings of one kernel (operands that
// are used at different times) are independent, each with its positions.
#pragma once

#include "kernels/ptx/mbarrier.cuh"

namespace rooftile {

/// Where a role stands in a ring: the stage, and the parity of the lap.
template <int stages>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    /// Of use number `use`, for who counts uses: cheap where `stages` is a power of two.
    static constexpr RingPosition of(unsigned use) {
        return {static_cast<int>(use % stages), use / stages % 2};
    }
    /// `used`: of a ring that uses only its first stages.
    constexpr void advance(int used = stages) {
        if (++stage == used) {
            stage = 0;
            parity ^= 1;
        }
    }
    /// The same of two stages, without a comparison. Apart: 2-stage matrix products keep the code that was measured.
    constexpr void advance_of_two() {
        static_assert(stages == 2);
        parity ^= static_cast<unsigned>(stage);
        stage ^= 1;
    }
    /// Where the use before this one was.
    constexpr RingPosition before() const {
        return stage == 0 ? RingPosition{stages - 1, parity ^ 1} : RingPosition{stage - 1, parity};
    }
    /// Over `uses` that are another's.
    constexpr void skip(int uses) {
        const int position = stage + uses;
        parity ^= (position / stages) & 1;
        stage = position % stages;
    }
};

/// The barriers of a ring, 8 bytes each: `stages` full ones, then as many empty ones, from `barriers` on.
template <int stages>
struct Ring {
    // A function: a static member would be a variable of the module.
    static constexpr int bytes() { return 2 * stages * 8; }
    using Position = RingPosition<stages>;
    unsigned barriers;

    __device__ unsigned full(int stage) const { return barriers + stage * 8; }
    __device__ unsigned empty(int stage) const { return full(stage) + stages * 8; }

    /// Of one thread. `fills`: arrivals that fill a stage, 1 of a producer thread; `releases`: warps that give
    /// it back, of all CTAs that it is shared with.
    __device__ void init(unsigned fills, unsigned releases) const {
        for (int stage = 0; stage < stages; ++stage) {
            ptx::mbarrier_init(full(stage), fills);
            ptx::mbarrier_init(empty(stage), releases);
        }
    }

    /// Of one thread, where nobody gives stages back: the full barriers alone, of the first `used` stages.
    __device__ void init_full(unsigned fills, int used = stages) const {
        for (int stage = 0; stage < used; ++stage) ptx::mbarrier_init(full(stage), fills);
    }

    /// Of the producer: waits until the stage may be filled.
    __device__ void acquire(const Position& at) const { ptx::mbarrier_wait(empty(at.stage), at.parity ^ 1); }
    /// Of a producer whose stages nobody reads: waits until what it brought there a lap ago has come.
    __device__ void wait_previous(const Position& at) const {
        ptx::mbarrier_wait(full(at.stage), at.parity ^ 1);
    }
    /// Of the producer: its arrival, and `tx_bytes` of copies that are to complete on full(stage).
    __device__ void expect(int stage, unsigned tx_bytes) const {
        ptx::mbarrier_arrive_expect(full(stage), tx_bytes);
    }
    /// Of a producer that wrote the stage itself: its arrival alone.
    __device__ void commit(int stage) const { ptx::mbarrier_arrive(full(stage)); }

    /// Of a consumer: waits until the stage is full.
    __device__ void wait(const Position& at) const { ptx::mbarrier_wait(full(at.stage), at.parity); }
    /// Of a whole consumer warp: it is done with the stage. What another unit still reads (wgmma) must be over.
    __device__ void release(int stage) const {
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty(stage));
    }
    /// The same to the producers of CTAs [first_rank, first_rank + ctas) of the cluster, which all fill it.
    template <int ctas>
    __device__ void release_to_cluster(int stage, unsigned first_rank = 0) const {
        static_assert(ctas <= 32, "a lane tells one CTA");
        const unsigned lane = threadIdx.x % 32;
        if (lane < ctas) ptx::mbarrier_arrive_remote(empty(stage), first_rank + lane);
    }

    /// Where the warps of a cluster's CTAs fill the stage together, by ordinary stores: one arrival a warp and
    /// CTA says so to all of them, and a wait of cluster scope sees what they wrote. Dear: once a tile.
    template <int ctas>
    __device__ void commit_to_cluster(int stage) const {
        const unsigned lane = threadIdx.x % 32;
        if (lane < ctas) ptx::mbarrier_arrive_remote_release(full(stage), lane);
    }
};

}  // namespace rooftile
