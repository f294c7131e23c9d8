#include "rooftile/core/first_buildable.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rooftile/error.hpp"

namespace rooftile {

const Plan& first_buildable(const PlanSet& set) {
    struct Reason {
        std::string text, plans;
    };
    std::vector<Reason> reasons;
    for (const Plan& plan : set.plans) {
        if (plan.buildable) return plan;
        const std::string label = plan.operation->label(plan);
        const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& r) { return r.text == plan.why_not; });
        if (same == reasons.end()) reasons.push_back({plan.why_not, label});
        else same->plans += ", " + label;
    }
    std::string why;
    for (const Reason& r : reasons) why += (why.empty() ? "" : "; ") + (reasons.size() > 1 ? r.plans + ": " : std::string()) + r.text;
    throw RequestError(fmt::format("none of the {} plans for {} can be built: {}", set.plans.size(), set.machine_id, why));
}

}  // namespace rooftile
