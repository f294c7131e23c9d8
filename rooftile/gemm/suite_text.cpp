// A suite's report as text for a terminal and as Markdown: the same tables.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/gemm/suite_report.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

const ClassFigures& of(const ModelFigures& model, MClass which) {
    return model.classes[static_cast<std::size_t>(which)];
}

/// "1.012 (0.957)": geometric mean and least.
std::string spread_text(const Spread& s) {
    return s.count == 0 ? "-" : fmt::format("{:.3f} ({:.3f})", s.geomean, s.least);
}

std::string losses_text(const ClassFigures& c) {
    return c.ratio.count == 0 ? "-" : fmt::format("{} of {}", c.losses, c.ratio.count);
}

std::string names_of(const GemmSuiteRow& row) {
    std::string names;
    for (const SuiteLayer& layer : row.layers)
        names += fmt::format("{}{} {}", names.empty() ? "" : ", ", layer.model, layer.layer);
    return names;
}

std::string shape_of(const GemmSuiteRow& row) { return fmt::format("{}x{}x{}", row.m, row.n, row.k); }

std::string interval_text(const GemmSuiteRow& row) {
    if (!row.cublaslt_ratio_low || !row.cublaslt_ratio_high) return "";
    const std::string coverage =
        row.cublaslt_ratio_coverage ? fmt::format(" ({:.1f} %)", 100 * *row.cublaslt_ratio_coverage) : "";
    return fmt::format("{:.3f} to {:.3f}{}", *row.cublaslt_ratio_low, *row.cublaslt_ratio_high, coverage);
}

/// What was run, on what, when.
std::string heading(const SuiteReport& r) {
    std::string text =
        fmt::format("{}, driver {}, rooftile {}, {}: {} problems of suite {}, {}",
                    r.record.gpu.empty() ? r.record.machine_name : r.record.gpu, r.record.driver,
                    r.record.version, r.record.date.substr(0, 10), r.shapes.size(), r.record.suite, r.mode);
    return text;
}

/// How often rank 1 is the right choice, and by which figures.
std::string ranking_text(const SuiteReport& r) {
    std::string text = fmt::format(
        "The plan ranked first is within 3 % of the fastest of its own on {} of {} problems ({}):",
        r.ranked_right, r.ranked, percent_text(double(r.ranked_right) / r.ranked));
    const auto list = [&](int count, std::string_view by) {
        if (count > 0) text += fmt::format("{} {} by {}", text.ends_with(":") ? "" : ",", count, by);
    };
    list(r.confirmed, "a paired re-measurement of the two in blocks of their own");
    list(r.ranked - r.confirmed - r.by_medians, "the rounds that found the fastest");
    list(r.by_medians, "medians over different rounds");
    return text + ".";
}

std::vector<std::string> facts(const SuiteReport& r) {
    std::vector<std::string> lines;
    if (r.ranked > 0) lines.push_back(ranking_text(r));
    const auto by_medians = std::count_if(r.shapes.begin(), r.shapes.end(),
                                          [](const ShapeFigures& s) { return s.ratio_by_medians; });
    if (by_medians > 0)
        lines.push_back(
            fmt::format("{} of the ratios to cuBLASLt are of medians, as the rows have none of the "
                        "same rounds.",
                        by_medians));
    if (r.prediction_error)
        lines.push_back(
            fmt::format("Predicted time over measured: geometric mean {:.3f}, off by {}.",
                        r.prediction.geomean, prediction_error_text(*r.prediction_error)));
    if (r.dram_bytes_per_s)
        lines.push_back(
            fmt::format("Share of DRAM: A and B read once and C written once, per time, of {} ({} of {}).",
                        scaled_text(*r.dram_bytes_per_s, "B/s"), r.dram_key, r.record.machine_id));
    for (const LaunchFigures& f : r.launches) lines.push_back(launch_text(f));
    int without = 0;
    for (const ShapeFigures& s : r.shapes) without += !s.why_none.empty();
    if (without > 0) lines.push_back(fmt::format("{} problems have no result:", without));
    for (const ShapeFigures& s : r.shapes)
        if (!s.why_none.empty()) lines.push_back(fmt::format("{}: {}", shape_of(s.row), s.why_none));
    if (!r.missing.empty())
        lines.push_back(fmt::format("{} problems of the suite are not measured.", r.missing.size()));
    return lines;
}

TextTable model_cells(const SuiteReport& r) {
    TextTable cells;
    cells.columns = {{"model", Align::left},
                     {std::string(name_of(MClass::large))},
                     {"slower", Align::right, 1},
                     {std::string(name_of(MClass::middle))},
                     {"slower", Align::right, 1},
                     {std::string(name_of(MClass::small))},
                     {"share of DRAM", Align::right, 2}};
    for (const ModelFigures& m : r.models) {
        const ClassFigures &large = of(m, MClass::large), &middle = of(m, MClass::middle),
                           &small = of(m, MClass::small);
        cells.rows.push_back({m.model, spread_text(large.ratio), losses_text(large),
                              spread_text(middle.ratio), losses_text(middle), spread_text(small.ratio),
                              spread_text(small.dram_share)});
    }
    return cells;
}

TextTable worst_cells(const SuiteReport& r) {
    TextTable cells;
    cells.columns = {
        {"M x N x K", Align::left},        {"layer", Align::left, 2}, {"ours"}, {"cuBLASLt"}, {"ratio"},
        {"interval", Align::left, 1},      {"plan", Align::left, 3}};
    for (const std::size_t i : r.worst) {
        const ShapeFigures& s = r.shapes[i];
        cells.rows.push_back({shape_of(s.row), names_of(s.row), time_text(*s.row.time_us),
                              s.row.cublaslt_best_us ? time_text(*s.row.cublaslt_best_us) : "-",
                              fmt::format("{:.3f}", *s.ratio), interval_text(s.row), s.row.label});
    }
    return cells;
}

constexpr std::string_view table_meaning =
    "Time of cuBLASLt's best of 8 over ours in the same rounds, geometric mean (and least); above 1 ours is "
    "faster. cuBLASLt's best is the fastest in these very rounds, which favours it. "
    "\"slower\": problems on which ours is not.";
constexpr std::string_view worst_meaning = "The ten worst with M of 128 or more:";

}  // namespace

std::string suite_text(const SuiteReport& r, const Terminal& terminal) {
    const auto paragraph = [&](std::string_view text) {
        return wrapped(displayable(text, terminal.utf8), terminal.prose(), 0) + "\n";
    };
    std::string out = paragraph(heading(r)) + "\n" + paragraph(table_meaning) + "\n";
    out += text_table(model_cells(r), terminal) + "\n";
    for (const std::string& line : facts(r)) out += paragraph(line);
    if (r.worst.empty()) return out;
    return out + "\n" + paragraph(worst_meaning) + "\n" + text_table(worst_cells(r), terminal);
}

std::string suite_markdown(const SuiteReport& r) {
    std::string out =
        "**" + markdown_cell(heading(r)) + "**\n\n" + markdown_cell(std::string(table_meaning)) + "\n\n";
    out += markdown_table(model_cells(r)) + "\n";
    for (const std::string& line : facts(r)) out += "- " + markdown_cell(line) + "\n";
    if (r.worst.empty()) return out;
    return out + "\n" + std::string(worst_meaning) + "\n\n" + markdown_table(worst_cells(r));
}

}  // namespace rooftile
