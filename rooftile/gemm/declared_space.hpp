// The configurations that GEMM's choices are judged against, and what the rules of others choose of them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rooftile/core/space.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// The rule of gemm_space(), in words.
std::string_view gemm_space_rule();
/// Keys of a configuration that the rule speaks of.
std::span<const std::string_view> gemm_space_keys();
/// The buildable members of the space; what the rule leaves open is derive()'s choice.
std::vector<GemmPlan> gemm_space(const std::shared_ptr<const Machine>& machine, const GemmProblem& problem);

/// The tile and cluster of DeepGEMM's rule for dense bf16 on sm_90 (csrc/jit_kernels/heuristics/sm90.hpp at 54e2261) in our
/// words. Empty where the machine's L2 bandwidth is unknown.
std::vector<Pick> gemm_picks(const Machine& machine, const GemmProblem& problem);

/// The request that fixes plans to the configuration of a record that config_record() made.
Given gemm_given_of_config(const Record& config);

}  // namespace rooftile
