// sm90_many_quantised as the planning stations see it: many rows by weights that are packed in 4 or 8 bits.
#include <fmt/core.h>

#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"

namespace rooftile {
namespace {

std::optional<Refusal> refuse_of_many(std::string why) { return Refusal{Reason::instruction, std::move(why), 1, 0}; }

/// From so many rows on it is planned beside the kernel of few: below, its instruction multiplies mostly rows of nothing.
constexpr std::int64_t least_beside = 17;

class Sm90ManyQuantised final : public GemmKernel {
  public:
    std::string_view name() const override { return "sm90_many_quantised"; }
    std::string instruction(const Machine&, Type) const override { return "wgmma"; }

    std::string missing_on(const Machine& machine) const override {
        std::string missing;
        for (const char* feature : {"wgmma", "tma", "mbarrier"})
            if (!machine.has(feature)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", feature);
        // Compiled and tried for that one alone.
        if (missing.empty() && machine.arch != "sm_90") missing = "sm_90";
        return missing;
    }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& p, const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, p)) return why;
        GemmProblem alone = p;
        alone.groups = {};
        if (auto why = refuse_sm90_alone(alone)) return why;
        if (p.groups && p.epilogue)
            return refuse_of_many("groups of packed weights take no epilogue yet; leave it off, and evaluate it by fuse behind the product");
        if (auto why = refuse_rows_of_quantised(p)) return why;
        if (!machine.find("sm.count"))
            return refuse_of_many("sm.count is unknown, and CTAs share the weights out evenly; give it with --set");
        if (auto why = refuse_packed_weights(p, request)) return why;
        GemmRequest others = without_packing(p, request);
        others.programmatic_launch.reset();
        const Order order = request.order.value_or(Order::row);
        if (order == Order::serpentine || order == Order::morton || order == Order::hilbert || request.reverse.value_or(false))
            return refuse_of_many(
                "order and reverse: sm90_many_quantised takes tiles by row, column or grouped, from the first; leave them off");
        return refuse_knobs(*this, machine, others);
    }
    bool is_of_quantised() const override { return true; }
    PackedOperands packs(const GemmProblem& p, const GemmRequest&) const override { return {.a = p.narrow.has_value()}; }
    bool joins(const GemmProblem& p) const override {
        return p.is_quantised() && !p.groups && p.m >= least_beside && !(p.m > Sm90QuantisedConfig::most_rows);
    }

    void enumerate(const GemmHardware& hw, const GemmProblem& p, const GemmRequest& request, GemmVisitor& visitor) const override {
        ManyQuantisedFamily{}.enumerate(hw, p, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& p, GemmCandidate& c) const override {
        return ManyQuantisedFamily{}.examine(hw, p, c);
    }

    void complete(const GemmContext& context, const Kept&, GemmConfig& config) const override {
        config.programmatic_launch = context.request.programmatic_launch.value_or(true);
        config.pack_a = context.packed.a;
    }
    std::string why_not(const Machine&, const GemmProblem&, const GemmConfig&, const GemmHardware&) const override { return ""; }
    std::vector<std::string> notes(const GemmProblem& p, const GemmRequest&, const GemmHardware& hw) const override {
        return quantised_notes(p, hw);
    }

    GemmWords words(const GemmCandidate& c) const override { return plain_words(c); }
    void explain_choices(const GemmContext&, const Kept&, const GemmConfig&, Derivation&) const override {
    }  // quantised_derivation() has them all
};

}  // namespace

const GemmKernel& sm90_many_quantised() {
    static const Sm90ManyQuantised kernel;
    return kernel;
}

}  // namespace rooftile
