#include "rooftile/fuse/json.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}
Json bound_json(const std::optional<Bound>& bound) { return bound ? Json(name_of(*bound)) : Json(nullptr); }

Json tensor_json(const std::string& name, const GraphNode& n) {
    return {{"name", name}, {"type", name_of(n.element)}, {"shape", n.shape}, {"bytes", bytes_of(n)}};
}

Json totals_json(const FuseTotals& t) {
    return {{"moved_bytes", or_null(t.moved_bytes)},
            {"dram_bytes", or_null(t.dram_bytes)},
            {"time_us", json_number(t.time_us)},
            {"kernels", t.kernels}};
}

Json operators_json(const std::vector<FuseOperator>& operators) {
    Json out = Json::array();
    for (const FuseOperator& op : operators)
        out.push_back({{"text", op.text},
                       {"stores", op.type},
                       {"moved_bytes", or_null(op.totals.moved_bytes)},
                       {"dram_bytes", or_null(op.totals.dram_bytes)},
                       {"time_us", json_number(op.totals.time_us)},
                       {"bound", bound_json(op.bound)}});
    return out;
}

Json prediction_json(const FusePrediction& p) {
    return {{"time_us", json_number(p.time_us)},   {"gbytes_per_s", json_number(p.gbytes_per_s)},
            {"bound", bound_json(p.bound)},        {"moved_bytes", or_null(p.moved_bytes)},
            {"dram_bytes", or_null(p.dram_bytes)}, {"issue_share", json_number(p.issue_share)},
            {"waves", json_number(p.waves)},       {"speedup", json_number(p.speedup)}};
}

/// Paths of the plan's null values.
Json unknown_values(const Json& plan) {
    Json out = Json::array();
    for (const char* part : {"config", "resources", "prediction"})
        for (const auto& [key, value] : plan.at(part).items())
            if (value.is_null()) out.push_back(std::string(part) + "." + key);
    for (const Json& step : plan.at("derivation"))
        if (step.at("value").is_null()) out.push_back("derivation." + std::string(step.at("quantity")));
    return out;
}

Json plan_json(const FusePlan& plan) {
    Json out = {{"rank", plan.rank}, {"buildable", plan.buildable}};
    if (!plan.buildable) out["why_not"] = plan.why_not;
    out["config"] = config_json(plan);
    out["resources"] = resources_json(plan.resources);
    out["prediction"] = prediction_json(plan.prediction);
    out["derivation"] = derivation_json(plan.derivation);
    out["unknown"] = unknown_values(out);
    out["unknown_inputs"] = plan.unknown;
    return out;
}

template <class Outcome>
Json head_json(const DocumentContext& context, const Outcome& outcome) {
    return {{"schema", "rooftile/plan/1"},
            {"context", context_json(context)},
            {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
            {"problem", problem_json(outcome.problem)}};
}

}  // namespace

Json problem_json(const FuseProblem& problem) {
    Json inputs = Json::array(), outputs = Json::array();
    for (int i : problem.inputs)
        inputs.push_back(tensor_json(problem.nodes[size_t(i)].name, problem.nodes[size_t(i)]));
    for (const GraphOutput& o : problem.outputs)
        outputs.push_back(tensor_json(o.name, problem.nodes[size_t(o.node)]));
    return {{"op", "fuse"},
            {"expression", problem.text},
            {"tensors", std::move(inputs)},
            {"outputs", std::move(outputs)}};
}

Json config_json(const FusePlan& plan) {
    const FuseConfig& c = plan.config;
    return {{"kernel", std::string("fuse_") + std::string(name_of(c.form))},
            {"form", name_of(c.form)},
            {"home", name_of(c.home)},
            {"width", c.width},
            {"items", c.items},
            {"threads", c.threads},
            {"threads_per_row", c.threads_per_row},
            {"reducing_threads", c.reducing},
            {"rows_per_cta", c.rows_per_cta()},
            {"cluster", c.cluster},
            {"stages", c.stages},
            {"ctas_per_sm", c.ctas_per_sm},
            {"persistent", c.persistent},
            {"early_weights", c.early_weights},
            {"meeting", meeting_of(c)},
            {"grid", c.grid > 0 ? Json(c.grid) : Json(nullptr)}};
}

Json resources_json(const FuseResources& r) {
    return {{"threads", or_null(r.threads)},
            {"registers", or_null(r.registers)},
            {"shared_bytes", or_null(r.shared_bytes)},
            {"ctas_per_sm", or_null(r.ctas_per_sm)},
            {"bytes_in_flight", or_null(r.bytes_in_flight)},
            {"bytes_in_flight_needed", or_null(r.bytes_in_flight_needed)}};
}

Json plan_document(const DocumentContext& context, const std::variant<FusePlans, FuseInfeasible>& outcome) {
    if (const auto* plans = std::get_if<FusePlans>(&outcome)) {
        Json out = head_json(context, *plans);
        out["fused"] = totals_json(plans->fused);
        out["unfused"] = totals_json(plans->unfused);
        out["operators"] = operators_json(plans->operators);
        out["plans"] = Json::array();
        for (const FusePlan& plan : plans->plans) out["plans"].push_back(plan_json(plan));
        out["rejected"] = rejected_json(plans->rejected);
        out["unknown"] = plans->unknown;
        out["unchecked_walls"] = plans->unchecked_walls;
        out["notes"] = plans->notes;
        return out;
    }
    const auto& none = std::get<FuseInfeasible>(outcome);
    Json out = head_json(context, none);
    out["fused"] = nullptr;
    out["unfused"] = totals_json(none.unfused);
    out["operators"] = operators_json(none.operators);
    out["plans"] = Json::array();
    out["rejected"] = rejected_json(none.rejected);
    out["infeasible"] = {{"reason", name_of(none.reason)},
                         {"message", none.message},
                         {"needed", nullptr},
                         {"available", nullptr}};
    out["unknown"] = none.unknown;
    out["unchecked_walls"] = Json::array();
    out["notes"] = none.notes;
    return out;
}

}  // namespace rooftile
