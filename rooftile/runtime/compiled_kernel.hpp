// A plan made runnable, whatever its operation: compiled for its machine, loaded into a context, launched on the
// caller's stream.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/error.hpp"
#include "rooftile/runtime/compile_options.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// The machine code of one of a plan's launches, and where it came from.
struct KernelCode {
    std::string name;          ///< "NAME<CONFIG{.tile_m=128, ...}>", or the name in generated text
    std::string lowered_name;  ///< of its entry in the cubin
    std::string arch;          ///< "sm_90a"
    std::string source;        ///< where the text was made for this plan; else empty: `name` is all of it
    std::string cubin;
    std::string hash;  ///< of everything that decides the cubin; 32 hex digits
    EntryInfo entry;   ///< registers and the like, as ptxas reports them
    bool from_cache = false;
    double compile_seconds = 0;  ///< all of compile(), 0.0x where it came from the cache
};

struct CachedCompile;
/// Of a source with one kernel that is named by its expression alone; `seconds`: all of compile().
KernelCode code_of(const Source& source, const CachedCompile& compiled, double seconds);

/// What an operation does for its compiled plans.
class Runnable {
  public:
    virtual ~Runnable() = default;
    virtual KernelCode code() const = 0;
    virtual std::string ptx() const = 0;
    virtual std::size_t workspace_bytes() const = 0;
    virtual std::int64_t shared_bytes() const = 0;
    virtual void load() const = 0;
    virtual void launch(Stream stream, std::span<void* const> tensors, void* workspace) const = 0;
};

/// A compiled plan. A handle: copies share the code and what is loaded.
class CompiledKernel {
  public:
    CompiledKernel(Plan plan, std::shared_ptr<const Runnable> runnable);
    /// The same code of another plan, which `runnable` launches.
    CompiledKernel of(Plan plan, std::shared_ptr<const Runnable> runnable) const;

    const Plan& plan() const { return plan_; }
    const Runnable& runnable() const { return *runnable_; }
    const KernelCode& code() const { return *code_; }
    std::string ptx() const { return runnable_->ptx(); }  ///< compiles the same source to PTX, for reading
    std::int64_t shared_bytes() const { return runnable_->shared_bytes(); }  ///< of a CTA, static and dynamic

    /// Loads the code into the current context, once; what launch() does on its first call there. Call it before
    /// capturing a graph: loading cannot be captured. Thread-safe. Throws RequestError where no context is current,
    /// Error(no_gpu) on a GPU of another architecture, Error(gpu_failed) where the driver refuses.
    void load() const { runnable_->load(); }
    /// In the current context; 0 where it needs none. Zeroed once before the first launch; each launch leaves it ready for
    /// the next. Launches that may overlap need one each.
    std::size_t workspace_bytes() const { return runnable_->workspace_bytes(); }
    /// One launch of the plan on device pointers, in the order of Operation::tensors(), in `stream`. Neither synchronises
    /// nor (once loaded) allocates; may be captured, and the graph then keeps the code; thread-safe. Throws RequestError where a
    /// pointer is missing or not aligned as planned.
    void launch(Stream stream, std::span<void* const> tensors, void* workspace = nullptr) const;

  private:
    Plan plan_;
    std::shared_ptr<const Runnable> runnable_;
    std::shared_ptr<const KernelCode> code_;
};

/// A compiled plan, or its compiler's error.
using CompiledOutcome = std::variant<Error, CompiledKernel>;

}  // namespace rooftile
