// The half of fused expressions that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include "rooftile/emit/plain_graph.hpp"
#include "rooftile/fuse/device/accesses.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/fuse/device/trial.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/expression_reference.hpp"

namespace rooftile {
namespace {

class FuseKernelRunnable final : public Runnable {
  public:
    explicit FuseKernelRunnable(FuseKernel kernel) : kernel_(std::move(kernel)) {}

    KernelCode code() const override {
        return {.name = kernel_.name(),
                .lowered_name = kernel_.entry().name,
                .arch = kernel_.arch(),
                .source = kernel_.text(),
                .cubin = kernel_.cubin(),
                .hash = kernel_.hash(),
                .entry = kernel_.entry(),
                .from_cache = kernel_.from_cache(),
                .compile_seconds = kernel_.compile_seconds()};
    }
    std::string ptx() const override { return kernel_.ptx(); }
    std::size_t workspace_bytes() const override { return kernel_.workspace_bytes(); }
    std::int64_t shared_bytes() const override {
        return kernel_.entry().static_shared_bytes + std::int64_t(fuse_launch(kernel_.plan(), 1).shared_bytes);
    }
    void load() const override { kernel_.load(); }
    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        const std::size_t inputs = kernel_.plan().problem.inputs.size(), outputs = kernel_.plan().problem.outputs.size();
        if (tensors.size() != inputs + outputs)
            throw RequestError(fmt::format("{} tensors are given; the expression has {} inputs and {} outputs",
                                           tensors.size(), inputs, outputs));
        const void* const* in = tensors.data();  // a launch allocates nothing
        kernel_.launch(stream, {in, inputs}, tensors.subspan(inputs), workspace);
    }

  private:
    FuseKernel kernel_;
};

class PreparedFuse final : public PreparedTrial {
  public:
    PreparedFuse(const ExpressionGraph& problem, const MeasureOptions& options, unsigned threads) : problem_(problem) {
        // What the trial asks for: some seconds where no cache has it.
        if (options.verify) compile_expression_reference(Driver::instance().device(options.device).arch());
        const Machine* machine = options.planned_for();
        if (!options.time || !options.baseline || !machine) return;
        try {
            chain_.chain = unfused_kernels(problem_);
            chain_.kernels = compile_all(unfused_plans(*machine, chain_.chain), threads);
        } catch (const Error& error) {
            chain_.chain.clear();
            chain_.missing = error.what();
        }
    }
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>&) override {
        return fuse_trial(problem_, chain_, bench);
    }

  private:
    ExpressionGraph problem_;
    PreparedChain chain_;
};

class FuseOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override {
        return {plan, std::make_shared<const FuseKernelRunnable>(rooftile::compile(plan.own.as<FusePlan>(), options))};
    }
    Source source(const Plan& plan) const override { return fuse_source(plan.own.as<FusePlan>()); }
    std::optional<PlainLoop> plain_loop(const Problem& problem) const override {
        constexpr double most_steps = 0x1p26;  // of one thread, seconds
        PlainLoop loop = emit::plain_graph(problem.own.as<ExpressionGraph>());
        return loop.steps <= most_steps ? std::optional(std::move(loop)) : std::nullopt;
    }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options,
                                           unsigned threads) const override {
        return std::make_unique<PreparedFuse>(problem.own.as<ExpressionGraph>(), options, threads);
    }
    Record build_record(const CompiledKernel& kernel) const override {
        const Accesses a = accesses_of(kernel.ptx());
        return {{"launch", launch_record(kernel.plan().own.as<FusePlan>(), kernel.code().entry.name)},
                {"global_loads", Record{{"all", a.loads}, {"of_16_bytes", a.loads_16}}},
                {"global_stores", Record{{"all", a.stores}, {"of_16_bytes", a.stores_16}}}};
    }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        const Accesses a = accesses_of(kernel.ptx());
        const auto planned = kernel.plan().own.as<FusePlan>().resources.registers;
        std::vector<Entry> out = {
            {"global loads", fmt::format("{} of 16 B, {} others", a.loads_16, a.loads - a.loads_16),
             "instructions of the code"},
            {"global stores", fmt::format("{} of 16 B, {} others", a.stores_16, a.stores - a.stores_16), ""}};
        if (planned) out.insert(out.begin(), {"planned registers", fmt::format("{} a thread", *planned), ""});
        return out;
    }
};

}  // namespace

const DeviceOperation& fuse_on_device();
const DeviceOperation& fuse_on_device() {
    static const FuseOnDevice operation;
    return operation;
}

MeasureRun measure(const std::vector<FusePlan>& plans, const Machine& machine, MeasureOptions options) {
    if (plans.empty()) throw RequestError("there is no plan to measure");
    options.target = &machine;
    return measure(std::vector<MeasureTask>{task_of(fuse_operation(), plans)}, options);
}

}  // namespace rooftile
