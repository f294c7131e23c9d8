// sm80_gemm as the planning stations see it: cp.async, ldmatrix, mma.sync. Where there is no cp.async the same name stands
// for a kernel that is planned alone.
#include <fmt/core.h>

#include "kernels/gemm/sm80_image_arguments.hpp"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/gemm/sm90_space.hpp"

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
        if (auto why = refuse_packed_weights(problem, request)) return why;
        // Of a machine without cp.async the kernel is planned, no more.
        if (auto why = machine.lacks("cp_async") ? refuse_more_than_a_product(problem) : refuse_sm90_alone(problem)) return why;
        if (auto why = refuse_image(problem)) return why;
        if (auto why = refuse_knobs(*this, machine, without_packing(problem, request))) return why;
        return machine.lacks("cp_async") ? refuse_copies(problem) : std::nullopt;
    }

    bool is_behind_unpacking() const override { return true; }
    PackedOperands packs(const GemmProblem& problem, const GemmRequest&) const override { return {problem.narrow.has_value(), problem.is_unpacked()}; }
    bool gathers() const override { return true; }
    /// Where the copy engine cannot have the image, or half of its steps, which are of one tap, is empty and there is another tap to
    /// fill them with. Elsewhere the kernels do not compete by their times: those of sm80_gemm are up to 1.5 times too short on
    /// Hopper (docs/facts.md 349).
    bool joins(const GemmProblem& p) const override {
        if (!p.image || p.a_major != Major::k || p.b_major != Major::k) return false;
        const bool few = 2 * p.image->channels <= sm90::k_span(p.a_type) && p.image->taps() > 1;
        return few || !image_load_obstacle(*p.image, Sm80GemmConfig::element_bytes).empty();
    }
    bool is_flattered(const GemmProblem& problem) const override { return sm80_config(problem, {}).narrow_copies(); }

    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const override {
        if (hw.async_copy) Sm80GemmFamily{}.enumerate(hw, problem, request, visitor);
        else MmaOnlyFamily{}.enumerate(hw, problem, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const override {
        return hw.async_copy ? Sm80GemmFamily{}.examine(hw, problem, candidate)
                             : MmaOnlyFamily{}.examine(hw, problem, candidate);
    }

    void complete(const GemmContext& context, const Kept&, GemmConfig& config) const override {
        config.programmatic_launch = false;
        config.pack_a = context.packed.a, config.pack_b = context.packed.b;
    }
    std::string why_not(const Machine& machine, const GemmProblem& problem, const GemmConfig& config,
                        const GemmHardware& hw) const override {
        if (!hw.async_copy) return "no kernel is written for machines without cp.async";
        if (machine.arch.empty()) return "the machine names no architecture, so no code can be made for it";
        return order_obstacle(problem, config);
    }
    std::vector<std::string> notes(const GemmProblem& problem, const GemmRequest&, const GemmHardware& hw) const override {
        std::vector<std::string> out;
        if (problem.is_unpacked()) out = weight_notes(problem.as_asked(), hw);
        const Sm80GemmConfig c = sm80_config(problem, {});
        if (!hw.async_copy) out.emplace_back("cp.async is infeasible here: the next tile waits in registers, two stages at most");
        else if (c.narrow_copies())
            out.push_back(fmt::format("lda = {}, ldb = {}: A is copied {} B at a time and B {}, where 16 are the widest. What that "
                                      "costs is not in the predicted time; pad both to multiples of {} elements",
                                      problem.lda, problem.ldb, c.a_copy_bytes, c.b_copy_bytes, copy_elements));
        return out;
    }

    GemmWords words(const GemmCandidate& c) const override {
        GemmWords words = plain_words(c);
        if (c.stages_limit == min_stages || c.tile_k % (2 * Sm80GemmConfig::mma_k) != 0) return words;
        words.tile_k = &gemm_formula::tile_k_sm80;
        words.registers_source = "two k-steps of fragments; addresses, bounds and loop state, bisected with ptxas";
        words.reserved_source = "none: C leaves from registers";
        return words;
    }
    void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                         Derivation& steps) const override {
        write_whole_k(context, kept, steps);
        explain_in_front(context, steps);
        if (context.hw.async_copy) explain_kernel(sm80_config(context.problem, config), steps);
    }

  private:
    static std::optional<Refusal> refuse_image(const GemmProblem& p) {
        if (!p.image) return std::nullopt;
        if (p.a_major != Major::k || p.b_major != Major::k)
            return Refusal{Reason::instruction, "an image on the right, or filters whose taps are met in reverse, are sm90_gemm's so far, whose copy engine finds the pixels", {}, {}};
        if (std::string why = image_gather_obstacle(*p.image, Sm80GemmConfig::element_bytes, Sm80ImageArguments::most_taps); !why.empty())
            return Refusal{Reason::alignment, std::move(why), {}, {}};
        if (p.batch == 1) return std::nullopt;
        return Refusal{Reason::instruction, "of an image there is one product", {}, {}};
    }
    static void explain_kernel(const Sm80GemmConfig& c, Derivation& steps) {
        steps.add(gemm_formula::warps_m, {given("warps", c.warps(), "", "4 * consumer_warpgroups")}, c.warps_m,
                  fmt::format("{} x {} warps of {}x{}", c.warps_m, c.warps_n, c.warp_m(), c.warp_n()));
        steps.add(gemm_formula::copy_bytes,
                  {given("A", c.a_copy_bytes, "B", "lda"), given("B", c.b_copy_bytes, "B", "ldb")},
                  std::min(c.a_copy_bytes, c.b_copy_bytes),
                  c.partial_copies ? "some reach past the end of a row" : "none reaches past the end of a row");
        steps.add(gemm_formula::persistent, {given("ctas_per_sm", c.ctas_per_sm, "", "this plan")}, c.persistent,
                  c.persistent ? "the next tile's loads begin while this one is stored"
                               : "another CTA computes while this one fills its ring or stores");
    }
};

}  // namespace

const GemmKernel& sm80_gemm() {
    static const Sm80Gemm kernel;
    return kernel;
}

}  // namespace rooftile
