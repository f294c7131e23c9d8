#include "rooftile/conv/simulation.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/conv/fields.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

const Simulates& of_products() {
    if (const auto* simulates = facet_of<Simulates>(*image_products().operation)) return *simulates;
    throw RequestError("this build's products are not simulated");
}

/// The same plan where L2 has `l2_bytes`.
struct AtSize {
    std::int64_t l2_bytes;
    SimulatedBytes moved;
};

class ConvSimulated final : public SimulatedPlan {
  public:
    ConvSimulated(const Machine& machine, const PlanSet& plans, const Given& given, const SimulationAsk& ask)
        : plan_(plans.plans.front()), product_(of_products().simulate(machine, plans.own.as<PlanSet>(), conv_product_request(given), ask)) {
        for (const TensorTraffic& tensor : conv_operation().demand(machine, plan_).tensors) compulsory_ += tensor.footprint_bytes;
        SimulationAsk one = ask;
        one.orders = "plan", one.energy = false;
        const auto l2 = machine.number<Bytes>("l2.size");
        if (!l2) return;
        for (const double share : {1.0 / 64, 1.0 / 16, 1.0 / 4, 1.0 / 2, 1.0, 2.0}) {
            Machine other = machine;
            const auto bytes = std::int64_t(l2->value * share);
            set_number(other, fmt::format("l2.size={} B", bytes));
            sizes_.push_back({bytes, of_products().simulate(other, plans.own.as<PlanSet>(), conv_product_request(given), one)->planned()});
        }
    }

    Json document(const DocumentContext& context) const override {
        Json out = product_->document(context);
        out["problem"] = problem_json(plan_.problem);
        out["config"] = to_json(conv_operation().config_record(plan_));
        out["compulsory_bytes"] = std::int64_t(compulsory_);
        out["l2_sizes"] = Json::array();
        for (const AtSize& at : sizes_)
            out["l2_sizes"].push_back({{"l2_size_bytes", at.l2_bytes},
                                       {"dram_bytes", at.moved.dram},
                                       {"dram_lower_bound_bytes", at.moved.dram_bound ? Json(std::int64_t(*at.moved.dram_bound)) : Json(nullptr)}});
        return out;
    }
    Json tiles() const override { return product_->tiles(); }
    std::string text(const Terminal& terminal) const override {
        std::string out = product_->text(terminal);
        out += entry("A, B, C", "the image, pixel by pixel and tap by tap, the filters, and the result", terminal);
        out += entry("compulsory", fmt::format("{}: every tensor once; DRAM moves {:.2f} times that", scaled_text(compulsory_, "B"), double(product_->planned().dram) / compulsory_),
                     terminal);
        if (sizes_.empty()) return out;
        out += "\nthe planned order over sizes of L2\n";
        using Align = Table::Align;
        Table table({{"l2.size"}, {"DRAM traffic"}, {"of compulsory"}, {"the bound"}, {"of the bound", Align::right, 1}});
        const std::string_view times = terminal.sign("×", "x");
        for (const AtSize& at : sizes_)
            table.row({{scaled_text(double(at.l2_bytes), "B")},
                       {scaled_text(double(at.moved.dram), "B")},
                       {fmt::format("{:.2f} {}", double(at.moved.dram) / compulsory_, times)},
                       {at.moved.dram_bound ? scaled_text(*at.moved.dram_bound, "B") : "?"},
                       {at.moved.dram_bound ? fmt::format("{:.2f} {}", double(at.moved.dram) / *at.moved.dram_bound, times) : "?"}});
        return out + table.text(terminal);
    }
    SimulatedBytes planned() const override { return product_->planned(); }

  private:
    Plan plan_;
    std::unique_ptr<SimulatedPlan> product_;
    double compulsory_ = 0;
    std::vector<AtSize> sizes_;
};

class ConvSimulates final : public Simulates {
  public:
    std::string_view examples() const override {
        return "Examples:\n"
               "  rooftile simulate conv --batch 32 --channels 64 --height 56 --width 56 --filters 64 --kernel-size 3 --padding 1 --machine h100-sxm\n"
               "  rooftile simulate conv --batch 8 --channels 512 --height 64 --width 64 --filters 512 --kernel-size 3 --padding 1 --orders all --svg orders.svg\n";
    }
    std::string_view orders() const override { return "plan"; }
    void check(const Problem& problem, const Given& given) const override {
        if (problem.own.as<ConvProblem>().gradient != ConvGradient::none)
            throw RequestError("the convolution itself is simulated, not its gradients; leave " + given.name("gradient") + " off");
        if (problem.own.as<ConvProblem>().channels_first) throw RequestError("the convolution of the packed image is simulated, not its packing; leave " + given.name("layout") + " off");
        if (is_direct(problem.own.as<ConvProblem>()))
            throw RequestError("a direct convolution is not simulated: its rows of pixels come through L1, which plan conv counts; groups of 1 and channels in multiples of 8 are products, "
                               "which are");
    }
    Own request(const Given& given) const override {
        ConvRequest out = conv_operation().request(given, {.top = 1}).as<ConvRequest>();
        out.product = of_products().request(conv_product_request(given)), out.top = 1;
        return Own::of(std::move(out));
    }
    std::unique_ptr<SimulatedPlan> simulate(const Machine& machine, const PlanSet& plans, const Given& given, const SimulationAsk& ask) const override {
        return std::make_unique<ConvSimulated>(machine, plans, given, ask);
    }
};

}  // namespace

const Simulates& conv_simulates() {
    static const ConvSimulates simulates;
    return simulates;
}

}  // namespace rooftile
