// A chain's forms weighed against each other on one machine.
#pragma once

#include <memory>

#include "rooftile/chain/model.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

/// The best plan of every form that the request leaves open, fastest first [M32-M34, M41]. Never throws for an unknown number.
PlanSet derive_chain(std::shared_ptr<const Machine> machine, const Problem& problem, const ChainRequest& request);

/// Each part's predictor by its own operation; parts were planned for `machine`.
std::vector<Predictor> part_predictors(const Machine& machine, std::span<const Plan> parts);
/// The time of a plan on a machine, its configuration and its traffic kept.
ChainTime chain_time(const Machine& machine, const ChainPlan& plan, std::span<const Plan> parts, std::span<const Predictor> predictors);
Predictor chain_predictor(const Machine& machine, std::span<const Plan> plans);

/// The workspace of form on_chip: a counter.
inline constexpr std::int64_t chain_counter_bytes = 16;

/// The two products as their operation's requests.
Given first_product(const ChainProblem& problem, bool with_act);
Given second_product(const ChainProblem& problem, bool with_residual);
/// As the operation that plans products names them: plans of them are asked of core by name.
inline constexpr std::string_view product_operation = "gemm";

}  // namespace rooftile
