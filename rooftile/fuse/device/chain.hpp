// Fused kernels and the chain's operators one by one, ready to launch on a set of tensors.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/unfuse.hpp"

namespace rooftile {

/// A compiled plan, or its compiler's error.
using FuseOutcome = std::variant<Error, FuseKernel>;
/// In parallel; `threads` 0: one a core.
std::vector<FuseOutcome> compile_all(const std::vector<FusePlan>& plans, unsigned threads);

/// A kernel with the workspace that it takes, if any; its launches follow each other in one stream.
class FuseRunnable {
  public:
    explicit FuseRunnable(FuseKernel kernel);
    void launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs) const {
        kernel_.launch(stream, inputs, outputs, workspace_ ? workspace_->data() : nullptr);
    }

  private:
    FuseKernel kernel_;
    std::shared_ptr<DeviceBuffer> workspace_;
};

/// The first plan of every operator of a chain. Throws RequestError where one has none.
std::vector<FusePlan> unfused_plans(const Machine& machine, const std::vector<UnfusedKernel>& chain);

/// The chain's operators one after the other, intermediates in buffers of their own.
class UnfusedChain {
  public:
    /// `kernels` as compiled from unfused_plans(); `problem` must outlive it. Throws the first's error.
    UnfusedChain(const ExpressionGraph& problem, std::vector<UnfusedKernel> chain,
                 const std::vector<FuseOutcome>& kernels);
    void launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs) const;

  private:
    const ExpressionGraph& problem_;
    std::vector<UnfusedKernel> chain_;
    std::vector<FuseRunnable> kernels_;
    std::vector<DeviceBuffer> buffers_;  // by node of the chain
};

}  // namespace rooftile
