// From what an operation plans in types of its own to what the stations read.
#pragma once

#include <string>
#include <utility>

#include "rooftile/core/plan.hpp"

namespace rooftile {

/// A plan of one launch of `kernel`. `P` has what every plan has, by the same names.
template <class P>
Plan plan_of(const Problem& problem, std::string kernel, P plan) {
    Plan out;
    out.operation = problem.operation;
    out.problem = problem;
    out.rank = plan.rank;
    out.buildable = plan.buildable;
    out.why_not = plan.why_not;
    out.time_us = plan.prediction.time_us;
    out.bound = plan.prediction.bound;
    out.derivation = plan.derivation;
    out.unknown = plan.unknown;
    out.launches = {{.kernel = std::move(kernel)}};
    out.own = Own::of(std::move(plan));
    return out;
}

/// What plans and a refusal have alike; `found` lacks it afterwards.
template <class Found>
PlanSet plan_set_of(const Operation& operation, Found& found) {
    PlanSet out;
    out.machine_id = std::move(found.machine_id);
    out.machine_name = std::move(found.machine_name);
    out.problem = {&operation, Own::of(std::move(found.problem))};
    out.rejected = found.rejected;
    out.unknown = std::move(found.unknown);
    out.notes = std::move(found.notes);
    return out;
}

}  // namespace rooftile
