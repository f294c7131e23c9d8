#include "rooftile/report/json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {

Json derivation_json(const std::vector<Step>& steps) {
    Json out = Json::array();
    for (const Step& step : steps) {
        out.push_back({{"quantity", step.quantity},
                       {"formula", step.formula},
                       {"inputs", to_json(input_list(step.inputs))},
                       {"value", json_number(step.value, step.unit)},
                       {"unit", step.unit},
                       {"limit", step.limit}});
    }
    return out;
}

namespace {

/// Paths of the plan's unknown values. A derivation's quantity that resources or the prediction name is listed once.
Json unknown_values(const std::vector<std::pair<std::string, Record>>& parts, const Steps& derivation) {
    Json out = Json::array();
    for (const auto& [part, record] : parts)
        for (const auto& [key, value] : record)
            if (value.unknown()) out.push_back(part + "." + key);
    for (const Step& step : derivation) {
        const auto names = [&](const auto& part) {
            return part.first != "config" && find(part.second, step.quantity) != nullptr;
        };
        if (!step.value && std::none_of(parts.begin(), parts.end(), names))
            out.push_back("derivation." + step.quantity);
    }
    return out;
}

Json plan_json(const Plan& plan, bool derivations) {
    const Operation& operation = *plan.operation;
    std::vector<std::pair<std::string, Record>> parts = {
        {"config", operation.config_record(plan)},
        {"resources", operation.resources_record(plan)},
        {"prediction", operation.prediction_record(plan)}};
    const auto& interval = plan.interval;
    parts.back().second.emplace_back("interval_us", interval ? Value(List{interval->low_us, interval->high_us}) : Value());
    Json out = {{"rank", plan.rank}, {"label", operation.label(plan)}, {"buildable", plan.buildable}};
    if (!plan.buildable) out["why_not"] = plan.why_not;
    for (const auto& [part, record] : parts) out[part] = to_json(record);
    if (derivations) out["derivation"] = derivation_json(plan.derivation);
    out["unknown"] = unknown_values(parts, derivations ? plan.derivation : Steps());
    out["unknown_inputs"] = plan.unknown;
    return out;
}

}  // namespace

Json rejected_json(const Rejected& rejected) {
    Json reasons = Json::object();
    for (int i = 0; i < reason_count; ++i)
        reasons[std::string(name_of(Reason(i)))] = rejected.reasons[size_t(i)];
    Json rules = Json::object();
    for (const LeftOutByRule& left : rejected.by_rule) rules[std::string(left.rule->name)] = left.count;
    return {{"count", rejected.count()}, {"reasons", std::move(reasons)}, {"rules", std::move(rules)}};
}

Json machine_json(const DocumentContext& context) {
    return {{"id", context.machine_id}, {"name", context.machine_name}};
}

Json json_number(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return nullptr;
    constexpr double exact_limit = 9007199254740992.0;  // 2^53
    if (std::floor(*value) == *value && std::fabs(*value) <= exact_limit) return std::int64_t(*value);
    return *value;
}

Json json_number(std::optional<double> value, std::string_view unit) {
    if (value && std::isfinite(*value) && (unit == "B" || unit == "cycles" || unit == "FLOP"))
        value = std::round(*value);
    return json_number(value);
}

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json parsed_line(std::string_view line) {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    return Json::parse(line, [&](int, Json::parse_event_t event, const Json& parsed) {
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
            throw RequestError(fmt::format("the key {} is there twice", printable(parsed.get<std::string>(), 40)));
        return true;
    });
}

std::string text_at(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
}

std::optional<double> positive_at(const Json& object, const char* key) {
    constexpr double end = 1e15;
    const auto number = number_at(object, key);
    if (number && !(*number > 0 && *number < end))
        throw RequestError(fmt::format("{} is {:g}; it must be above 0 and below {:g}", key, *number, end));
    return number;
}

