// Warpgroups that take turns at one unit of the SM (an ordered sequence barrier): while one multiplies the others do something else.
//
// Party i waits at named barrier first_barrier + i, where the party before it arrives: 256 threads meet there,
// of which 128 do not wait. Party 0 has the first turn for nothing. The turn goes round, 0 1 .. parties - 1 0,
// so work that all parties have in equal shares is done in that order.
//
// Every arrival must be met, and by who waits for it: two arrivals at one barrier meet each other, and the next party then waits for ever.
// So who passes the turn on knows that the next party still has work, and that it has taken the turn before. Parties that have equal
// shares of all work need not know: they begin() and end(), and pass every turn on.
#pragma once

#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <int parties, int first_barrier>
struct OrderedSequenceBarrier {
    static_assert(parties >= 2 && first_barrier > 0 && first_barrier + parties <= 16,
                  "a CTA has 16 named barriers; 0 is __syncthreads");
    int party;

    /// Waits for this party's turn; `first`: it has had none yet.
    __device__ void wait(bool first) const {
        if (!(first && party == 0)) ptx::named_barrier_sync(first_barrier + party, met_threads());
    }
    /// Gives the turn to the next party.
    __device__ void pass() const { ptx::named_barrier_arrive(first_barrier + next(), met_threads()); }

    /// Before any turn: gives party 0 its first one, for which it waits then.
    __device__ void begin() const {
        if (party == parties - 1) pass();
    }
    /// Behind the last one: takes back what the last party passed on.
    __device__ void end() const {
        if (party == 0) wait(false);
    }

    /// One warpgroup waits, one passes on.
    static constexpr int met_threads() { return 2 * 128; }
    __device__ int next() const { return parties == 2 ? 1 - party : (party + 1) % parties; }
};

}  // namespace rooftile
