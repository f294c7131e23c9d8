// A checker of the protocols by which the roles of a kernel meet: mbarriers, named barriers, and numbers told through shared memory.
//
// tests/fake/protocol runs the kernel's own text once for each role and records what it does with barriers. A role's control flow
// follows from the problem alone, so each recording is a straight line; explore() then goes through every order in which the lines
// can interleave, breadth first, and says what can go wrong.
//
// A warpgroup is one role: its four warps arrive together. A copy has come as soon as it is asked for: where it is late, who waits for it
// goes on later, which is explored anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rooftile::protocol {

struct Op {
    enum Kind {
        wait,    ///< until the phase of parity `value` of mbarrier `at` is over
        arrive,  ///< `value` arrivals on mbarrier `at`
        expect,  ///< one arrival, and `value` copies are to come
        come,    ///< one has
        meet,    ///< arrive at named barrier `at` and wait until `value` threads have
        pass,    ///< arrive at it alone
        tell,    ///< number `value` to place `at`
        hear,    ///< place `at` has number `value`
    } kind;
    unsigned at, value;
};

struct Recording {
    std::map<unsigned, unsigned> arrivals;  ///< by mbarrier, that complete a phase
    std::vector<std::vector<Op>> roles;
};

struct Findings {
    std::size_t states = 0;
    std::string fault;  ///< empty: none in any order
    bool gave_up = false;  ///< the fault is that there are too many states
};

/// `most_states`: more than these are a fault of their own.
Findings explore(const Recording&, std::size_t most_states = 4'000'000);

/// For what has too many states: `orders` of them, in each of which who can go on does so by a drawn priority that three drawn steps change.
/// A fault that needs d late steps among n of k roles is met by one order with a chance of at least 1 / (k n^(d - 1)) (Burckhardt and others,
/// "A randomized scheduler with probabilistic guarantees of finding bugs", 2010). `states`: steps taken.
Findings walk(const Recording&, std::size_t orders, std::uint64_t seed);

/// Every order where they come to few states, else some drawn by test_seed().
Findings check(const Recording&);

}  // namespace rooftile::protocol
