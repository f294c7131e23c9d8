#include "rooftile/report/plan_range.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

std::string ratio_text(double ratio) { return fmt::format("{:.3f}", ratio); }

Json fields_json(const PlanRange::Part& part) {
    Json out = Json::object();
    for (const Field& field : part.plan.operation->fields())
        if (part.fields.has(field.key)) out[field.key] = part.fields.text(field.key);
    return out;
}

}  // namespace

Json range_document(const DocumentContext& context, const PlanRange& range) {
    Json out = {{"schema", "rooftile/range/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)},
                {"field", range.field.key},
                {"from", range.field.least},
                {"to", range.field.most},
                {"within", json_number(range.within)},
                {"kernels", range.kernels},
                {"ratio", json_number(range.ratio)},
                {"worst", range.worst},
                {"looked_at", range.looked_at},
                {"plans", Json::array()},
                {"notes", range.notes}};
    for (const PlanRange::Part& part : range.parts) {
        const Operation& operation = *part.plan.operation;
        out["plans"].push_back({{"from", part.from},
                                {"to", part.to},
                                {"kernel", part.kernel + 1},
                                {"ratio", json_number(part.ratio)},
                                {"worst", part.worst},
                                {"problem", problem_json(part.plan.problem)},
                                {"config", to_json(operation.config_record(part.plan))},
                                {"fields", fields_json(part)}});
    }
    return out;
}

std::string range_text(const DocumentContext& context, const PlanRange& range, const Terminal& terminal) {
    const std::string& key = range.field.key;
    const Plan& first = range.parts.front().plan;
    std::string out =
        first.operation->heading(first.problem, context.machine_id, context.machine_name, terminal);
    const auto counted = [](std::size_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    out += fmt::format("{} from {} to {}: {} in {}\n\n", key, range.field.least, range.field.most,
                       counted(range.kernels, "kernel"), counted(range.parts.size(), "part"));
    Table table({{key, Table::Align::right},
                 {"kernel"},
                 {"configuration", Table::Align::left},
                 {"worst"},
                 {"of its own plan"}});
    for (const PlanRange::Part& part : range.parts)
        table.row({{fmt::format("{}..{}", part.from, part.to)},
                   {number_text(double(part.kernel + 1))},
                   {part.plan.operation->label(part.plan)},
                   {number_text(double(part.worst))},
                   {ratio_text(part.ratio), part.ratio > 1 + range.within ? Tone::bad : Tone::plain}});
    out += table.text(terminal);
    out += "\n"
           + wrapped(
               fmt::format(
                   "At most {} of the predicted time of each value's own plan ({} = {}), asked for is {}; {} "
                   "looked at.",
                   ratio_text(range.ratio), key, range.worst, ratio_text(1 + range.within),
                   range.looked_at == 1 ? "1 value was" : fmt::format("{} values were", range.looked_at)),
               terminal.prose(), 0)
           + "\n";
    for (const std::string& note : range.notes) out += wrapped("note: " + note, terminal.prose(), 0) + "\n";
    return out;
}

}  // namespace rooftile
