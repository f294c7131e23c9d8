// What a finished plan can be asked for beyond its derivation: where its time comes from, what it costs in energy, what would
// let it win. Worked out again from the machine on demand; the search does not pay for it.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/physics/energy.hpp"
#include "rooftile/physics/roofline.hpp"
#include "rooftile/physics/what_if.hpp"

namespace rooftile {

struct Explanation {
    /// The first step is a roof, the last the prediction: its time is `time_us` to the nanosecond. Empty
    /// where the time is unknown, or was not asked for.
    std::vector<RoofStep> attainability;
    std::optional<Energy> energy;
    std::optional<Roofline> roofline;  ///< this and the next: asked for with the derivation; empty where a number is unknown
    std::optional<PipelineCycles> pipeline;
    /// What would let the plan win; empty where it was not asked for, for plan 1, and where the plan is the fastest as it is.
    std::optional<std::vector<Counterfactual>> wins_if;
};

/// For a plan that was made for that machine, by itself: nothing else competes.
Explanation explain(const Machine& machine, const Plan& plan, const PlanDetail& detail);
/// One of each plan; none where `detail` asks for nothing.
std::vector<Explanation> explain(const Machine& machine, const PlanSet& plans, const PlanDetail& detail);

/// The steps of any demand: the roof as the datasheet and as measurements have it, each unit as far as it is slower, what comes
/// again from DRAM, the launches, and what the operation's own model adds. Empty where the time is unknown.
std::vector<RoofStep> roof_steps_of(const Demand& demand, const Machine& machine, const PredictedRun& run);

}  // namespace rooftile
