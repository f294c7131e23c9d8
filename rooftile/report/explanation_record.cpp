#include "rooftile/report/explanation_record.hpp"

#include <cmath>

namespace rooftile {
namespace {

/// With `measured_us` one step more.
List attainability_list(const std::vector<RoofStep>& steps, std::optional<double> measured_us = {}) {
    List out;
    const auto add = [&](std::string_view name, std::int64_t time_ns, std::int64_t cost_ns, List inputs,
                         std::string_view note) {
        out.push_back(Record{{"step", name},
                             {"time_ns", time_ns},
                             {"cost_ns", cost_ns},
                             {"inputs", std::move(inputs)},
                             {"note", note.empty() ? Value() : Value(note)}});
    };
    for (const RoofStep& step : steps)
        add(step.name, step.time_ns, step.cost_ns, input_list(step.inputs), step.note);
    if (!measured_us || steps.empty()) return out;
    const std::int64_t measured = std::llround(*measured_us * 1000);
    add("measured", measured, measured - steps.back().time_ns, {}, "unexplained");
    return out;
}

Record energy_record(const Energy& e) {
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

}  // namespace

Record explanation_record(const Explanation& explanation, const MeasuredRun* measured) {
    Record out;
    if (!explanation.attainability.empty())
        out.emplace_back("attainability",
                         attainability_list(explanation.attainability, measured ? measured->time_us : std::nullopt));
    if (explanation.energy) {
        Record energy = energy_record(*explanation.energy);
        if (measured) energy.emplace_back("measured_j", measured->joules);
        out.emplace_back("energy", std::move(energy));
    }
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

std::vector<Record> explanation_records(std::span<const Explanation> explanations) {
    std::vector<Record> out;
    for (const Explanation& explanation : explanations) out.push_back(explanation_record(explanation));
    return out;
}

}  // namespace rooftile
