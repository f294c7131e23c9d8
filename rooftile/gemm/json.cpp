#include "rooftile/gemm/json.hpp"

#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/gemm/explanation_json.hpp"
#include "rooftile/gemm/records.hpp"
#include "rooftile/report/counters.hpp"

namespace rooftile {
namespace {

/// The figures of a row that is a result; null in one that is not.
void add_figures(Json& row, const Measurement& m, bool valid) {
    auto figure = [&](std::optional<double> value) { return valid ? json_number(value) : Json(nullptr); };
    row["time_us"] = figure(m.time_us);
    row["time_us_low"] = figure(m.time_us_low);
    row["time_us_high"] = figure(m.time_us_high);
    row["samples"] = m.samples;
    row["tflops"] = figure(m.tflops);
    row["gbytes_per_s"] = figure(m.gbytes_per_s);
    row["roof_fraction"] = figure(m.roof_fraction);
}

Json measurement_json(const Measurement& m) {
    const std::string invalid = why_no_result(m);
    Json row = {{"problem", problem_json(m.plan.problem)},
                {"layers", layers_json(m.layers)},
                {"rank", m.plan.rank},
                {"plans", m.plans},
                {"config", config_json(m.plan.config)},
                {"mode", name_of(m.mode)}};
    add_figures(row, m, invalid.empty());
    row["predicted_time_us"] = json_number(m.plan.prediction.time_us);
    row["predicted_bound"] =
        m.plan.prediction.bound ? Json(name_of(*m.plan.prediction.bound)) : Json(nullptr);
    row["verified"] = {{"exact", m.verified.exact},
                       {"random", m.verified.random},
                       {"special", m.verified.special},
                       {"max_error", json_number(m.verified.max_error)},
                       {"bound", json_number(m.verified.bound)},
                       {"failure", text_or_null(m.verified.failure)}};
    row["rank1_ratio"] = invalid.empty() ? json_number(m.rank1_ratio) : Json(nullptr);
    row["runoff"] = invalid.empty() ? runoff_json(m.runoff) : Json(nullptr);
    row["sm_clock_mhz"] = json_number(m.sm_clock_mhz);
    row["power_w"] = json_number(m.power_w);
    row["baselines"] = {{"cublaslt_top1_us", json_number(m.baselines.cublaslt_top1_us)},
                        {"cublaslt_best_us", json_number(m.baselines.cublaslt_best_us)},
                        {"copy_us", json_number(m.baselines.copy_us)},
                        {"cublaslt_ratio", json_number(m.baselines.cublaslt_ratio)},
                        {"cublaslt_ratio_low", json_number(m.baselines.cublaslt_ratio_low)},
                        {"cublaslt_ratio_high", json_number(m.baselines.cublaslt_ratio_high)},
                        {"missing", text_or_null(m.baselines.missing)},
                        {"cublaslt_best_counters", counters_json(m.baselines.cublaslt_best_counters)}};
    row["counters"] = counters_json(m.counters);
    add_explanation(row, m, invalid.empty());
    row["invalid"] = text_or_null(invalid);
    return row;
}

}  // namespace

std::string why_no_result(const Measurement& m) {
    if (!m.invalid.empty()) return m.invalid;
    if (m.verified.ok()) return {};
    return "the result is wrong" + (m.verified.failure.empty() ? std::string() : ": " + m.verified.failure);
}

Json problem_json(const GemmProblem& p) {
    Json out = {{"op", "gemm"}};
    out.update(to_json(problem_record(p)));
    return out;
}

Json config_json(const GemmConfig& config) { return to_json(config_record(config)); }

Json measurement_document(const DocumentContext& context, const std::vector<Measurement>& measurements,
                          const std::vector<Timing>& timings, const std::vector<std::string>& notes) {
    Json out = {{"schema", "rooftile/measurement/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)},
                {"rows", Json::array()},
                {"notes", notes}};
    for (const Measurement& m : measurements) out["rows"].push_back(measurement_json(m));
    if (!timings.empty()) {
        out["timings"] = Json::array();
        for (const Timing& t : timings)
            out["timings"].push_back({{"part", t.part}, {"seconds", json_number(t.seconds)}});
    }
    return out;
}

std::vector<Json> measurement_lines(const DocumentContext& context, const std::vector<Measurement>& rows,
                                    const std::vector<std::string>& notes) {
    std::vector<Json> lines = row_lines(measurement_document(context, rows));
    for (Json& line : lines) line["notes"] = notes;
    return lines;
}

Json infeasible_line(const DocumentContext& context, const Infeasible& infeasible,
                     const std::vector<SuiteLayer>& layers, Mode mode) {
    Measurement none;
    none.plan.problem = infeasible.problem;
    none.mode = mode;
    none.layers = layers;
    none.plans = 0;
    none.invalid = "no plan fits: " + infeasible.message;
    Json line = measurement_lines(context, {none}, infeasible.notes).front();
    line["config"] = nullptr;
    line["rank"] = nullptr;
    return line;
}

}  // namespace rooftile
