// sm90_few_quantised as the planning stations see it: few rows by weights that are packed in 4 or 8 bits.
#include <fmt/core.h>

#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/quantised_model.hpp"

namespace rooftile {
namespace {

std::optional<Refusal> refuse(std::string why, double needed = 1, double available = 0) {
    return Refusal{Reason::instruction, std::move(why), needed, available};
}

bool takes(std::int64_t rows) { return rows <= Sm90QuantisedConfig::most_rows; }

std::optional<Refusal> refuse_many_rows(const GemmProblem& p) {
    if (takes(p.m)) return std::nullopt;
    return refuse(fmt::format("m = {}: sm90_few_quantised takes up to {} rows; leave the kernel off", p.m, Sm90QuantisedConfig::most_rows),
                  double(p.m), Sm90QuantisedConfig::most_rows);
}

class Sm90FewQuantised final : public GemmKernel {
  public:
    std::string_view name() const override { return "sm90_few_quantised"; }
    std::string instruction(const Machine&, Type) const override { return "mma_sync"; }

    std::string missing_on(const Machine& machine) const override {
        std::string missing;
        for (const char* feature : {"mma_sync", "tma", "mbarrier"})
            if (!machine.has(feature)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", feature);
        // Compiled and tried for that one alone.
        if (missing.empty() && machine.arch != "sm_90") missing = "sm_90";
        return missing;
    }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& p,
                                   const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, p)) return why;
        if (auto why = refuse_sm90_alone(p)) return why;
        if (auto why = refuse_rows_of_quantised(p)) return why;
        if (auto why = refuse_many_rows(p)) return why;
        if (!machine.find("sm.count"))
            return refuse("sm.count is unknown, and CTAs share the weights out evenly; give it with --set");
        if (auto why = refuse_packed_weights(p, request)) return why;
        GemmRequest others = without_packing(p, request);
        others.programmatic_launch.reset();
        if (request.order.value_or(Order::row) != Order::row || request.reverse.value_or(false)
            || request.group)
            return refuse(
                "order, group and reverse: packed weights have one row of tiles, taken in their order; leave "
                "them off");
        return refuse_knobs(*this, machine, others);
    }
    bool is_of_quantised() const override { return true; }
    PackedOperands packs(const GemmProblem& p, const GemmRequest&) const override { return {.a = p.narrow.has_value()}; }
    bool takes_rows(const GemmProblem& p) const override { return takes(p.m) && !p.groups; }

    void enumerate(const GemmHardware& hw, const GemmProblem& p, const GemmRequest& request,
                   GemmVisitor& visitor) const override {
        QuantisedFamily{}.enumerate(hw, p, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& p, GemmCandidate& c) const override {
        return QuantisedFamily{}.examine(hw, p, c);
    }

    void complete(const GemmContext& context, const Kept&, GemmConfig& config) const override {
        config.programmatic_launch = context.request.programmatic_launch.value_or(true);
        config.pack_a = context.packed.a;
    }
    std::string why_not(const Machine&, const GemmProblem&, const GemmConfig&,
                        const GemmHardware&) const override {
        return "";
    }
    std::vector<std::string> notes(const GemmProblem& p, const GemmRequest&, const GemmHardware& hw) const override { return quantised_notes(p, hw); }

    GemmWords words(const GemmCandidate& c) const override { return plain_words(c); }
    void explain_choices(const GemmContext&, const Kept&, const GemmConfig&, Derivation&) const override {
    }  // quantised_derivation() has them all
};

}  // namespace

const GemmKernel& sm90_few_quantised() {
    static const Sm90FewQuantised kernel;
    return kernel;
}

}  // namespace rooftile
