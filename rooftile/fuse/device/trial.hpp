// One fused expression on a readied GPU: its tensors, copies and reads of as many bytes, its operators one by one. For
// rooftile/fuse's own sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rooftile/fuse/device/chain.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

/// The chain's operators as kernels of their own, compiled; or why they cannot run.
struct PreparedChain {
    std::vector<UnfusedKernel> chain;
    std::vector<FuseOutcome> kernels;
    std::string missing;
};

/// `problem` and `chain` outlive the trial.
std::unique_ptr<Trial> fuse_trial(const ExpressionGraph& problem, const PreparedChain& chain, Bench& bench);

}  // namespace rooftile
