// sm80_few_gemm as the planning stations see it: products of few rows, whose B is read once and as it lies.
#include <fmt/core.h>

#include <cmath>

#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/gemm/sm80_few_space.hpp"

namespace rooftile {
namespace {

std::optional<Refusal> refuse_many_rows(const GemmProblem& p) {
    if (p.m <= Sm80FewConfig::most_rows) return std::nullopt;
    return Refusal{Reason::instruction,
                   fmt::format("m = {}: sm80_few_gemm takes up to {} rows; take another kernel", p.m, Sm80FewConfig::most_rows),
                   double(p.m), double(Sm80FewConfig::most_rows)};
}

/// One row of tiles has one order, and nothing is read again.
std::optional<Refusal> refuse_reverse(const GemmRequest& request) {
    if (!request.reverse.value_or(false)) return std::nullopt;
    return Refusal{Reason::instruction, "reverse: sm80_few_gemm has one row of tiles and takes them in their order; leave it off", 1, 0};
}

class Sm80FewGemm final : public GemmKernel {
  public:
    std::string_view name() const override { return "sm80_few_gemm"; }
    std::string instruction(const Machine&, Type) const override { return "mma_sync"; }

    std::string missing_on(const Machine& machine) const override {
        std::string missing;
        for (const char* feature : {"mma_sync", "cp_async"})
            if (machine.lacks(feature)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", feature);
        return missing.empty() && !machine.has("mma_sync") ? "mma_sync" : missing;
    }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& problem, const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, problem)) return why;
        if (auto why = refuse_packed_weights(problem, request)) return why;
        if (auto why = refuse_sm90_alone(problem)) return why;
        if (auto why = refuse_many_rows(problem)) return why;
        if (auto why = refuse_reverse(request)) return why;
        if (auto why = refuse_following(machine, request)) return why;
        return refuse_knobs(*this, machine, without_packing(problem, request));
    }
    bool is_behind_unpacking() const override { return true; }
    PackedOperands packs(const GemmProblem& problem, const GemmRequest&) const override { return {problem.narrow.has_value(), problem.is_unpacked()}; }
    bool joins(const GemmProblem& problem) const override { return !problem.is_quantised() && !rows_on_chunks(problem); }

    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request, GemmVisitor& visitor) const override {
        Sm80FewFamily{}.enumerate(hw, problem, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const override {
        return Sm80FewFamily{}.examine(hw, problem, candidate);
    }

    void complete(const GemmContext& context, const Kept&, GemmConfig& config) const override {
        config.programmatic_launch = context.request.programmatic_launch.value_or(launches_dependents(*context.machine));
        config.early_weights = context.request.early_weights.value_or(false);
        config.pack_a = context.packed.a, config.pack_b = context.packed.b;
    }
    std::vector<std::string> notes(const GemmProblem& problem, const GemmRequest&, const GemmHardware& hw) const override {
        if (!problem.is_unpacked()) return {};
        return weight_notes(problem.as_asked(), hw);
    }
    std::string why_not(const Machine& machine, const GemmProblem&, const GemmConfig&, const GemmHardware&) const override {
        return machine.arch.empty() ? "the machine names no architecture, so no code can be made for it" : "";
    }

    GemmWords words(const GemmCandidate& c) const override {
        GemmWords words = plain_words(c);
        words.tile_k = &gemm_formula::tile_k_few;
        words.registers_source = "fragments, where rows of A are; addresses, bounds and loop state, tried with ptxas";
        words.reserved_source = "none: the sums take the ring's place";
        words.overhead_source = "of rows of A: a chunk before a block, which keeps rows in different banks, too";
        return words;
    }
    void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps) const override {
        const GemmProblem& p = context.problem;
        const Sm80FewConfig c = sm80_few_config(p, config);
        explain_in_front(context, steps);
        std::vector<Input> inputs = split_inputs(context, kept);
        const double in_flight =
            double(config.stages - 1) * config.tile_n * config.tile_k * Sm80FewConfig::element_bytes * config.ctas_per_sm;
        std::string limit = "K in one piece";
        if (config.grid_split_k > 1) {
            const double whole = seconds_with(context, [](GemmRequest& r) { r.grid_split_k = 1; });
            limit = std::isnan(whole) ? "no plan has K in one piece, or its time is unknown"
                                      : fmt::format("the best plan with grid_split_k = 1 takes {:.4g} us", whole * 1e6);
        }
        steps.add_chosen(context.request.grid_split_k.has_value(), gemm_formula::pieces_few, std::move(inputs), config.grid_split_k,
                         std::move(limit));
        steps.add(gemm_formula::in_flight_few,
                  {given("stages", config.stages, "", "an earlier step"), given("tile_n", config.tile_n, "", "an earlier step"),
                   given("tile_k", config.tile_k, "", "an earlier step"),
                   given("b", Sm80FewConfig::element_bytes, "B", std::string(name_of(p.b_type))),
                   given("ctas_per_sm", config.ctas_per_sm, "", "this plan")},
                  in_flight,
                  unless_unknown(context.hw.dram_share * context.hw.dram_latency,
                                 "of B; the SM's share of DRAM takes {:.4g} B, its rate times the latency",
                                 context.hw.dram_share * context.hw.dram_latency));
        explain_early_weights(context, config, config.stages - 1, steps);
        steps.add(gemm_formula::odd_rows,
                  {given("ldb", double(p.ldb), "", "problem"), given("b_offset", double(p.b_offset), "", "problem")},
                  c.odd_rows,
                  c.odd_rows ? "some pairs of A's elements are put together from two words of shared memory"
                             : "pairs of A's elements are words of shared memory");
    }
};

}  // namespace

const GemmKernel& sm80_few_gemm() {
    static const Sm80FewGemm kernel;
    return kernel;
}

}  // namespace rooftile
