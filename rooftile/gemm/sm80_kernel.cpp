// sm80_gemm as the planning stations see it: cp.async, mma.sync.
#include "rooftile/gemm/choices.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plain_space.hpp"

namespace rooftile {
namespace {

class Sm80Gemm final : public GemmKernel {
  public:
    std::string_view name() const override { return "sm80_gemm"; }
    std::string instruction(const Machine&, Type) const override { return "mma_sync"; }

    std::string missing_on(const Machine& machine) const override {
        return machine.has("mma_sync") ? "" : "mma_sync";
    }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& problem,
                                   const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, problem)) return why;
        if (auto why = refuse_hopper_alone(machine, request)) return why;
        return refuse_copies(problem);
    }

    void walk(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
              GemmVisitor& visitor) const override {
        Sm80GemmFamily{}.walk(hw, problem, request, visitor);
    }
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate,
                 Footprint& footprint) const override {
        return Sm80GemmFamily{}.examine(hw, problem, candidate, footprint);
    }

    std::string why_not(const GemmProblem&, const GemmConfig&, const GemmHardware&) const override {
        return "the cp.async + mma.sync kernel is not written yet";
    }
    std::vector<std::string> notes(const GemmProblem&, const GemmHardware& hw) const override {
        if (hw.async_copy) return {};
        return {"cp.async is infeasible here: the next tile waits in registers, two stages at most"};
    }

    GemmWords words(const GemmCandidate&, const Footprint& f) const override { return plain_words(f); }
    void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig&,
                         Derivation& steps) const override {
        write_whole_k(context, kept, steps);
    }
};

}  // namespace

const GemmKernel& sm80_gemm() {
    static const Sm80Gemm kernel;
    return kernel;
}

}  // namespace rooftile
