#include "rooftile/report/measurement.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/report/measured_json.hpp"

namespace rooftile {
namespace {

Json flag_json(const std::optional<bool>& flag) { return flag ? Json(*flag) : Json(nullptr); }

Json verified_json(const Verification& v) {
    return {{"exact", flag_json(v.exact)},
            {"random", flag_json(v.random)},
            {"shifted", flag_json(v.shifted)},
            {"special", flag_json(v.special)},
            {"timed", flag_json(v.timed)},
            {"guards", flag_json(v.guards)},
            {"checked_elements", v.checked_elements},
            {"undecided_elements", v.undecided_elements},
            {"max_error", json_number(v.max_error)},
            {"bound", json_number(v.bound)},
            {"failure", text_or_null(v.failure)}};
}

/// What every row of the operation says of baselines where nothing was timed.
Json no_baselines(const Operation& operation) {
    Json out = {{"missing", nullptr}};
    for (const std::string_view key : operation.baseline_keys()) out[std::string(key)] = nullptr;
    return out;
}

Json baselines_json(const Measurement& m) {
    Json out = no_baselines(*m.plan.operation);
    for (const Baseline& b : m.baselines) {
        out[b.key + "_us"] = json_number(b.time_us);
        if (!b.form.empty()) out[b.key + "_form"] = b.form;
        if (!b.ratio_key.empty()) {
            const auto part = [&](double MedianInterval::*which) {
                return b.ratio ? json_number((*b.ratio).*which) : Json(nullptr);
            };
            out[b.ratio_key + "_ratio"] = part(&MedianInterval::median);
            out[b.ratio_key + "_ratio_low"] = part(&MedianInterval::low);
            out[b.ratio_key + "_ratio_high"] = part(&MedianInterval::high);
            out[b.ratio_key + "_ratio_coverage"] = part(&MedianInterval::coverage);
            out[b.key + "_counters"] = counters_json(b.counters);
        }
    }
    out["missing"] = text_or_null(m.baseline_missing);
    return out;
}

Json variants_json(const Measurement& m) {
    Json out = Json::object();
    for (const LaunchVariant& v : m.variants) {
        const auto part = [&](double MedianInterval::*which) {
            return v.ratio ? json_number((*v.ratio).*which) : Json(nullptr);
        };
        out[v.key] = {{"name", v.name},
                      {"time_us", json_number(v.time_us)},
                      {"time_us_low", json_number(v.time_us_low)},
                      {"time_us_high", json_number(v.time_us_high)},
                      {"samples", v.samples},
                      {"predicted_time_us", json_number(v.predicted_us)},
                      {"ratio", part(&MedianInterval::median)},
                      {"ratio_low", part(&MedianInterval::low)},
                      {"ratio_high", part(&MedianInterval::high)}};
    }
    return out;
}

}  // namespace

Json measured_row_json(const Measurement& m) {
    const Operation& operation = *m.plan.operation;
    const std::string invalid = why_no_result(m);
    const auto figure = [&](std::optional<double> value) {
        return invalid.empty() ? json_number(value) : Json(nullptr);
    };
    Json row = {{"problem", problem_json(m.plan.problem)},
                {"layers", layers_json(m.layers)},
                {"rank", m.plan.rank},
                {"plans", m.plans},
                {"config", m.plan.own ? to_json(operation.config_record(m.plan)) : Json(nullptr)},
                {"label", m.plan.own ? operation.label(m.plan) : m.plan.launches.front().kernel},
                {"mode", name_of(m.mode)},
                {"time_us", figure(m.time_us)},
                {"time_us_low", figure(m.time_us_low)},
                {"time_us_high", figure(m.time_us_high)},
                {"interval_coverage", figure(m.interval_coverage)},
                {"samples", m.samples},
                {"tflops", figure(m.tflops)},
                {"gbytes_per_s", figure(m.gbytes_per_s)},
                {"roof", text_or_null(m.roof)},
                {"roof_fraction", figure(m.roof_fraction)},
                {"predicted_time_us", json_number(m.plan.time_us)},
                {"predicted_bound", m.plan.bound ? Json(name_of(*m.plan.bound)) : Json(nullptr)},
                {"verified", verified_json(m.verified)},
                {"rank1_ratio", figure(m.rank1_ratio)},
                {"confirmation", invalid.empty() ? confirmation_json(m.confirmation) : Json(nullptr)},
                {"sm_clock_mhz", json_number(m.sm_clock_mhz)},
                {"power_w", json_number(m.power_w)},
                {"registers", m.registers},
                {"compile_seconds", json_number(m.compile_seconds)},
                {"baselines", baselines_json(m)},
                {"variants", variants_json(m)},
                {"counters", counters_json(m.counters)}};
    row.update(to_json(m.more));
    if (m.explanation) {
        const MeasuredRun run = invalid.empty() && m.time_us ? MeasuredRun{m.time_us, measured_joules(m)} : MeasuredRun{};
        row.update(to_json(explanation_record(*m.explanation, &run)));
    }
    if (m.show_derivation || row.contains("attainability")) row["derivation"] = derivation_json(m.plan.derivation);
    row["invalid"] = text_or_null(invalid);
    return row;
}

Json measurement_document(const DocumentContext& context, const std::vector<Measurement>& rows,
                          const std::vector<Timing>& timings, const std::vector<std::string>& notes) {
    Json out = {{"schema", "rooftile/measurement/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)},
                {"rows", Json::array()},
                {"notes", notes}};
    for (const Measurement& m : rows) out["rows"].push_back(measured_row_json(m));
    if (!timings.empty()) out["timings"] = timings_json(timings);
    return out;
}

std::vector<Json> measurement_lines(const DocumentContext& context, const std::vector<Measurement>& rows,
                                    const std::vector<std::string>& notes) {
    std::vector<Json> lines = row_lines(measurement_document(context, rows));
    for (Json& line : lines) line["notes"] = notes;
    return lines;
}

Json infeasible_line(const DocumentContext& context, const PlanSet& plans, const std::vector<SuiteLayer>& layers,
                     Mode mode) {
    return {{"machine", machine_json(context)},
            {"problem", problem_json(plans.problem)},
            {"layers", layers_json(layers)},
            {"rank", nullptr},
            {"plans", 0},
            {"config", nullptr},
            {"label", nullptr},
            {"mode", name_of(mode)},
            {"time_us", nullptr},
            {"predicted_time_us", nullptr},
            {"verified", verified_json({})},
            {"baselines", no_baselines(*plans.problem.operation)},
            {"variants", Json::object()},
            {"counters", Json::object()},
            {"invalid", "no plan fits: " + plans.refusal->message},
            {"notes", plans.notes}};
}

}  // namespace rooftile
