#include "rooftile/fuse/measurement_report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/fuse/json.hpp"
#include "rooftile/report/measured_json.hpp"
#include "rooftile/fuse/plan_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {


Json verified_json(const FuseCheck& check) {
    return {{"random", check.ok()},
            {"compared", check.compared},
            {"undecided", check.undecided},
            {"max_error", json_number(check.max_error)},
            {"bound", json_number(check.bound)},
            {"failure", text_or_null(check.failure)}};
}

Json row_json(const FuseMeasurement& m, const FuseBaselines& b) {
    Json layers = Json::array();
    for (const SuiteLayer& l : m.layers) layers.push_back({{"model", l.model}, {"layer", l.layer}});
    return {{"problem", problem_json(m.plan.problem)},
            {"layers", std::move(layers)},
            {"rank", m.plan.rank},
            {"plans", m.plans},
            {"config", config_json(m.plan)},
            {"label", label_of(m.plan.config)},
            {"mode", name_of(m.mode)},
            {"time_us", json_number(m.time_us)},
            {"time_us_low", json_number(m.time_us_low)},
            {"time_us_high", json_number(m.time_us_high)},
            {"samples", m.samples},
            {"tflops", nullptr},
            {"gbytes_per_s", json_number(m.gbytes_per_s)},
            {"roof", m.roof_fraction ? Json(b.roof_name()) : Json(nullptr)},
            {"roof_fraction", json_number(m.roof_fraction)},
            {"issue_roof_us", json_number(m.issue_roof_us)},
            {"rank1_ratio", json_number(m.rank1_ratio)},
            {"runoff", runoff_json(m.runoff)},
            {"predicted_time_us", json_number(m.plan.prediction.time_us)},
            {"predicted_bound",
             m.plan.prediction.bound ? Json(name_of(*m.plan.prediction.bound)) : Json(nullptr)},
            {"verified", verified_json(m.verified)},
            {"sm_clock_mhz", json_number(m.sm_clock_mhz)},
            {"power_w", json_number(m.power_w)},
            {"registers", m.registers},
            {"compile_seconds", json_number(m.compile_seconds)},
            {"baselines",
             {{"copy_us", json_number(b.copy_us)},
              {"copy_form", text_or_null(b.copy_form)},
              {"memcpy_us", json_number(b.memcpy_us)},
              {"read_us", json_number(b.read_us)},
              {"read_form", text_or_null(b.read_form)},
              {"unfused_us", json_number(b.unfused_us)},
              {"missing", text_or_null(b.missing)}}},
            {"counters", Json::object()},
            {"invalid", text_or_null(m.invalid)}};
}

std::string with_form(const char* meaning, const std::string& form) {
    return form.empty() ? meaning : fmt::format("{}: {}", meaning, form);
}

std::string us_text(const std::optional<double>& us) { return us ? time_text(*us) : std::string("-"); }

}  // namespace

Json measurement_document(const DocumentContext& context, const FuseRun& run) {
    Json out = {{"schema", "rooftile/measurement/1"},
                {"context", context_json(context)},
                {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
                {"rows", Json::array()},
                {"notes", run.notes}};
    for (const FuseMeasurement& m : run.rows) out["rows"].push_back(row_json(m, run.baselines));
    return out;
}

std::vector<Json> measurement_lines(const DocumentContext& context, const FuseRun& run) {
    std::vector<Json> lines = row_lines(measurement_document(context, run));
    for (Json& line : lines) line["notes"] = run.notes;
    return lines;
}

Json infeasible_line(const DocumentContext& context, const FuseInfeasible& infeasible,
                     const std::vector<SuiteLayer>& layers, Mode mode) {
    FuseRun run;
    FuseMeasurement& none = run.rows.emplace_back();
    none.plan.problem = infeasible.problem;
    none.mode = mode;
    none.plans = 0;
    none.layers = layers;
    none.invalid = "no plan fits: " + infeasible.message;
    run.notes = infeasible.notes;
    Json line = measurement_lines(context, run).front();
    for (const char* key : {"rank", "config", "label"}) line[key] = nullptr;
    return line;
}

std::string measurement_text(const DocumentContext& context, const FuseRun& run, const Terminal& terminal) {
    using Align = Table::Align;
    std::string out =
        fuse_heading_text(run.rows.front().plan.problem, context.machine_id, context.machine_name, terminal)
        + "\n";
    Table table({{"#"},
                 {"launch", Align::left, 3},
                 {"time"},
                 {"95 %", Align::left, 4},
                 {"GB/s"},
                 {fmt::format("of {}", run.baselines.roof_name())},
                 {"predicted"},
                 {"bound", Align::left, 2},
                 {"registers", Align::right, 5},
                 {"right", Align::left}});
    for (const FuseMeasurement& m : run.rows) {
        const bool right = m.verified.ok();
        table.row({{std::to_string(m.plan.rank)},
                   {label_of(m.plan.config)},
                   {us_text(m.time_us), Tone::strong},
                   {m.time_us_low ? us_text(m.time_us_low) + " .. " + us_text(m.time_us_high) : "-"},
                   {m.gbytes_per_s ? number_text(*m.gbytes_per_s, 4) : "-"},
                   {m.roof_fraction ? percent_text(*m.roof_fraction) : "-", Tone::strong},
                   {us_text(m.plan.prediction.time_us)},
                   {m.plan.prediction.bound ? std::string(name_of(*m.plan.prediction.bound)) : "?"},
                   {std::to_string(m.registers)},
                   {right ? fmt::format("yes, {} of its bound", percent_text(m.verified.max_error))
                    : m.verified.checked ? "NO"
                                         : "not checked",
                    right ? Tone::good : Tone::bad}});
    }
    out += table.text(terminal) + "\n";
    const FuseBaselines& b = run.baselines;
    std::vector<Entry> beside = {
        {"copy kernel", us_text(b.copy_us), with_form("as many bytes, read and written", b.copy_form)},
        {"driver's copy", us_text(b.memcpy_us), "the same"},
        {"unfused", us_text(b.unfused_us), "every operator a kernel of its own"}};
    if (b.read_us)
        beside.insert(beside.begin() + 2, {"read kernel", us_text(b.read_us),
                                           with_form("the inputs, nothing written", b.read_form)});
    out += entries_text(beside, 2, terminal);
    if (!b.missing.empty()) out += "missing  " + b.missing + "\n";
    for (const FuseMeasurement& m : run.rows)
        if (!m.invalid.empty()) out += fmt::format("plan {}: {}\n", m.plan.rank, displayable(m.invalid));
    return out;
}

}  // namespace rooftile
