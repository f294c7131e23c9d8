// Who is timed in which round, who is left out, and when it is enough. What is compared has a block (in cold mode: a
// launch) in the same rounds, and nothing here looks at which of the compared is ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "rooftile/measure/confirmation.hpp"

namespace rooftile {

/// What a competitor is timed for.
enum class Role : std::uint8_t {
    leader,    ///< our first plan: in every round
    roof,      ///< what ours is held against though it computes something else, as a copy: in every round
    other,     ///< our other plans: in every round until clearly slower than the fastest of ours
    baseline,  ///< a vendor library's algorithms: in every round until clearly slower than the fastest of them
    aside,     ///< what is shown beside, and not compared: in the first `least` rounds
};

struct RoundOptions {
    std::size_t least = 6;  ///< rounds, whatever the error and the time; from 6 on the range covers 95 %
    std::size_t most = 200;
    /// Standard error of the first leader's ratio to the fastest baseline that is enough. Without a baseline to the fastest
    /// roof; where there is none either, of its own time.
    double error = 0.003;
    double seconds = 3;  ///< no further round after so long
    /// Clearly slower: in `drop_least` rounds or more, its paired ratio to the fastest of its kind lies above 1 by more than
    /// `drop_above` and by more than so many standard errors.
    std::size_t drop_least = 4;
    double drop_above = 0.08, drop_errors = 5;
};

/// Our plans.
bool is_ours(Role role);

class Rounds {
  public:
    Rounds(std::vector<Role> roles, const RoundOptions& options, std::uint64_t seed);

    /// It cannot run: in no round.
    void leave_out(std::size_t work);
    void add(std::size_t work, RoundTime time);
    /// The competitors of the next round in an order drawn for it; empty where the rounds, which took `seconds`, are over.
    std::vector<std::size_t> next(double seconds);
    /// Whether the error is as small as is asked for.
    bool sure() const;
    /// Begins anew: with the leaders, the roofs and of others and baselines the fastest `keep` each; the rest is dropped. Samples of
    /// these are forgotten, numbers of rounds go on.
    void begin_again(std::size_t keep);
    /// Whether it has a place in further rounds.
    bool stands(std::size_t work) const;
    /// The number of the round that next() gave last, from 0.
    std::size_t round() const { return given_ - 1; }

    /// Was clearly slower than the fastest of its kind: no candidate for it, with fewer samples than the rest.
    bool dropped(std::size_t work) const { return dropped_[work]; }
    const std::vector<RoundTime>& times(std::size_t work) const { return times_[work]; }

  private:
    bool over(double seconds) const;
    using Kind = bool (*)(Role);
    void drop_slow(Kind kind);
    std::vector<std::size_t> standing(Kind kind) const;
    /// Of `works` the one of the least median time; empty where none was timed.
    std::optional<std::size_t> fastest(std::span<const std::size_t> works) const;
    std::optional<double> error_of(std::size_t leader) const;

    std::vector<Role> roles_;
    RoundOptions options_;
    std::mt19937_64 random_;
    std::vector<std::vector<RoundTime>> times_;
    std::vector<bool> out_, dropped_;
    std::size_t given_ = 0, begin_ = 0;  ///< rounds; the first of those that count
};

}  // namespace rooftile