std::int64_t extent_at(const Json& object, const char* key) {
    constexpr double end = 9007199254740992;  // 2^53: what a double of JSON holds exactly
    const double number = object.at(key).get<double>();
    if (!(number >= 1 && number < end && number == std::floor(number)))
        throw RequestError(fmt::format("{} is {:g}; it must be a whole number from 1 on", key, number));
    return static_cast<std::int64_t>(number);
}

Json to_json(const Record& record) {
    Json out = Json::object();
    for (const auto& [key, value] : record) out[key] = to_json(value);
    return out;
}

Json to_json(const Value& value) {
    struct Writer {
        Json operator()(std::monostate) const { return nullptr; }
        Json operator()(Unused) const { return nullptr; }
        Json operator()(bool b) const { return b; }
        Json operator()(std::int64_t n) const { return n; }
        Json operator()(double x) const { return json_number(x); }
        Json operator()(const std::string& text) const { return text; }
        Json operator()(const Record& record) const { return to_json(record); }
        Json operator()(const List& list) const {
            Json out = Json::array();
            for (const Value& element : list) out.push_back(to_json(element));
            return out;
        }
    };
    return std::visit(Writer{}, value.content());
}

namespace {

Value value_of(const Json& json) {
    if (json.is_object()) return record_of(json);
    if (json.is_string()) return json.get<std::string>();
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number()) return json.get<double>();
    if (!json.is_array()) return {};
    List list;
    for (const Json& element : json) list.push_back(value_of(element));
    return list;
}

}  // namespace

Record record_of(const Json& object) {
    Record out;
    for (const auto& [key, value] : object.items()) out.emplace_back(key, value_of(value));
    return out;
}

Json context_json(const DocumentContext& context) {
    Json out = {{"version", context.version},
                {"machine_hash", text_or_null(context.machine_hash)},
                {"kernel_hash", text_or_null(context.kernel_hash)},
                {"command", context.command}};
    if (context.gpu) {
        out["gpu"] = context.gpu->gpu;
        out["driver"] = context.gpu->driver;
        out["nvrtc"] = context.gpu->nvrtc;
        out["date"] = context.gpu->date;
        out["seed"] = context.gpu->seed;
    }
    return out;
}

Json problem_json(const Problem& problem) {
    Json out = {{"op", problem.operation->name()}};
    out.update(to_json(problem.operation->problem_record(problem)));
    return out;
}

Json plan_document(const DocumentContext& context, const PlanSet& plans, const std::vector<Record>& details, bool derivations) {
    Json out = {{"schema", "rooftile/plan/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)},
                {"problem", problem_json(plans.problem)}};
    out.update(to_json(plans.totals));
    out["plans"] = Json::array();
    for (std::size_t i = 0; i < plans.plans.size(); ++i) {
        out["plans"].push_back(plan_json(plans.plans[i], derivations));
        if (!details.empty()) out["plans"].back().update(to_json(details.at(i)));
    }
    out["rejected"] = rejected_json(plans.rejected);
    if (plans.refusal)
        out["infeasible"] = {{"reason", name_of(plans.refusal->reason)},
                             {"message", plans.refusal->message},
                             {"needed", json_number(plans.refusal->needed)},
                             {"available", json_number(plans.refusal->available)}};
    out["unknown"] = plans.unknown;
    out["unchecked_constraints"] = plans.unchecked_constraints;
    out["notes"] = plans.notes;
    return out;
}

Json context_line(const Json& document) {
    Json out = document;
    out.erase("plans");
    out.erase("rows");
    return out;
}

std::vector<Json> row_lines(const Json& document) {
    std::vector<Json> out;
    for (const char* list : {"plans", "rows"}) {
        if (!document.contains(list)) continue;
        for (const Json& element : document.at(list)) {
            Json row = {{"machine", document.at("machine")}};
            if (document.contains("problem")) row["problem"] = document.at("problem");
            for (const auto& [key, value] : element.items()) row[key] = value;
            out.push_back(std::move(row));
        }
    }
    return out;
}

std::string json_text(const Json& document, int indent) {
    return document.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rooftile
