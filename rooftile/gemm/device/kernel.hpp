// A plan made runnable: compiled for its machine, loaded into a context, launched on the caller's stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "rooftile/runtime/compiled_kernel.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

class GemmCode;
struct GemmPointers;

/// A compiled GEMM kernel. A handle: copies share the code and what is loaded. One cubin serves every
/// shape of its types and majors.
class Kernel {
  public:
    const GemmPlan& plan() const;
    const std::string& name_expression() const;
    const std::string& lowered_name() const;
    const std::string& arch() const;  ///< "sm_90a"
    const std::string& cubin() const;
    const std::string& log() const;   ///< of NVRTC and ptxas
    const EntryInfo& entry() const;   ///< registers and the like, as ptxas reports them
    const std::string& hash() const;  ///< of everything that decides the cubin; 32 hex digits
    bool from_cache() const;
    double compile_seconds() const;  ///< all of compile(), 0.0x where it came from the cache
    /// Compiles the same source to PTX, for reading.
    std::string ptx() const;

    /// Loads the code into the current context, once; what launch() does on its first call there. Call it
    /// before capturing a graph: loading cannot be captured. Thread-safe.
    /// Throws RequestError where no context is current, Error(no_gpu) on a GPU of another architecture,
    /// Error(gpu_failed) where the driver refuses.
    void load() const;
    /// The same, and makes ready what a launch of `shape` needs besides: the table of orders morton and
    /// hilbert.
    void load(const GemmShape& shape) const;
    /// The loaded kernel in the current context; loads it first where needed.
    Function function() const;

    /// The kernel for another M, of the same code and configuration and without a prediction. Empty where they do not compute it:
    /// where M is contiguous in memory, where an operand of the epilogue has a row for each of C's, and what launch() refuses.
    std::optional<Kernel> with_rows(std::int64_t m) const;

    /// In the current context, for one launch at a time; 0 where it needs none.
    std::size_t workspace_bytes() const;
    std::size_t workspace_bytes(const GemmShape& shape) const;

    /// C = A * B of the plan's problem, on device pointers of the current context, in `stream`.
    /// Neither synchronises nor (once loaded) allocates; may be captured into a graph; thread-safe.
    /// Orders morton and hilbert read a table, made by load() or the first launch of a grid of tiles.
    /// Throws RequestError where a pointer or a leading dimension is not aligned as the kernel needs it, or where it
    /// needs a workspace and there is none.
    void launch(Stream stream, const void* a, const void* b, void* c, void* workspace = nullptr) const;
    /// The same where the plan has an epilogue: A, B, what it reads, and the result, in the order of Operation::tensors().
    /// Throws RequestError too where an operand lies where the result does.
    void launch(Stream stream, std::span<void* const> tensors, void* workspace = nullptr) const;
    /// The same for another shape of the same types and majors; of a plan without an epilogue.
    void launch(Stream stream, const void* a, const void* b, void* c, const GemmShape& shape,
                void* workspace = nullptr) const;

    struct State;
    explicit Kernel(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  private:
    void launch(Stream stream, GemmPointers pointers, const GemmShape& shape, void* workspace) const;
    std::shared_ptr<const State> state_;
};

/// Compiles exactly the planned kernel, or takes it from the cache. Needs NVRTC, no GPU.
/// Throws RequestError where the plan is not buildable, Error(compile_failed) where the compiler refuses or
/// its code is not as planned: a C75xx or C76xx message, spills, a stack frame, local memory.
Kernel compile(const GemmPlan& plan, const CompileOptions& options = {});
/// The same of code that is given.
Kernel compile(const GemmPlan& plan, std::unique_ptr<const GemmCode> code, const CompileOptions& options = {});

/// Names the code that compile() makes: the same for plans that share it.
std::string code_key(const GemmPlan& plan);

/// As the stations launch it.
CompiledKernel compiled(Plan plan, Kernel kernel);

using KernelOutcome = std::variant<Error, Kernel>;
/// Compiles all, in up to `threads` threads (0: one a core); outcomes in the order of `plans`.
std::vector<KernelOutcome> compile_all(std::span<const GemmPlan> plans, const CompileOptions& options = {},
                                       unsigned threads = 0);

}  // namespace rooftile
