#include "rooftile/gemm/explanation_json.hpp"

#include <cmath>

#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

Value text_or_unknown(std::string_view text) { return text.empty() ? Value() : Value(text); }

/// With `measured_us` one step more.
List attainability_list(const std::vector<RoofStep>& steps, std::optional<double> measured_us = {}) {
    List out;
    const auto add = [&](std::string_view name, std::int64_t time_ns, std::int64_t cost_ns, List inputs,
                         std::string_view note) {
        out.push_back(Record{{"step", name},
                             {"time_ns", time_ns},
                             {"cost_ns", cost_ns},
                             {"inputs", std::move(inputs)},
                             {"note", text_or_unknown(note)}});
    };
    for (const RoofStep& step : steps)
        add(step.name, step.time_ns, step.cost_ns, input_list(step.inputs), step.note);
    if (!measured_us || steps.empty()) return out;
    const std::int64_t measured = std::llround(*measured_us * 1000);
    add("measured", measured, measured - steps.back().time_ns, {}, "unexplained");
    return out;
}

Record energy_record(const PlanEnergy& e) {
    return {{"matrix_j", e.matrix},
            {"fill_j", e.fill},
            {"dram_j", e.dram},
            {"static_j", e.idle},
            {"total_j", e.total},
            {"average_w", e.watts},
            {"joules_per_tflop", e.joules_per_tflop},
            {"inputs", input_list(e.inputs)},
            {"unknown", e.unknown}};
}

Value figure(const PartTime& part, std::optional<double> value) {
    return part.invalid.empty() ? Value(value) : Value();
}

Record ablation_record(const AblationStudy& study) {
    List parts;
    for (const PartTime& part : study.parts)
        parts.push_back(Record{{"without", name_of(part.ablated)},
                               {"predicted_time_us", part.predicted_us},
                               {"predicted_clock_mhz", part.predicted_clock_mhz},
                               {"time_us", figure(part, part.time_us)},
                               {"time_us_low", figure(part, part.time_us_low)},
                               {"time_us_high", figure(part, part.time_us_high)},
                               {"samples", part.samples},
                               {"sm_clock_mhz", figure(part, part.sm_clock_mhz)},
                               {"predicted_at_clock_us", figure(part, part.predicted_at_clock_us)},
                               {"attributed_us", figure(part, part.attributed_us)},
                               {"invalid", text_or_unknown(part.invalid)}});
    return {{"parts", std::move(parts)},
            {"predicted_clock_mhz", study.whole_clock_mhz},
            {"predicted_at_clock_us", study.whole_at_clock_us},
            {"miss_us", study.miss_us},
            {"clock_us", study.clock_us},
            {"term", text_or_unknown(study.term)}};
}

}  // namespace

Record explanation_record(const Explanation& explanation) {
    Record out;
    if (!explanation.attainability.empty())
        out.emplace_back("attainability", attainability_list(explanation.attainability));
    if (explanation.energy) out.emplace_back("energy", energy_record(*explanation.energy));
    if (!explanation.wins_if) return out;
    List list;
    for (const Counterfactual& c : *explanation.wins_if)
        list.push_back(Record{{"key", c.key},
                              {"unit", c.unit},
                              {"value", c.value},
                              {"wins", c.threshold < c.value ? "below" : "above"},
                              {"threshold", c.threshold}});
    out.emplace_back("counterfactuals", std::move(list));
    return out;
}

Record measured_record(const Measurement& m, const GemmMeasured& measured) {
    Record out;
    const bool valid = why_no_result(m).empty() && m.time_us;
    if (measured.ablation) out.emplace_back("ablation", ablation_record(*measured.ablation));
    if (!measured.explanation) return out;
    const Explanation& e = *measured.explanation;
    if (!e.attainability.empty())
        out.emplace_back("attainability", attainability_list(e.attainability, valid ? m.time_us : std::nullopt));
    if (!e.energy) return out;
    Record energy = energy_record(*e.energy);
    energy.emplace_back("measured_j", valid ? Value(measured_joules(m)) : Value());
    out.emplace_back("energy", std::move(energy));
    return out;
}

}  // namespace rooftile
