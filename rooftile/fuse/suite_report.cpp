#include "rooftile/fuse/suite_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

constexpr std::int64_t min_row = 1024, max_row = 262144;

FuseKind kind_of(const FuseSuiteRow& row) {
    if (row.roof == "read") return FuseKind::reading;
    if (row.reduces_rows)
        return row.columns >= min_row && row.columns <= max_row ? FuseKind::row : FuseKind::edge_row;
    return row.issue_roof_us ? FuseKind::pointwise_issue : FuseKind::pointwise;
}

FuseFigures figures_of(const SuiteShape& shape) {
    FuseFigures f;
    const bool ranked = shape.rank1() != nullptr;
    f.row = fuse_row(ranked ? *shape.rank1() : shape.first());
    const FuseSuiteRow* first = ranked ? &f.row : nullptr;
    for (const SuiteLayer& layer : f.row.layers)
        f.name += (f.name.empty() ? "" : ", ") + layer.model + " " + layer.layer;
    if (!first || !first->time_us) {
        f.why_none = f.row.invalid.empty() ? "no row of rank 1" : f.row.invalid;
        return f;
    }
    const double us = *first->time_us;
    f.kind = kind_of(*first);
    f.share = f.kind == FuseKind::pointwise_issue ? *first->issue_roof_us / us : first->roof_fraction;
    if (first->unfused_us) f.speedup = *first->unfused_us / us;
    if (first->predicted_us) f.prediction_error = *first->predicted_us / us - 1;
    f.best_of_own = shape.best_of_own();
    return f;
}

/// `value` of every problem that has one, the worst kept.
template <class Value>
FuseBar bar_of(const FuseSuiteReport& report, std::string name, double wanted, bool at_least, Value value) {
    FuseBar bar{std::move(name), wanted, at_least, 0, {}, "", false};
    for (const FuseFigures& f : report.problems) {
        const std::optional<double> v = value(f);
        if (!v) continue;
        ++bar.count;
        if (bar.worst && (at_least ? *v >= *bar.worst : *v <= *bar.worst)) continue;
        bar.worst = v;
        bar.where = f.name;
    }
    return bar;
}

FuseBar share_bar(const FuseSuiteReport& report, std::string name, double wanted, FuseKind kind) {
    return bar_of(report, std::move(name), wanted, true, [kind](const FuseFigures& f) {
        return f.kind == kind && f.why_none.empty() ? f.share : std::nullopt;
    });
}

void set_bars(FuseSuiteReport& report) {
    auto& bars = report.bars;
    bars.push_back(share_bar(report, "point-wise, of copy", 0.97, FuseKind::pointwise));
    bars.push_back(
        share_bar(report, "point-wise bound by issue, of the issue roof", 0.95, FuseKind::pointwise_issue));
    bars.back().may_be_of_none = true;
    bars.push_back(share_bar(report, "rows of 1024 to 262144, of copy", 0.92, FuseKind::row));
    bars.push_back(share_bar(report, "shorter and longer rows, of copy", 0.75, FuseKind::edge_row));
    bars.push_back(share_bar(report, "sums and maxima, of read", 0.95, FuseKind::reading));
    const auto error = [](const FuseFigures& f) -> std::optional<double> {
        if (!f.prediction_error) return std::nullopt;
        return std::fabs(*f.prediction_error);
    };
    FuseBar mean{"prediction, mean error", 0.05, false, 0, {}, "all", false};
    std::vector<double> errors;
    for (const FuseFigures& f : report.problems)
        if (f.prediction_error) errors.push_back(*f.prediction_error);
    mean.count = int(errors.size());
    report.prediction_error = prediction_error(errors);
    if (report.prediction_error) mean.worst = report.prediction_error->mean;
    bars.push_back(std::move(mean));
    bars.push_back(bar_of(report, "prediction, worst error", 0.15, false, error));
    bars.push_back(bar_of(report, "plan 1 slower than the best of its own", 0.05, false,
                          [](const FuseFigures& f) -> std::optional<double> {
                              if (!f.best_of_own) return std::nullopt;
                              return *f.best_of_own - 1;
                          }));
}

std::string ratio_text(const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value) : std::string("-");
}

TextTable problem_cells(const FuseSuiteReport& r) {
    TextTable cells;
    cells.columns = {{"problem", Align::left},
                     {"time"},
                     {"of roof"},
                     {"roof", Align::left},
                     {"of issue", Align::right, 2},
                     {"x unfused", Align::right, 1},
                     {"predicted", Align::right, 1},
                     {"off"},
                     {"behind best"},
                     {"plan 1", Align::left, 3}};
    for (const FuseFigures& f : r.problems) {
        const FuseSuiteRow& row = f.row;
        if (!f.why_none.empty()) {
            cells.rows.push_back({f.name, "none", "-", "", "-", "-", "-", "-", "-", f.why_none});
            continue;
        }
        cells.rows.push_back(
            {f.name, time_text(*row.time_us), ratio_text(row.roof_fraction), row.roof,
             row.issue_roof_us ? ratio_text(*row.issue_roof_us / *row.time_us) : "-",
             f.speedup ? fmt::format("{:.2f}", *f.speedup) : "-",
             row.predicted_us ? time_text(*row.predicted_us) : "-", signed_percent(f.prediction_error),
             f.best_of_own ? fmt::format("{:.1f} %", 100 * (*f.best_of_own - 1)) : "-", row.label});
    }
    return cells;
}

