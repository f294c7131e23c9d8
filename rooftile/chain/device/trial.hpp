// A chain on a readied GPU: its fp64 reference, and what it is measured beside.
#pragma once

#include <memory>

#include "rooftile/chain/problem.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

/// Compiles the reference's kernels, or takes them from the cache; needs no GPU.
void compile_chain_reference(const std::string& arch);

/// `bench` outlives it. `problem` is the chain's.
std::unique_ptr<Trial> chain_trial(const Problem& problem, Bench& bench);

}  // namespace rooftile
