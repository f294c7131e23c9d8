// The half of an operation that needs a kernel compiler or a GPU. rooftile/operations.def lists the operations, each of
// which defines `const DeviceOperation& NAME_on_device();` in rooftile/NAME/device/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/measure/trial.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// What a problem is measured with, made beside the GPU's work on the problem before.
class PreparedTrial {
  public:
    virtual ~PreparedTrial() = default;
    /// In the current context. `bench` outlives the trial, and so does this.
    virtual std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>& timings) = 0;
};

/// A compiled plan's code launched in another way; its plan says which, and how long that is predicted to take.
struct OtherLaunch {
    std::string key, name;  ///< as LaunchVariant has them
    CompiledKernel kernel;
};

/// What a result should be, element by element, as text of an emitted program: the simplest loop that says what is computed.
struct PlainLoop {
    /// CUDA C++. For each result NAME `__device__ Bounded expected_NAME(const Tensors& t, long long e)` of its e-th element in the order of
    /// its extents, before it is stored; the tensors are pointers in `t`, read by `number(t.x, i)`.
    /// All lanes of a warp call it for one element: `lane()` and `warp_sum(x)` share a loop among them.
    std::string text;
    double steps = 1;  ///< of one element
    std::map<std::string, std::string> filled{};  ///< tensors that no random numbers make right: an expression of the index i
    std::vector<std::string> headers{};  ///< of ours that the text needs
    std::string members{};               ///< of Tensors, beside the tensors
};

class DeviceOperation {
  public:
    virtual ~DeviceOperation() = default;

    /// Compiles exactly the planned kernel, or takes it from the cache. Needs NVRTC, no GPU. Throws RequestError where the
    /// plan is not buildable, Error(compile_failed) where the compiler refuses or its code is not as planned: spills, a
    /// stack frame, local memory.
    virtual CompiledKernel compile(const Plan& plan, const CompileOptions& options = {}) const = 0;
    /// What compile() hands to the compiler. Needs no compiler. Throws RequestError where the plan is not buildable.
    virtual Source source(const Plan& plan) const = 0;
    /// Names the code that compile() makes of the plan: plans of one key share it. Needs NVRTC, no GPU. Empty: the operation
    /// does not say.
    virtual std::string code_key(const Plan&) const { return {}; }
    /// The device half of a facet, by its type; null: it has none.
    virtual const Facet* facet(const std::type_info&) const { return nullptr; }
    /// The kernel for the same problem but that its field `key` is `value`: by the code and the configuration that it has, neither
    /// searched nor predicted. Empty where the operation cannot say that these compute it too.
    virtual std::optional<CompiledKernel> at(const CompiledKernel&, std::string_view /*key*/, std::int64_t /*value*/) const {
        return std::nullopt;
    }
    /// Compiles what the problem is measured beside, in up to `threads` threads (0: one a core). `rounds`: least blocks.
    virtual std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options,
                                                   unsigned threads) const = 0;
    /// Whether a plan's kernel can be compiled without its loads, products or store: --ablate.
    virtual bool has_parts() const { return false; }
    /// Ways of launching a compiled plan's code that stand beside it where it is compared with a baseline. `machine` predicts
    /// them; null: their plans have no time. Compiles nothing.
    virtual std::vector<OtherLaunch> other_launches(const Plan&, const Machine* /*machine*/) const { return {}; }
    /// What `build` says of a kernel beyond its code, for documents and for a terminal.
    virtual Record build_record(const CompiledKernel&) const { return {}; }
    virtual std::vector<Entry> build_entries(const CompiledKernel&) const { return {}; }
    /// How a plan lies in shared memory and registers: the buffers, and which thread has which elements; for the head of an emitted file.
    virtual std::vector<std::string> story(const Plan&) const { return {}; }
    /// What an emitted program fills a tensor's element `i` with, in CUDA; empty: random numbers of the tensor's type.
    virtual std::string filled_with(const Problem&, const TensorInfo&) const { return {}; }
    /// Nothing: an emitted program has no check.
    virtual std::optional<PlainLoop> plain_loop(const Problem&) const { return {}; }
};

/// The device half of one of operations().
const DeviceOperation& on_device(const Operation& operation);

/// Compiles a plan of any operation, as its DeviceOperation does.
CompiledKernel compile(const Plan& plan, const CompileOptions& options = {});
/// The first buildable plan that the compiler takes as it was planned, by `make` where it is given. What it said of those before is added to
/// `notes`, a line each. Throws RequestError where no plan can be built, and what the compiler said of the first where it takes none.
CompiledKernel compile_first(const PlanSet& plans, std::vector<std::string>& notes, const std::function<CompiledKernel(const Plan&)>& make = {});
/// What is said of a plan that the compiler refused, and behind which the next one was taken.
std::string refused_plan(const Plan& plan, const Error& error);
/// Compiles one plan, by `make` where it is given, with a fault as an outcome.
CompiledOutcome compile_outcome(const Plan& plan, const std::function<CompiledKernel(const Plan&)>& make = {});
/// Compiles all, in up to `threads` threads (0: one a core), by `make` where it is given; outcomes in the order of `plans`.
std::vector<CompiledOutcome> compile_all(std::span<const Plan> plans, unsigned threads = 0,
                                         const std::function<CompiledKernel(const Plan&)>& make = {});

}  // namespace rooftile
