#include "rooftile/report/suite_table.hpp"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

struct Figures {
    std::string name;
    std::string why_none;  ///< where there is no result
    std::string config;
    std::optional<double> time_us, tflops, error, best_of_own, baseline;  ///< baseline: its time over ours
};

struct Report {
    std::string heading;
    SuiteTable own;
    std::vector<Figures> problems;
    std::vector<std::string> facts;
    std::vector<std::string> missed;
};

Figures figures_of(const SuiteShape& shape, const SuiteTable& own) {
    const SuiteRow* first = shape.rank1();
    const SuiteRow& row = first ? *first : shape.first();
    Figures f;
    for (const SuiteLayer& layer : row.layers) f.name += (f.name.empty() ? "" : ", ") + layer.model + " " + layer.layer;
    if (!first || !first->time_us) {
        f.why_none = row.invalid.empty() ? "no row of rank 1" : row.invalid;
        return f;
    }
    f.time_us = first->time_us;
    const Json line = Json::parse(first->line);
    f.tflops = positive_at(line, "tflops");
    if (!own.config_key.empty()) f.config = line.at("config").at(std::string(own.config_key)).get<std::string>();
    if (!own.baseline_key.empty())
        if (const auto other = positive_at(line.at("baselines"), std::string(own.baseline_key).c_str())) f.baseline = *other / *first->time_us;
    if (first->predicted_us) f.error = *first->predicted_us / *first->time_us - 1;
    f.best_of_own = shape.best_of_own();
    return f;
}

void add_facts(Report& report) {
    std::vector<double> errors;
    double within = 0, ranked = 0, ratios = 0, compared = 0;
    for (const Figures& f : report.problems) {
        if (f.error) errors.push_back(*f.error);
        if (f.baseline) ratios += std::log(*f.baseline), ++compared;
        if (f.best_of_own) within += *f.best_of_own <= report.own.near, ++ranked;
    }
    if (const auto error = prediction_error(errors))
        report.facts.push_back("Predictions are off by " + prediction_error_text(*error) + ".");
    if (ranked > 0)
        report.facts.push_back(fmt::format("Plan 1 is within {:.0f} % of the fastest of its own on {:.0f} of {:.0f}.",
                                           100 * (report.own.near - 1), within, ranked));
    if (compared > 0)
        report.facts.push_back(fmt::format("{} {} of its time (geometric mean of {:.0f}).", report.own.baseline_name,
                                           number_text(std::exp(ratios / compared), 3), compared));
}

Report report_of(SuiteRecord record, const Suite* suite, const SuiteTable& own) {
    Report report;
    report.own = own;
    const std::vector<SuiteShape> shapes = record.take_shapes();
    for (const SuiteShape& shape : shapes) {
        const Figures& f = report.problems.emplace_back(figures_of(shape, own));
        if (!f.why_none.empty()) report.missed.push_back(f.name + ": no result: " + f.why_none);
    }
    report.heading = fmt::format("{}, driver {}, rooftile {}, {}: {} problems of suite {}",
                                 record.gpu.empty() ? record.machine_name : record.gpu, record.driver, record.version,
                                 record.date.substr(0, 10), shapes.size(), record.suite);
    add_facts(report);
    const std::vector<std::string> missing = suite ? not_measured(*suite, shapes) : std::vector<std::string>();
    if (!missing.empty())
        report.facts.push_back(fmt::format("{} problems of the suite are not measured, the first {}.", missing.size(), missing.front()));
    for (const std::string& name : missing) report.missed.push_back(name + ": not measured");
    return report;
}

TextTable cells_of(const Report& report) {
    using Align = Table::Align;
    const bool config = !report.own.config_key.empty(), baseline = !report.own.baseline_key.empty();
    TextTable cells;
    const auto column = [&](std::string heading, bool there = true, Align align = Align::right, int drop = 0) {
        if (there) cells.columns.push_back({std::move(heading), align, drop});
    };
    column("problem", true, Align::left);
    column(std::string(report.own.config_heading), config, Align::left, 2);
    column("time"), column("TFLOP/s"), column("off");
    column(std::string(report.own.baseline_heading), baseline, Align::right, 2);
    column("behind best", true, Align::right, 1);
    for (const Figures& f : report.problems) {
        const bool none = !f.why_none.empty();
        std::vector<std::string>& row = cells.rows.emplace_back();
        const auto cell = [&](std::string text, bool there = true) {
            if (there) row.push_back(std::move(text));
        };
        cell(f.name);
        cell(none ? "-" : f.config, config);
        cell(none ? "none" : time_text(*f.time_us));
        cell(f.tflops ? number_text(*f.tflops) : "-");
        cell(f.error ? signed_percent(f.error) : "-");
        cell(f.baseline ? number_text(*f.baseline, 3) : "-", baseline);
        cell(none ? f.why_none : f.best_of_own ? percent_text(*f.best_of_own - 1) : "-");
    }
    return cells;
}

}  // namespace

SuiteReporter suite_table_reporter(SuiteRecord record, const Suite* suite, const SuiteTable& own) {
    const auto report = std::make_shared<const Report>(report_of(std::move(record), suite, own));
    return {[report](const Terminal& terminal) {
                std::string out = wrapped(displayable(report->heading, terminal.utf8), terminal.prose(), 0) + "\n\n"
                                  + text_table(cells_of(*report), terminal) + "\n";
                for (const std::string& fact : report->facts) out += wrapped(fact, terminal.prose(), 0) + "\n";
                return out;
            },
            [report] {
                std::string out = "**" + markdown_cell(report->heading) + "**\n\n" + markdown_table(cells_of(*report)) + "\n";
                for (const std::string& fact : report->facts) out += "- " + markdown_cell(fact) + "\n";
                return out;
            },
            report->missed};
}

}  // namespace rooftile
