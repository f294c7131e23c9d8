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

std::int64_t rounded(double value) { return std::llround(value); }

Record roofline_record(const Roofline& r) {
    List peaks, levels;
    for (const RooflinePeak& peak : r.peaks)
        peaks.push_back(Record{{"name", peak.name}, {"flop_per_s", peak.flops}, {"clock_mhz", peak.clock_hz / 1e6}, {"source", peak.source}});
    for (const RooflineLevel& level : r.levels)
        levels.push_back(Record{{"level", level.name},
                                {"key", level.bandwidth.name},
                                {"bytes", rounded(level.bytes)},
                                {"bytes_per_s", level.bytes_per_second},
                                {"source", level.bandwidth.source}});
    return {{"flop", rounded(r.flop)}, {"peaks", std::move(peaks)}, {"levels", std::move(levels)}};
}

Record pipeline_record(const PipelineCycles& p) {
    List units;
    for (const UnitCycles& unit : p.units) units.push_back(Record{{"unit", unit.unit}, {"cycles", rounded(unit.cycles)}});
    return {{"stages", p.stages},
            {"steps", p.steps},
            {"step_cycles", rounded(p.step)},
            {"load_cycles", rounded(p.load)},
            {"first_load_cycles", rounded(p.first_load)},
            {"load_interval_cycles", rounded(p.interval)},
            {"turn_cycles", rounded(p.turn)},
            {"epilogue_cycles", rounded(p.epilogue)},
            {"epilogue_overlapped", p.epilogue_overlapped},
            {"clock_mhz", p.clock_hz / 1e6},
            {"units", std::move(units)}};
}

Record energy_record(const Energy& e) {
    return {{"matrix_j", e.matrix},
            {"instruction_j", e.instructions},
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
    if (explanation.roofline) out.emplace_back("roofline", roofline_record(*explanation.roofline));
    if (explanation.pipeline) out.emplace_back("pipeline", pipeline_record(*explanation.pipeline));
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

Record map_record(const PlanMap& map) {
    List cells;
    for (const MapCell& cell : map.cells)
        cells.push_back(Record{{map.x, cell.x},
                               {map.y, cell.y},
                               {"time_us", cell.time_us},
                               {"label", cell.label.empty() ? Value() : Value(cell.label)},
                               {"wall", cell.wall ? Value(name_of(*cell.wall)) : Value()},
                               {"why", cell.why.empty() ? Value() : Value(cell.why)}});
    return {{"x", map.x}, {"y", map.y}, {"cells", std::move(cells)}};
}

std::vector<Record> explanation_records(std::span<const Explanation> explanations) {
    std::vector<Record> out;
    for (const Explanation& explanation : explanations) out.push_back(explanation_record(explanation));
    return out;
}

}  // namespace rooftile
