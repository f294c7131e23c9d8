#include "rooftile/physics/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "rooftile/core/derivation.hpp"
#include "rooftile/physics/roofs.hpp"

namespace rooftile {
namespace {

/// Steps of which each takes as long as those before it, or longer.
class Ladder {
  public:
    Ladder(const Machine& machine, double seconds) : facts_(machine), whole_(std::llround(seconds * 1e9)) {}

    void units(const char* name, const RoofTime& roof, std::initializer_list<Bound> bounds) {
        std::vector<Input> inputs;
        for (const UnitTime& unit : roof.units) {
            if (std::find(bounds.begin(), bounds.end(), unit.bound) == bounds.end()) continue;
            seconds_ = std::max(seconds_, unit.seconds);
            inputs.push_back(facts_.fact(unit.key));
        }
        if (!inputs.empty()) step(name, std::move(inputs), {});
    }
    void again(const Demand& demand, const UnitTime& once) {
        double compulsory = 0;
        for (const TensorTraffic& tensor : demand.tensors) compulsory += tensor.footprint_bytes;
        if (!demand.dram_bytes) return;
        seconds_ = std::max(seconds_, once.seconds * *demand.dram_bytes / compulsory);
        step("dram", {Derivation::given("dram_bytes", *demand.dram_bytes, "B", "the derivation"), facts_.fact(once.key)}, {});
    }
    void launches(const UnitTime& unit) {
        seconds_ += unit.seconds;
        step("launch", {facts_.fact(unit.key)}, {});
    }
    std::vector<RoofStep> take() {
        seconds_ = INFINITY;
        step("schedule", {}, "waves, latencies and what does not overlap, by the operation's own model");
        return std::move(steps_);
    }

  private:
    void step(const char* name, std::vector<Input> inputs, std::string note) {
        const std::int64_t before = steps_.empty() ? 0 : steps_.back().time_ns;
        const std::int64_t now = seconds_ * 1e9 < double(whole_) ? std::llround(seconds_ * 1e9) : whole_;
        steps_.push_back({name, now, now - before, std::move(inputs), std::move(note)});
    }

    Derivation facts_;
    std::int64_t whole_;  ///< ns, as predicted
    double seconds_ = 0;
    std::vector<RoofStep> steps_;
};

}  // namespace

std::vector<RoofStep> roof_steps_of(const Demand& demand, const Machine& machine, const PredictedRun& run) {
    if (std::isnan(run.seconds)) return {};
    const RoofTime stated = roof_time(demand, machine),
                   measured = roof_time(demand, machine, {.clock_hz = known(run.clock_hz), .sustained = true});
    Ladder ladder(machine, run.seconds);
    ladder.units("datasheet_roof", stated, {Bound::tensor, Bound::dram});
    ladder.units("measured_roof", measured, {Bound::tensor, Bound::dram});
    ladder.units("shared", measured, {Bound::shared});
    ladder.units("l2", measured, {Bound::l2});
    ladder.units("issue", measured, {Bound::issue});
    for (const UnitTime& unit : measured.units)
        if (unit.bound == Bound::dram) ladder.again(demand, unit);
    for (const UnitTime& unit : measured.units)
        if (unit.bound == Bound::launch) ladder.launches(unit);
    return ladder.take();
}

Explanation explain(const Machine& machine, const Plan& plan, const PlanDetail& detail) {
    const Operation& operation = *plan.operation;
    const Demand demand = operation.demand(machine, plan);
    const PredictedRun run = operation.predictor(machine, {&plan, 1})(machine).front();
    Explanation out;
    if (detail.depth != Depth::none) out.attainability = operation.roof_steps(machine, plan);
    if (detail.depth != Depth::none && out.attainability.empty()) out.attainability = roof_steps_of(demand, machine, run);
    if (detail.depth == Depth::all) {
        out.roofline = roofline_of(demand, machine, run);
        out.pipeline = operation.pipeline(machine, plan);
    }
    if (detail.energy) out.energy = energy_of(demand, machine, run);
    return out;
}

std::vector<Explanation> explain(const Machine& machine, const PlanSet& plans, const PlanDetail& detail) {
    std::vector<Explanation> out;
    if (detail.depth == Depth::none && !detail.energy) return out;
    const PlanDetail of_others{detail.depth == Depth::reasons ? Depth::none : detail.depth, detail.energy};
    const bool alone = of_others.depth == Depth::none && !of_others.energy;  // nothing is asked of the others
    for (const Plan& plan : plans.plans)
        out.push_back(out.empty() ? explain(machine, plan, detail) : alone ? Explanation{} : explain(machine, plan, of_others));
    if (of_others.depth == Depth::none || plans.plans.empty() || !plans.plans.front().time_us) return out;
    WinsIf found = counterfactuals(machine, plans.plans);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].wins_if = std::move(found[i]);
    return out;
}

}  // namespace rooftile
