// Attention on a readied GPU: its fp64 reference, and what it is measured beside.
#pragma once

#include <memory>

#include "rooftile/attention/problem.hpp"
#include "rooftile/measure/trial.hpp"

namespace rooftile {

/// Compiles the reference's kernels, or takes them from the cache; needs no GPU.
void compile_attention_reference(const AttentionProblem& problem, const std::string& arch);

/// `bench` outlives it.
std::unique_ptr<Trial> attention_trial(const AttentionProblem& problem, Bench& bench);

}  // namespace rooftile
