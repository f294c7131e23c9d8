// GEMM's half that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include <cmath>

#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/device/trial.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/apart.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/operation.hpp"
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

/// A product, and a kernel of the expression behind it, on one stream. Tensors are those of both in one; between the two the sums lie in
/// the workspace.
class ApartGemm final : public Runnable {
  public:
    ApartGemm(const GemmProblem& problem, CompiledKernel product, CompiledKernel behind)
        : problem_(problem), product_(std::move(product)), behind_(std::move(behind)),
          between_(std::size_t(between_bytes(product_.plan().own.as<GemmPlan>().problem))) {}

    KernelCode code() const override {
        KernelCode code = product_.code();
        const KernelCode& other = behind_.code();
        code.name += ", then " + other.name;
        code.source = other.source;
        code.from_cache = code.from_cache && other.from_cache;
        code.compile_seconds += other.compile_seconds;
        return code;
    }
    std::string ptx() const override { return product_.ptx() + behind_.ptx(); }
    std::size_t workspace_bytes() const override { return between_ + aligned(product_.workspace_bytes()) + behind_.workspace_bytes(); }
    std::int64_t shared_bytes() const override { return std::max(product_.shared_bytes(), behind_.shared_bytes()); }
    void load() const override { product_.load(), behind_.load(); }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        if (!workspace) throw RequestError("the workspace is null; sums lie there between the product and its epilogue");
        char* const behind = static_cast<char*>(workspace) + between_;
        void* const of_product[] = {tensors[0], tensors[1], workspace};
        product_.launch(stream, of_product, product_.workspace_bytes() > 0 ? behind : nullptr);
        // Sums, one tensor or gates and ups one behind the other; then what the epilogue reads, and its results.
        constexpr std::size_t most = 64;
        void* of_behind[most];
        std::size_t count = 0;
        for (std::size_t i = 0; i < problem_.epilogue->sums(); ++i)
            of_behind[count++] = static_cast<char*>(workspace) + i * std::size_t(problem_.m * problem_.result_n()) * sizeof(float);
        for (void* tensor : tensors.subspan(2)) {
            if (count == most) throw RequestError(fmt::format("{} tensors are given; at most {} are taken here", tensors.size(), most));
            of_behind[count++] = tensor;
        }
        behind_.launch(stream, {of_behind, count}, behind_.workspace_bytes() > 0 ? behind + aligned(product_.workspace_bytes()) : nullptr);
    }

  private:
    static std::size_t aligned(std::size_t bytes) {
        constexpr std::size_t alignment = 256;
        return (bytes + alignment - 1) / alignment * alignment;
    }
    GemmProblem problem_;
    CompiledKernel product_, behind_;
    std::size_t between_;
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
        CompiledKernel product = rooftile::compile(plan.parts.at(0), options), behind = rooftile::compile(plan.parts.at(1), options);
        return {plan, std::make_shared<const ApartGemm>(own.problem, std::move(product), std::move(behind))};
    }
    Source source(const Plan& plan) const override {
        if (!plan.parts.empty()) return source(plan.parts.front());
        return gemm_code(plan.own.as<GemmPlan>(), Ablation::nothing)->source();
    }
    std::string code_key(const Plan& plan) const override {
        return plan.parts.empty() ? rooftile::code_key(plan.own.as<GemmPlan>()) : code_key(plan.parts.front());
    }
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
