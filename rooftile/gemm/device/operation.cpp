// GEMM's half that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/gemm/apart.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/device/plain_loop.hpp"
#include "rooftile/gemm/device/trial.hpp"
#include "rooftile/gemm/device/two_gemms.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/measure/composed.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

class GemmRunnable final : public Runnable {
  public:
    explicit GemmRunnable(Kernel kernel) : kernel_(std::move(kernel)) {}

    KernelCode code() const override {
        return {.name = kernel_.name_expression(),
                .lowered_name = kernel_.lowered_name(),
                .arch = kernel_.arch(),
                .source = kernel_.plan().problem.epilogue ? gemm_code(kernel_.plan(), Ablation::nothing)->source().text : std::string(),
                .cubin = kernel_.cubin(),
                .hash = kernel_.hash(),
                .entry = kernel_.entry(),
                .from_cache = kernel_.from_cache(),
                .compile_seconds = kernel_.compile_seconds()};
    }
    std::string ptx() const override { return kernel_.ptx(); }
    std::size_t workspace_bytes() const override { return kernel_.workspace_bytes(); }
    std::int64_t shared_bytes() const override { return kernel_.plan().resources.shared_bytes.value_or(0); }
    void load() const override { kernel_.load(); }
    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        kernel_.launch(stream, tensors, workspace);
    }
    const Kernel& kernel() const { return kernel_; }

  private:
    Kernel kernel_;
};

constexpr std::int64_t few_rows = 128;
constexpr double short_us = 5;

/// The plan with plain launches, where those of the plan are not and it has few rows or is short; else empty.
std::optional<Plan> launched_plainly(const Plan& plan, const Machine* machine) {
    GemmPlan typed = plan.own.as<GemmPlan>();
    if (typed.config.epilogue_apart) return std::nullopt;
    const bool is_short = typed.problem.m < few_rows || (plan.time_us && *plan.time_us < short_us);
    if (!typed.config.programmatic_launch || !is_short) return std::nullopt;
    typed.config.programmatic_launch = false;
    Plan plain = plan;
    plain.time_us.reset();
    if (const auto run = machine ? evaluate_plan(*machine, typed) : std::nullopt; run && std::isfinite(run->time.seconds))
        plain.time_us = run->time.seconds * 1e6;
    plain.own = Own::of(std::move(typed));
    return plain;
}

class PreparedGemm final : public PreparedTrial {
  public:
    explicit PreparedGemm(const GemmProblem& problem) : problem_(problem) {}
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>&) override { return gemm_trial(problem_, bench); }

  private:
    GemmProblem problem_;
};

class GemmOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override {
        const auto& own = plan.own.as<GemmPlan>();
        if (!own.config.epilogue_apart) return compiled(plan, rooftile::compile(own, options));
        return {plan, compiled_parts(plan, options)};
    }
    Source source(const Plan& plan) const override {
        if (!plan.parts.empty()) return source(plan.parts.front());
        return gemm_code(plan.own.as<GemmPlan>(), Ablation::nothing)->source();
    }
    std::string code_key(const Plan& plan) const override {
        return plan.parts.empty() ? rooftile::code_key(plan.own.as<GemmPlan>()) : code_key(plan.parts.front());
    }
    const Facet* facet(const std::type_info& type) const override { return type == typeid(TwoProductsOnDevice) ? &two_gemms_on_device() : nullptr; }
    /// One cubin serves every M of its majors.
    std::optional<CompiledKernel> at(const CompiledKernel& compiled, std::string_view key, std::int64_t value) const override {
        const auto* runnable = dynamic_cast<const GemmRunnable*>(&compiled.runnable());
        const bool of_rows = key == "m" && compiled.plan().problem.own.as<GemmProblem>().batch == 1;
        std::optional<Kernel> kernel = of_rows && runnable ? runnable->kernel().with_rows(value) : std::nullopt;
        if (!kernel) return std::nullopt;
        const Plan& own = compiled.plan();
        Plan plan;
        plan.operation = own.operation;
        plan.problem = {own.operation, Own::of(kernel->plan().problem)};
        plan.rank = own.rank;
        plan.buildable = true;
        plan.launches = own.launches;
        plan.own = Own::of(kernel->plan());
        return compiled.of(std::move(plan), std::make_shared<const GemmRunnable>(std::move(*kernel)));
    }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions&, unsigned) const override {
        return std::make_unique<PreparedGemm>(problem.own.as<GemmProblem>());
    }
    bool has_parts() const override { return true; }
    /// Where launches are a large part of the time: without what only launches that follow each other have.
    std::vector<OtherLaunch> other_launches(const Plan& plan, const Machine* machine) const override {
        std::optional<Plan> plain = launched_plainly(plan, machine);
        if (!plain) return {};
        Kernel kernel = rooftile::compile(plain->own.as<GemmPlan>());
        std::vector<OtherLaunch> out;
        out.push_back({"pdl_off", "without programmatic launch", compiled(std::move(*plain), std::move(kernel))});
        return out;
    }
    std::vector<std::string> story(const Plan& plan) const override {
        return gemm_story(plan.parts.empty() ? plan.own.as<GemmPlan>() : plan.parts.front().own.as<GemmPlan>());
    }
    /// Packed weights begin with what they are packed for; other bytes are small scales and weights.
    std::string filled_with(const Problem& problem, const TensorInfo& tensor) const override {
        const GemmProblem& p = problem.own.as<GemmProblem>();
        if (!p.is_quantised() || tensor.name != "b") return {};
        return fmt::format("i < 4 ? {}u >> 8 * i & 255 : i < 8 ? {} >> 8 * (i - 4) & 255 : i < 12 ? {} >> 8 * (i - 8) & 255 : uniform(i, 1) < 0",
                           p.quantised.fingerprint(), p.n, p.k);
    }
    std::optional<PlainLoop> plain_loop(const Problem& problem) const override { return gemm_plain_loop(problem.own.as<GemmProblem>()); }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        const Resources& r = kernel.plan().own.as<GemmPlan>().resources;
        const auto number = [](const auto& value) { return value ? number_text(double(*value)) : std::string("?"); };
        std::vector<Entry> out = {{"accumulators", number(r.accumulator_registers) + " a thread", ""}};
        if (r.producer_registers && r.consumer_registers)
            out.push_back({"setmaxnreg", fmt::format("producer {}, consumers {}", *r.producer_registers,
                                                     *r.consumer_registers),
                           "registers a thread, once roles part"});
        return out;
    }
};

}  // namespace

const DeviceOperation& gemm_on_device();
const DeviceOperation& gemm_on_device() {
    static const GemmOnDevice operation;
    return operation;
}

CompiledKernel compiled(Plan plan, Kernel kernel) {
    return {std::move(plan), std::make_shared<const GemmRunnable>(std::move(kernel))};
}

MeasureTask gemm_task(const std::vector<GemmPlan>& plans) { return task_of(gemm_operation(), plans); }

MeasureRun measure(const std::vector<GemmPlan>& plans, const MeasureOptions& options) {
    std::vector<MeasureTask> tasks;
    for (std::size_t begin = 0, end = 0; begin < plans.size(); begin = end) {
        while (end < plans.size() && plans[end].problem == plans[begin].problem) ++end;
        tasks.push_back(gemm_task({plans.begin() + std::ptrdiff_t(begin), plans.begin() + std::ptrdiff_t(end)}));
    }
    return measure(std::move(tasks), options);
}

}  // namespace rooftile
