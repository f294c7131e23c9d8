#include "rooftile/report/pictured_plan.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/explanation_record.hpp"

namespace rooftile {

Json map_json(const std::shared_ptr<const Machine>& machine, const Plan& plan, const Own& request) {
    if (plan.operation->map_keys()[0].empty()) return nullptr;
    return to_json(map_record(plan.operation->map(machine, plan, request)));
}

Json pictured_document(const DocumentContext& context, const Machine& machine, const PlanSet& plans, const Json& map, bool energy) {
    Json document = plan_document(context, plans, explanation_records(explain(machine, plans, {Depth::all, energy})));
    if (!map.is_null()) document["map"] = map;
    return document;
}

}  // namespace rooftile
