// A fused plan made runnable: compiled for its machine, loaded into a context, launched on the caller's
// stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/compile_options.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// A compiled fused kernel. A handle: copies share the code and what is loaded.
class FuseKernel {
  public:
    const FusePlan& plan() const;
    const std::string& name() const;  ///< "fuse_layernorm_add_gelu"
    const std::string& text() const;  ///< the generated source
    const std::string& cubin() const;
    const std::string& arch() const;  ///< "sm_90a"
    const EntryInfo& entry() const;   ///< registers and the like, as ptxas reports them
    const std::string& hash() const;  ///< of everything that decides the cubin
    bool from_cache() const;
    double compile_seconds() const;
    std::string ptx() const;  ///< compiles the same source to PTX, for reading

    /// Loads the code into the current context, once; what launch() does on its first call there.
    /// Thread-safe. Throws RequestError where no context is current, Error(no_gpu) on a GPU of another
    /// architecture.
    void load() const;
    /// The loaded kernel in the current context, and the CTAs of a launch there.
    Function function() const;
    int grid() const;
    /// Of a whole reduction, of rows whose CTAs reduce through device memory, and of rings, whose CTAs take rows from it as they
    /// come for them; else 0. The workspace must be zeroed once before its first launch and is ready for the next after
    /// each; launches that may overlap need one each.
    std::size_t workspace_bytes() const;

    /// Computes all outputs from all inputs, device pointers in the graph's order, in `stream`. Neither
    /// synchronises nor (once loaded) allocates; may be captured; thread-safe.
    /// Outputs must overlap neither inputs nor each other: inputs are read as memory that nobody writes.
    /// Without a workspace rings go over rows in a fixed order, 1 to 2 % slower; others need theirs.
    /// Throws RequestError where a pointer is missing or not aligned as planned.
    void launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs,
                void* workspace = nullptr) const;

    struct State;
    explicit FuseKernel(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<const State> state_;
};

/// Compiles exactly the planned kernel, or takes it from the cache. Needs NVRTC, no GPU. Throws as
/// compile(const GemmPlan&).
FuseKernel compile(const FusePlan& plan, const CompileOptions& options = {});

/// What a launch of `plan` is told beside its tensors.
fuse::FuseSizes fuse_sizes(const FusePlan& plan);
/// Whether the kernel of `plan` can do nothing without a workspace; whether it takes one.
bool needs_workspace(const FusePlan& plan);
bool takes_workspace(const FusePlan& plan);
/// Of a plan whose kernel takes a workspace, for `grid` CTAs.
std::size_t fuse_workspace_bytes(const FusePlan& plan, std::int64_t grid);
/// How `grid` CTAs of `plan` are launched, in the default stream.
Launch fuse_launch(const FusePlan& plan, std::int64_t grid);
/// CTAs of a launch of which `resident` fit on the device at once.
std::int64_t fuse_grid(const FusePlan& plan, std::int64_t resident);
/// The kernel's first argument: pointers and dropout keys as 64-bit words.
/// Throws RequestError naming the first pointer that the kernel cannot use.
std::vector<std::uint64_t> fuse_tensors(const FusePlan& plan, std::span<const void* const> inputs,
                                        std::span<void* const> outputs);
/// p * 2^32, rounded: words below it are dropped.
std::uint64_t dropout_threshold(double p);

}  // namespace rooftile
