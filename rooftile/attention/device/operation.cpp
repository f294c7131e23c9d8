// Attention's half that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/device/trial.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

class PreparedAttention final : public PreparedTrial {
  public:
    PreparedAttention(const AttentionProblem& problem, const MeasureOptions& options) : problem_(problem) {
        if (options.verify) compile_attention_reference(problem, Driver::instance().device(options.device).arch());
    }
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>&) override { return attention_trial(problem_, bench); }

  private:
    AttentionProblem problem_;
};

class AttentionOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override {
        return {plan, compiled_attention(plan.own.as<AttentionPlan>(), options)};
    }
    Source source(const Plan& plan) const override { return attention_source(plan.own.as<AttentionPlan>()); }
    std::string code_key(const Plan& plan) const override { return rooftile::code_key(plan.own.as<AttentionPlan>()); }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options, unsigned) const override {
        return std::make_unique<PreparedAttention>(problem.own.as<AttentionProblem>(), options);
    }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        const AttentionResources& r = kernel.plan().own.as<AttentionPlan>().resources;
        if (!r.producer_registers || !r.consumer_registers) return {};
        return {{"setmaxnreg", fmt::format("producer {}, consumers {}", *r.producer_registers, *r.consumer_registers),
                 "registers a thread, once roles part"}};
    }
};

}  // namespace

const DeviceOperation& attention_on_device();
const DeviceOperation& attention_on_device() {
    static const AttentionOnDevice operation;
    return operation;
}

}  // namespace rooftile
