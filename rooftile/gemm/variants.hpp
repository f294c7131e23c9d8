// Plans beside the best one, to hold the model against: the same kernel in other orders of tiles, and
// configurations drawn from all that pass the constraints.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// derive()'s first plan as rank 1, and behind it the same plan in each of `orders`, in that order. What
/// does not fit in one of them is named in `notes`.
std::variant<Plans, Infeasible> derive_in_orders(const Machine& machine, const GemmProblem& problem,
                                                 const GemmRequest& request,
                                                 std::span<const OrderChoice> orders);

/// derive()'s first plan as rank 1, and behind it up to `count` - 1 others by predicted time, drawn from every
/// candidate that passes all constraints of `request`, each with stages and an order drawn as well. They are spread
/// evenly over the logarithm of the predicted time, from rank 1's to `drawn_within` times that. The same
/// `seed` draws the same. Fewer, with a line in `notes`, where there are no more.
std::variant<Plans, Infeasible> derive_sample(const Machine& machine, const GemmProblem& problem,
                                              const GemmRequest& request, int count, std::uint64_t seed);
inline constexpr double drawn_within = 2;

}  // namespace rooftile
