#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/ladder_json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/report/measured_json.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

Json config_of(const LadderRow& row) {
    if (!row.rung) return config_json(gemm_plan(row.measured).config);
    const LadderConfig c = ladder_config(*row.rung);
    return {{"kernel", fmt::format("ladder_{}", name_of(*row.rung))},
            {"tile_m", c.tile_m},
            {"tile_n", c.tile_n},
            {"tile_k", c.tile_k},
            {"stages", c.stages},
            {"cluster_m", c.cluster_m},
            {"cluster_n", 1},
            {"ctas_per_sm", c.ctas_per_sm}};
}

Json prediction_of(const LadderPrediction& p) {
    return {{"time_us", json_number(p.time_us)},
            {"tflops", json_number(p.tflops)},
            {"bound", p.bound ? Json(name_of(*p.bound)) : Json(nullptr)},
            {"clock_mhz", json_number(p.clock_mhz)},
            {"reason", p.reason},
            {"unknown", p.unknown}};
}

Json row_json(const LadderRun& run, std::size_t index) {
    const LadderRow& row = run.rows[index];
    Measurement told = row.measured;
    told.invalid = why_no_result(row);
    const Json measured = measured_row_json(told);
    const LadderRatios ratios = ratios_of(run, index);
    const bool ran = row.obstacle.empty() && row.measured.built;
    Json out = {{"rung", row.rung ? Json(static_cast<int>(*row.rung) + 1) : Json(nullptr)},
                {"name", row.rung ? Json(name_of(*row.rung)) : Json(row.name)},
                {"adds", row.adds},
                {"config", config_of(row)},
                {"threads", gemm_plan(row.measured).resources.threads.value_or(0)},
                {"predicted", prediction_of(row.prediction)},
                {"measured_over_predicted", json_number(ratios.measured_over_predicted)},
                {"speedup", json_number(ratios.speedup)},
                {"cublaslt_share", json_number(ratios.cublaslt_share)},
                {"invalid", measured.at("invalid")}};
    for (const char* key : {"registers", "compile_seconds", "verified"}) out[key] = ran ? measured.at(key) : Json(nullptr);
    for (const char* key : {"time_us", "time_us_low", "time_us_high", "interval_coverage", "samples", "tflops", "roof_fraction", "sm_clock_mhz",
                            "power_w"})
        out[key] = measured.at(key);
    return out;
}

double flops_of(const Json& problem) {
    return 2 * problem.at("m").get<double>() * problem.at("n").get<double>() * problem.at("k").get<double>();
}

std::string markdown_heading(const Json& document) {
    const Json &context = document.at("context"), &problem = document.at("problem");
    return fmt::format(
        "{}×{}×{} {}, {}, {}, driver {}, {}: `{}`\n\n"
        "| rung | adds | predicted | measured | measured / predicted | TFLOP/s | × the rung before | of "
        "cuBLASLt |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|\n",
        problem.at("m").dump(), problem.at("n").dump(), problem.at("k").dump(),
        problem.at("types").at("a").get<std::string>(), document.at("mode").get<std::string>(),
        context.value("gpu", "no GPU"), context.value("driver", "unknown"),
        context.value("date", "").substr(0, 10), context.at("command").get<std::string>());
}

std::string markdown_row(const Json& row) {
    const auto cell = [&](const Json& value, auto&& text) {
        return value.is_number() ? text(value.template get<double>()) : std::string("–");
    };
    const auto ratio = [](double value) { return number_text(value, 3); };
    const std::string number = row.at("rung").is_null() ? "" : row.at("rung").dump() + " ";
    return fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} |\n", number,
                       row.at("name").get<std::string>(), row.at("adds").get<std::string>(),
                       cell(row.at("predicted").at("time_us"), time_text), cell(row.at("time_us"), time_text),
                       cell(row.at("measured_over_predicted"), ratio), cell(row.at("tflops"), ratio),
                       cell(row.at("speedup"), ratio), cell(row.at("cublaslt_share"), percent_text));
}

}  // namespace

std::string why_no_result(const LadderRow& row) {
    return row.obstacle.empty() ? why_no_result(row.measured) : row.obstacle;
}

LadderRatios ratios_of(const LadderRun& run, std::size_t index) {
    LadderRatios ratios;
    const LadderRow& row = run.rows[index];
    if (!why_no_result(row).empty() || !row.measured.time_us) return ratios;
    const double us = *row.measured.time_us;
    if (row.prediction.time_us) ratios.measured_over_predicted = us / *row.prediction.time_us;
    if (const auto best = run.cublaslt_best_us()) ratios.cublaslt_share = *best / us;
    if (index == 0) return ratios;
    const LadderRow& before = run.rows[index - 1];
    if (why_no_result(before).empty() && before.measured.time_us)
        ratios.speedup = *before.measured.time_us / us;
    return ratios;
}

Json ladder_document(const DocumentContext& context, const LadderRun& run, bool timings) {
    Json out = {{"schema", "rooftile/ladder/1"},
                {"context", context_json(context)},
                {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
                {"problem", problem_json(run.problem)},
                {"mode", name_of(run.mode)},
                {"rows", Json::array()},
                {"baselines",
                 {{"cublaslt_top1_us", json_number(run.baseline_us(cublaslt_top1))},
                  {"cublaslt_best_us", json_number(run.cublaslt_best_us())},
                  {"missing", text_or_null(run.baseline_missing)}}},
                {"notes", run.notes}};
    for (std::size_t i = 0; i < run.rows.size(); ++i) out["rows"].push_back(row_json(run, i));
    if (timings) out["timings"] = timings_json(run.timings);
    return out;
}

std::string ladder_markdown(const Json& document) {
    if (!document.is_object() || document.value("schema", "") != "rooftile/ladder/1")
        throw RequestError("not a ladder: its schema is not rooftile/ladder/1");
    try {
        std::string out = markdown_heading(document);
        for (const Json& row : document.at("rows")) out += markdown_row(row);
        const Json& best = document.at("baselines").at("cublaslt_best_us");
        if (best.is_number())
            out += fmt::format("| cuBLASLt | best of 8 | | {} | | {} | | |\n", time_text(best.get<double>()),
                               number_text(flops_of(document.at("problem")) / best.get<double>() * 1e-6, 3));
        return out;
    } catch (const Json::exception& fault) {
        throw RequestError(fmt::format("not a whole ladder: {}", fault.what()));
    }
}

}  // namespace rooftile
