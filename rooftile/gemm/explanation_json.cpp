#include "rooftile/gemm/explanation_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

/// With `measured_us` one step more.
Json attainability_json(const std::vector<RoofStep>& steps, std::optional<double> measured_us = {}) {
    Json out = Json::array();
    const auto add = [&](std::string_view name, std::int64_t time_ns, std::int64_t cost_ns, Json inputs,
                         std::string_view note) {
        out.push_back({{"step", name},
                       {"time_ns", time_ns},
                       {"cost_ns", cost_ns},
                       {"inputs", std::move(inputs)},
                       {"note", text_or_null(note)}});
    };
    for (const RoofStep& step : steps)
        add(step.name, step.time_ns, step.cost_ns, inputs_json(step.inputs), step.note);
    if (!measured_us || steps.empty()) return out;
    const std::int64_t measured = std::llround(*measured_us * 1000);
    add("measured", measured, measured - steps.back().time_ns, Json::array(), "unexplained");
    return out;
}

Json energy_json(const PlanEnergy& e) {
    return {{"matrix_j", json_number(e.matrix)},
            {"fill_j", json_number(e.fill)},
            {"dram_j", json_number(e.dram)},
            {"static_j", json_number(e.idle)},
            {"total_j", json_number(e.total)},
            {"average_w", json_number(e.watts)},
            {"joules_per_tflop", json_number(e.joules_per_tflop)},
            {"inputs", inputs_json(e.inputs)},
            {"unknown", e.unknown}};
}

Json blame_json(const Blame& blame) {
    Json parts = Json::array();
    for (const PartTime& part : blame.parts) {
        const auto figure = [&](std::optional<double> value) {
            return part.invalid.empty() ? json_number(value) : Json(nullptr);
        };
        parts.push_back({{"without", name_of(part.left_out)},
                         {"predicted_time_us", json_number(part.predicted_us)},
                         {"predicted_clock_mhz", json_number(part.predicted_clock_mhz)},
                         {"time_us", figure(part.time_us)},
                         {"time_us_low", figure(part.time_us_low)},
                         {"time_us_high", figure(part.time_us_high)},
                         {"samples", part.samples},
                         {"sm_clock_mhz", figure(part.sm_clock_mhz)},
                         {"predicted_at_clock_us", figure(part.predicted_at_clock_us)},
                         {"blamed_us", figure(part.blamed_us)},
                         {"invalid", text_or_null(part.invalid)}});
    }
    return {{"parts", std::move(parts)},
            {"predicted_clock_mhz", json_number(blame.whole_clock_mhz)},
            {"predicted_at_clock_us", json_number(blame.whole_at_clock_us)},
            {"miss_us", json_number(blame.miss_us)},
            {"clock_us", json_number(blame.clock_us)},
            {"term", text_or_null(blame.term)}};
}

}  // namespace

Json inputs_json(const std::vector<Input>& inputs) {
    Json out = Json::array();
    for (const Input& input : inputs)
        out.push_back({{"name", input.name},
                       {"value", json_number(input.value)},
                       {"unit", input.unit},
                       {"source", input.source}});
    return out;
}

void add_explanation(Json& out, const Explanation& explanation) {
    if (!explanation.attainability.empty())
        out["attainability"] = attainability_json(explanation.attainability);
    if (explanation.energy) out["energy"] = energy_json(*explanation.energy);
    if (!explanation.wins_if) return;
    out["counterfactuals"] = Json::array();
    for (const Counterfactual& c : *explanation.wins_if)
        out["counterfactuals"].push_back({{"key", c.key},
                                          {"unit", c.unit},
                                          {"value", json_number(c.value)},
                                          {"wins", c.threshold < c.value ? "below" : "above"},
                                          {"threshold", json_number(c.threshold)}});
}

void add_explanation(Json& row, const Measurement& m, bool valid) {
    if (m.blame) row["blame"] = blame_json(*m.blame);
    if (!m.explanation) return;
    if (!m.explanation->attainability.empty())
        row["attainability"] =
            attainability_json(m.explanation->attainability, valid ? std::optional(m.time_us) : std::nullopt);
    if (!m.explanation->energy) return;
    row["energy"] = energy_json(*m.explanation->energy);
    const auto joules = measured_joules(m);
    row["energy"]["measured_j"] = valid ? json_number(joules) : Json(nullptr);
}

}  // namespace rooftile