bool is_share(const FuseBar& bar) { return bar.at_least; }

std::string value_text(const FuseBar& bar, double value) {
    return is_share(bar) ? fmt::format("{:.3f}", value) : fmt::format("{:.1f} %", 100 * value);
}

TextTable bar_cells(const FuseSuiteReport& r) {
    TextTable cells;
    cells.columns = {{"must hold", Align::left}, {"wanted", Align::left}, {"problems"}, {"worst"},
                     {"", Align::left},          {"of", Align::left, 1}};
    for (const FuseBar& bar : r.bars)
        cells.rows.push_back({bar.name, (is_share(bar) ? ">= " : "<= ") + value_text(bar, bar.wanted),
                              std::to_string(bar.count), bar.worst ? value_text(bar, *bar.worst) : "-",
                              bar.count == 0 ? "none"
                              : bar.ok()     ? "OK"
                                             : "MISSED",
                              bar.where});
    return cells;
}

std::string heading(const FuseSuiteReport& r) {
    return fmt::format("{}, driver {}, rooftile {}, {}: {} problems of suite {}, {}",
                       r.record.gpu.empty() ? r.record.machine_name : r.record.gpu, r.record.driver,
                       r.record.version, r.record.date.substr(0, 10), r.problems.size(), r.record.suite,
                       r.mode);
}

constexpr std::string_view suite_meaning =
    "Roof: the time of the faster of two copies of as many bytes, or of reading as many where little is "
    "written, over ours. Issue: what the planned instructions take at the measured clock, over ours. "
    "Behind best: how much slower plan 1 is than the fastest of the plans measured with it.";

std::string prediction_text(const FuseSuiteReport& r) {
    return r.prediction_error ? "Predictions are off by " + prediction_error_text(*r.prediction_error) + "." : "";
}

std::string missing_text(const FuseSuiteReport& r) {
    return r.missing.empty() ? ""
                             : fmt::format("{} problems of the suite are not measured, the first {}.",
                                           r.missing.size(), r.missing.front());
}

}  // namespace

FuseSuiteReport fuse_suite_report(SuiteRecord record, const Suite* suite) {
    FuseSuiteReport report;
    const std::vector<SuiteShape> shapes = record.take_shapes();
    report.record = std::move(record);
    for (const SuiteShape& shape : shapes) {
        report.problems.push_back(figures_of(shape));
        report.mode = shape.first().mode;
    }
    set_bars(report);
    if (suite) report.missing = not_measured(*suite, shapes);
    return report;
}

std::vector<std::string> missed_bars(const FuseSuiteReport& report) {
    std::vector<std::string> missed;
    for (const FuseBar& bar : report.bars) {
        if (bar.ok()) continue;
        if (bar.count == 0) missed.push_back(bar.name + ": none of the problems is of this kind");
        else
            missed.push_back(fmt::format("{}: {} ({}); wanted {}", bar.name,
                                         bar.worst ? value_text(bar, *bar.worst) : "none", bar.where,
                                         value_text(bar, bar.wanted)));
    }
    for (const FuseFigures& f : report.problems) {
        if (!f.why_none.empty()) missed.push_back(fmt::format("{}: no result: {}", f.name, f.why_none));
        else if (!f.share) missed.push_back(fmt::format("{}: nothing was timed next to it", f.name));
    }
    if (!report.missing.empty()) missed.push_back(missing_text(report));
    return missed;
}

std::string suite_text(const FuseSuiteReport& r, const Terminal& terminal) {
    const auto paragraph = [&](std::string_view text) {
        return wrapped(displayable(text, terminal.utf8), terminal.prose(), 0) + "\n";
    };
    std::string out = paragraph(heading(r)) + "\n" + paragraph(suite_meaning) + "\n";
    out += text_table(problem_cells(r), terminal) + "\n" + text_table(bar_cells(r), terminal);
    if (r.prediction_error) out += "\n" + paragraph(prediction_text(r));
    return r.missing.empty() ? out : out + "\n" + paragraph(missing_text(r));
}

std::string suite_markdown(const FuseSuiteReport& r) {
    std::string out =
        "**" + markdown_cell(heading(r)) + "**\n\n" + markdown_cell(std::string(suite_meaning)) + "\n\n";
    out += markdown_table(problem_cells(r)) + "\n" + markdown_table(bar_cells(r));
    if (r.prediction_error) out += "\n" + markdown_cell(prediction_text(r)) + "\n";
    return r.missing.empty() ? out : out + "\n" + markdown_cell(missing_text(r)) + "\n";
}

}  // namespace rooftile
