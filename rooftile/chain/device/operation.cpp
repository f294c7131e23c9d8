// The half of chains that needs a kernel compiler or a GPU, as the stations see it.
#include <fmt/core.h>

#include "rooftile/chain/device/kernel.hpp"
#include "rooftile/chain/device/trial.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/tiled/device/back_to_back_story.hpp"

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

/// Every hidden number of a row, rounded as it is stored, and what the second product makes of them.
PlainLoop chain_loop(const ChainProblem& p) {
    PlainLoop out;
    out.headers = {"kernels/expression/meaning.hpp"};
    const bool gated = p.act == ChainAct::swiglu, bf16 = p.type == Type::bf16;
    const char* act = gated || p.act == ChainAct::silu ? "exact_silu" : p.act == ChainAct::relu ? "exact_relu" : "exact_gelu";
    out.text = fmt::format(R"(__device__ Bounded expected_y(const Tensors& t, long long e) {{
    const long long i = e / {0}, j = e % {0};
    double sum = 0, squares = 0, magnitude = 0;
    for (long long f = lane(); f < {2}; f += 32) {{
        double {3};
        for (int d = 0; d < {0}; ++d) {{
            const double x = number(t.x, i * {0} + d);
            hidden += x * number(t.w1, f * {0} + d);
{4}        }}
        const double stored = rounded_to(meaning::{5}(hidden, 0){6}, Element::{7}), term = stored * number(t.w2, j * {2} + f);
        sum += term, squares += term * term, magnitude += fabs(term);
    }}
    sum = warp_sum(sum) + {1}, squares = warp_sum(squares), magnitude = warp_sum(magnitude);
    // A hidden number may be rounded the other way; its sum is off by some units of fp32.
    return {{sum, {8} * 6 * sqrt(squares) + 0x1p-12 * sqrt(squares) + 0x1p-19 * magnitude}};
}}
)",
                           p.d, p.residual ? fmt::format("number(t.x, e)") : "0", p.ff, gated ? "hidden = 0, up = 0" : "hidden = 0",
                           gated ? fmt::format("            up += x * number(t.w1, ({} + f) * {} + d);\n", p.ff, p.d) : "", act,
                           gated ? " * up" : "", bf16 ? "bf16" : "fp16", bf16 ? "0x1p-9" : "0x1p-12");
    out.steps = double(p.ff) * double(p.d) * (gated ? 2 : 1) / 32;  // a lane's
    return out;
}

class ChainOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override { return {plan, compiled_chain(plan, options)}; }
    Source source(const Plan& plan) const override { return chain_source(plan); }
    std::string code_key(const Plan& plan) const override { return chain_code_key(plan); }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options, unsigned) const override {
        return std::make_unique<PreparedChain>(problem, options);
    }
    std::vector<std::string> story(const Plan& plan) const override {
        const auto& own = plan.own.as<ChainPlan>();
        if (own.config.form == ChainForm::on_chip) return back_to_back_story(kernel_config(own).shape(), {"X", "W1", "W2", "Y"});
        std::vector<std::string> out;
        for (const Plan& part : plan.parts)
            for (const std::string& line : on_device(*part.operation).story(part))
                out.push_back(fmt::format("{}: {}", part.operation->label(part), line));
        return out;
    }
    std::optional<PlainLoop> plain_loop(const Problem& problem) const override { return chain_loop(problem.own.as<ChainProblem>()); }
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
