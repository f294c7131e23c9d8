// The kernel of a machine that names no instruction: the three inequalities alone [M1-M8]. Never built.
#include <cmath>

#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/derivation_writer.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plain_space.hpp"

namespace rooftile {
namespace {

class GenericGemm final : public GemmKernel {
  public:
    std::string_view name() const override { return "generic"; }
    std::string instruction(const Machine& machine, Type type) const override {
        // Who states the GPU's peak and no instruction's means the fastest's: that of a slower one says nothing then.
        for (const char* family : {"generic", "wgmma", "mma_sync"})
            if (machine.find(rate_key(family, rate_name_of(type), "fp32"))) return family;
        return "generic";
    }

    std::string missing_on(const Machine&) const override { return {}; }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& problem,
                                   const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, problem)) return why;
        if (auto why = refuse_more_than_a_product(problem)) return why;
        return refuse_knobs(*this, machine, request);
    }

    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const override {
        GenericGemmFamily{}.enumerate(hw, problem, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const override {
        return GenericGemmFamily{}.examine(hw, problem, candidate);
    }

    std::string why_not(const Machine&, const GemmProblem&, const GemmConfig&, const GemmHardware&) const override {
        return "the machine names no architecture, so no kernel is known for it";
    }

    GemmWords words(const GemmCandidate& f) const override { return plain_words(f); }
    void explain_capacity(DerivationWriter& w) const override {
        const GemmCandidate& f = w.candidate();
        w.steps.add(gemm_formula::stages_enough,
                    {w.steps.fact("dram.latency"), Derivation::given("T_load", known_or(f.stage_bytes / l2_rate(w), 0), "cycles", "D / share_l2; 0 where that is unknown"),
                     w.step("stages_max", std::isnan(f.shared_limit) ? unknown_number : f.stages_max(1 << 20), "stages")},
                    f.stages_enough, "no more are taken, however many fit");
        if (std::isnan(w.hw().shared_per_cta)) return;
        const double one = std::floor(w.hw().shared_per_cta / f.stage_bytes),
                     two = std::floor(w.hw().shared_per_cta / (2.0 * f.stage_bytes));
        const double by_registers = std::floor(w.hw().registers_per_sm / (double(f.registers) * f.threads));
        w.steps.add(
            gemm_formula::ctas_by_shared,
            {w.steps.fact("shared.per_cta"), w.config("stages", min_stages), w.step("stage_bytes", f.stage_bytes, "B")}, two,
            fmt::format(
                "{:.0f} blocks an SM at one stage, {:.0f} at two; registers allow {}", one, two,
                std::isnan(by_registers) ? "an unknown number" : fmt::format("{:.0f}", by_registers)));
        w.steps.add(gemm_formula::ctas_by_registers,
                    {w.steps.fact("sm.registers"), w.step("registers_per_thread", f.registers, "registers"), w.config("threads", f.threads)},
                    by_registers, unless_unknown(by_registers, "blocks an SM, as far as registers go"));
    }
    void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig&,
                         Derivation& steps) const override {
        write_whole_k(context, kept, steps);
    }
};

}  // namespace

const GemmKernel& generic_gemm() {
    static const GenericGemm kernel;
    return kernel;
}

}  // namespace rooftile
