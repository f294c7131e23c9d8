// The half of convolutions that needs a kernel compiler or a GPU: the product's, beside copies of as many bytes.
#include <fmt/core.h>

#include "rooftile/conv/device/direct_kernel.hpp"
#include "rooftile/conv/device/packed_image.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/measure/copy_baseline.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/tensor_figures.hpp"

namespace rooftile {
namespace {

const Plan& product_of(const Plan& plan) { return *plan.own.as<ConvPlan>().product; }
bool is_direct(const Plan& plan) { return plan.own.as<ConvPlan>().direct.has_value(); }
const ConvProblem& typed(const Problem& problem) { return problem.own.as<ConvProblem>(); }
const DeviceOperation& products() { return on_device(*image_products().operation); }

/// The product's code as a plan of the convolution runs it.
class ConvRunnable final : public Runnable {
  public:
    explicit ConvRunnable(CompiledKernel product) : product_(std::move(product)) {}
    KernelCode code() const override { return product_.code(); }
    std::string ptx() const override { return product_.ptx(); }
    std::size_t workspace_bytes() const override { return product_.workspace_bytes(); }
    std::int64_t shared_bytes() const override { return product_.shared_bytes(); }
    void load() const override { product_.load(); }
    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override { product_.launch(stream, tensors, workspace); }
    const CompiledKernel& product() const { return product_; }

  private:
    CompiledKernel product_;
};

class ConvTrial final : public Trial {
  public:
    /// `product`: null of a direct one.
    ConvTrial(const Problem& problem, PreparedTrial* product, Bench& bench, std::vector<Timing>& timings)
        : problem_(typed(problem)), bench_(bench), options_(bench.options()) {
        if (product) product_ = product->begin(bench, timings);
        else direct_ = direct_reference(bench.kernels(), problem_);
        if (problem_.channels_first) channels_first_ = channels_first_reference(problem_, of_packed());
    }

    const Reference& reference() const override { return channels_first_ ? *channels_first_ : of_packed(); }
    std::vector<TimedWork> add_baselines(std::span<Measurement* const>, const TensorSets&, std::vector<std::string>&, std::vector<Timing>&) override {
        std::vector<TimedWork> works;
        if (options_.baseline) copied_ = CopyBaseline::of(bench_, std::int64_t(problem_.least_bytes()));
        if (copied_) works.push_back(copied_->work(bench_.kernels()));
        return works;
    }
    void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) override {
        if (!copied_) return;
        baselines_.push_back(copied_->baseline(bench_, timed[0], notes));
        copied_.reset();  // counting needs memory too
    }
    void set_figures(Measurement& row, std::size_t, const TimedResult& timed, std::vector<std::string>&) override {
        if (set_tensor_figures(row, bench_, problem_.flops() * problem_.filtered().share_inside(), problem_.least_bytes(), problem_.type, timed)) row.baselines = baselines_;
    }
    void finish(Measurement& row, std::size_t) override { row.show_derivation = options_.explain; }

  private:
    const Reference& of_packed() const { return product_ ? product_->reference() : *direct_; }

    ConvProblem problem_;
    Bench& bench_;
    const MeasureOptions& options_;
    std::unique_ptr<Trial> product_;  ///< whose reference serves
    std::unique_ptr<Reference> direct_, channels_first_;
    std::optional<CopyBaseline> copied_;
    std::vector<Baseline> baselines_;
};

class PreparedConv final : public PreparedTrial {
  public:
    PreparedConv(const Problem& problem, const MeasureOptions& options, unsigned threads)
        : problem_(problem) {
        if (typed(problem).product.operation) product_ = products().prepare(typed(problem).product, options, threads);
    }
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>& timings) override {
        return std::make_unique<ConvTrial>(problem_, product_.get(), bench, timings);
    }

  private:
    Problem problem_;
    std::unique_ptr<PreparedTrial> product_;
};

class ConvOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override {
        if (is_direct(plan) && !plan.buildable) throw RequestError("plan " + std::to_string(plan.rank) + " cannot be built: " + plan.why_not);
        std::shared_ptr<const Runnable> runnable;
        if (is_direct(plan)) runnable = compiled_direct(plan, options);
        else runnable = std::make_shared<const ConvRunnable>(products().compile(product_of(plan), options));
        return {plan, typed(plan.problem).channels_first ? packed_first(plan, std::move(runnable), options) : std::move(runnable)};
    }
    Source source(const Plan& plan) const override {
        Source source = is_direct(plan) ? direct_source(plan) : products().source(product_of(plan));
        if (!typed(plan.problem).channels_first) return source;
        Source packing = channels_last_source(plan.own.as<ConvPlan>().arch);
        source.text += packing.text, source.name_expressions.push_back(packing.name_expressions[0]);
        return source;
    }
    std::string code_key(const Plan& plan) const override {
        return is_direct(plan) ? direct_source(plan).name_expressions.front() : products().code_key(product_of(plan));
    }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options, unsigned threads) const override {
        return std::make_unique<PreparedConv>(problem, options, threads);
    }
    bool has_parts() const override { return false; }
    std::vector<std::string> story(const Plan& plan) const override { return is_direct(plan) ? std::vector<std::string>{} : products().story(product_of(plan)); }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        if (is_direct(kernel.plan())) return {};
        return products().build_entries(static_cast<const ConvRunnable&>(behind_packing(kernel.runnable())).product());
    }
};

}  // namespace

const DeviceOperation& conv_on_device();
const DeviceOperation& conv_on_device() {
    static const ConvOnDevice operation;
    return operation;
}

}  // namespace rooftile
