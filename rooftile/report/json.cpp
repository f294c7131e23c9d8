#include "rooftile/report/json.hpp"

#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/report/counters.hpp"
#include "rooftile/gemm/explanation_json.hpp"

namespace rooftile {
namespace {

Json json_of(std::optional<std::int64_t> value) { return value ? Json(*value) : Json(nullptr); }

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

/// Counts, bytes and cycles are whole at the edge, to the nearest.
Json json_in(std::optional<double> value, std::string_view unit) {
    if (value && std::isfinite(*value) && (unit == "B" || unit == "cycles" || unit == "FLOP"))
        value = std::round(*value);
    return json_number(value);
}

Json prediction_json(const Prediction& p) {
    return {
        {"time_us", json_number(p.time_us)},
        {"tflops", json_number(p.tflops)},
        {"bound", p.bound ? Json(name_of(*p.bound)) : Json(nullptr)},
        {"arithmetic_intensity", json_number(p.arithmetic_intensity)},
        {"tile_compute_cycles", json_of(p.tile_compute_cycles)},
        {"stages_min", json_of(p.stages_min)},
        {"stages_for_full_rate", json_of(p.stages_for_full_rate)},
        {"waves", json_of(p.waves)},
        {"wave_efficiency", json_number(p.wave_efficiency)},
        {"moved_bytes", json_of(p.moved_bytes)},
        {"dram_bytes", json_of(p.dram_bytes)},
        {"l2_bytes", json_of(p.l2_bytes)},
        {"dram_lower_bound_bytes", json_of(p.dram_lower_bound_bytes)},
        {"l2_lower_bound_bytes", json_of(p.l2_lower_bound_bytes)},
        {"shared_traffic_bytes", json_of(p.shared_traffic_bytes)},
        {"shared_lower_bound_bytes", json_of(p.shared_lower_bound_bytes)},
        {"dram_over_bound", json_number(p.dram_over_bound())},
        {"l2_over_bound", json_number(p.l2_over_bound())},
        {"shared_over_bound", json_number(p.shared_over_bound())},
    };
}

}  // namespace

Json derivation_json(const std::vector<Step>& steps) {
    Json out = Json::array();
    for (const Step& step : steps) {
        out.push_back({{"quantity", step.quantity},
                       {"formula", step.formula},
                       {"inputs", inputs_json(step.inputs)},
                       {"value", json_in(step.value, step.unit)},
                       {"unit", step.unit},
                       {"limit", step.limit}});
    }
    return out;
}

namespace {

/// Paths of the plan's null values. `setmaxnreg` null means unused, not unknown.
Json unknown_values(const Json& plan) {
    Json out = Json::array();
    for (const char* part : {"resources", "prediction"})
        for (const auto& [key, value] : plan.at(part).items())
            if (value.is_null() && key != "setmaxnreg") out.push_back(std::string(part) + "." + key);
    for (const Json& step : plan.at("derivation")) {
        const std::string quantity = step.at("quantity");
        const bool named =
            plan.at("prediction").contains(quantity) || plan.at("resources").contains(quantity);
        if (step.at("value").is_null() && !named) out.push_back("derivation." + quantity);
    }
    return out;
}

Json plan_json(const GemmPlan& plan) {
    Json out = {{"rank", plan.rank}, {"buildable", plan.buildable}};
    if (!plan.buildable) out["why_not"] = plan.why_not;
    out["config"] = config_json(plan.config);
    out["resources"] = resources_json(plan.resources);
    out["prediction"] = prediction_json(plan.prediction);
    out["derivation"] = derivation_json(plan.derivation);
    out["unknown"] = unknown_values(out);
    out["unknown_inputs"] = plan.unknown;
    return out;
}

}  // namespace

Json rejected_json(const Rejected& rejected) {
    Json reasons = Json::object();
    for (int i = 0; i < reason_count; ++i)
        reasons[std::string(name_of(Reason(i)))] = rejected.reasons[size_t(i)];
    return {{"count", rejected.count()}, {"reasons", std::move(reasons)}};
}

namespace {

Json machine_json(const DocumentContext& context) {
    return {{"id", context.machine_id}, {"name", context.machine_name}};
}

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

/// Empty where nothing was counted. Counts, bytes and cycles are means of launches, whole at the edge.
Json counters_json(const std::optional<CounterValues>& counters) {
    Json out = Json::object();
    if (!counters) return out;
    out["chip"] = counters->chip;
    out["launches"] = counters->launches;
    out["passes"] = counters->passes;
    for (const CounterField& field : counter_fields()) {
        std::optional<double> value = (*counters).*field.value;
        const std::string_view unit = field.unit;
        if (value && std::isfinite(*value) && unit.empty()) value = std::round(*value);
        out[field.key] = json_in(value, unit);
    }
    return out;
}

Json layers_json(const std::vector<SuiteLayer>& layers) {
    Json out = Json::array();
    for (const SuiteLayer& l : layers) out.push_back({{"model", l.model}, {"layer", l.layer}});
    return out;
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

Json json_number(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return nullptr;
    constexpr double exact_limit = 9007199254740992.0;  // 2^53
    if (std::floor(*value) == *value && std::fabs(*value) <= exact_limit) return std::int64_t(*value);
    return *value;
}

Json runoff_json(const std::optional<Runoff>& runoff) {
    if (!runoff) return nullptr;
    return {{"samples", runoff->ratio.samples},
            {"ratio", json_number(runoff->ratio.median)},
            {"ratio_low", json_number(runoff->ratio.low)},
            {"ratio_high", json_number(runoff->ratio.high)},
            {"first_ratio", json_number(runoff->first_ratio)}};
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

Json problem_json(const GemmProblem& p) {
    return {{"op", "gemm"},
            {"m", p.m},
            {"n", p.n},
            {"k", p.k},
            {"a_major", a_major_name(p.a_major)},
            {"b_major", b_major_name(p.b_major)},
            {"types",
             {{"a", name_of(p.a_type)},
              {"b", name_of(p.b_type)},
              {"c", name_of(p.c_type)},
              {"accumulate", name_of(p.accumulate_type)}}},
            {"lda", p.lda},
            {"ldb", p.ldb},
            {"ldc", p.ldc},
            {"batch", p.batch},
            {"alpha", json_number(p.alpha)},
            {"beta", json_number(p.beta)},
            {"epilogue", "none"}};
}

Json config_json(const GemmConfig& c) {
    return {{"kernel", name_of(c.kernel)},
            {"tile_m", c.tile_m},
            {"tile_n", c.tile_n},
            {"tile_k", c.tile_k},
            {"stages", c.stages},
            {"consumer_warpgroups", c.consumer_warpgroups},
            {"schedule", name_of(c.schedule)},
            {"cluster_m", c.cluster_m},
            {"cluster_n", c.cluster_n},
            {"order", name_of(c.order)},
            {"group", c.group},
            {"split_k", c.split_k},
            {"ctas_per_sm", c.ctas_per_sm},
            {"deferred_store", c.deferred_store},
            {"store_n", c.store_n},
            {"programmatic_launch", c.programmatic_launch},
            {"evict_first", evict_first_letters(c)}};
}

Json resources_json(const Resources& r) {
    Json setmaxnreg = nullptr;
    if (r.producer_registers || r.consumer_registers)
        setmaxnreg = {{"producer", json_of(r.producer_registers)},
                      {"consumer", json_of(r.consumer_registers)}};
    return {
        {"threads", json_of(r.threads)},        {"accumulator_registers", json_of(r.accumulator_registers)},
        {"setmaxnreg", std::move(setmaxnreg)},  {"stage_bytes", json_of(r.stage_bytes)},
        {"stages_max", json_of(r.stages_max)},  {"shared_bytes", json_of(r.shared_bytes)},
        {"ctas_per_sm", json_of(r.ctas_per_sm)}};
}

Json plan_document(const DocumentContext& context, const std::variant<Plans, Infeasible>& outcome,
                   const std::vector<Explanation>& explanations) {
    Json out = {{"schema", "rooftile/plan/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)}};
    if (const auto* plans = std::get_if<Plans>(&outcome)) {
        out["problem"] = problem_json(plans->problem);
        out["plans"] = Json::array();
        for (std::size_t i = 0; i < plans->plans.size(); ++i) {
            out["plans"].push_back(plan_json(plans->plans[i]));
            if (!explanations.empty()) add_explanation(out["plans"].back(), explanations.at(i));
        }
        out["rejected"] = rejected_json(plans->rejected);
        out["unknown"] = plans->unknown;
        out["unchecked_walls"] = plans->unchecked_walls;
        out["notes"] = plans->notes;
        return out;
    }
    const auto& infeasible = std::get<Infeasible>(outcome);
    out["problem"] = problem_json(infeasible.problem);
    out["plans"] = Json::array();
    out["rejected"] = rejected_json(infeasible.rejected);
    out["infeasible"] = {{"reason", name_of(infeasible.reason)},
                         {"message", infeasible.message},
                         {"needed", json_number(infeasible.needed)},
                         {"available", json_number(infeasible.available)}};
    out["unknown"] = infeasible.unknown;
    out["unchecked_walls"] = infeasible.unchecked_walls;
    out["notes"] = infeasible.notes;
    return out;
}

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
