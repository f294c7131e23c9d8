// The half of chains that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include "rooftile/chain/device/kernel.hpp"
#include "rooftile/chain/device/trial.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

class PreparedChain final : public PreparedTrial {
  public:
    PreparedChain(const Problem& problem, const MeasureOptions& options) : problem_(problem) {
        if (options.verify) compile_chain_reference(Driver::instance().device(options.device).arch());
    }
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>&) override { return chain_trial(problem_, bench); }

  private:
    Problem problem_;
};

class ChainOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override { return {plan, compiled_chain(plan, options)}; }
    Source source(const Plan& plan) const override { return chain_source(plan); }
    std::string code_key(const Plan& plan) const override { return chain_code_key(plan); }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options, unsigned) const override {
        return std::make_unique<PreparedChain>(problem, options);
    }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        const ChainPlan& plan = kernel.plan().own.as<ChainPlan>();
        std::vector<Entry> out = {{"form", std::string(name_of(plan.config.form)), ""}};
        if (plan.producer_registers && plan.consumer_registers)
            out.push_back({"setmaxnreg", fmt::format("producer {}, consumers {}", *plan.producer_registers, *plan.consumer_registers),
                           "registers a thread, once roles part"});
        return out;
    }
};

}  // namespace

const DeviceOperation& chain_on_device();
const DeviceOperation& chain_on_device() {
    static const ChainOnDevice operation;
    return operation;
}

}  // namespace rooftile
