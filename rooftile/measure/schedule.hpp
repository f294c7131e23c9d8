// Who is timed when: rounds of blocks in which those that are compared lie next to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rooftile {

/// What a competitor is timed for; docs/command-line.md says what each gets.
enum class Role : std::uint8_t {
    leader,  ///< our first plan: in every round
    other,   ///< our other plans: in fewer rounds, and left out once clearly slower
    baseline,  ///< a vendor library's algorithms: the first and the fastest of a quick selection, in every round
    aside,     ///< what is shown beside, and not compared: short blocks alone
};

/// Rounds of competitors. In each, leaders and baselines stand next to each other in an order drawn from `seed`;
/// every `other` stands in `other_rounds` of them, spread evenly.
std::vector<std::vector<std::size_t>> block_rounds(std::span<const Role> roles, std::size_t rounds,
                                                   std::size_t other_rounds, std::uint64_t seed);

/// Which of the baselines, whose times are `times` (0: cannot run), stay: the first that runs, and the fastest
/// `fastest` of those that take at most `within` times as long as the fastest.
std::vector<bool> kept_baselines(std::span<const double> times, std::size_t fastest, double within);

}  // namespace rooftile
