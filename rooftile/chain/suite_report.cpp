#include "rooftile/chain/suite_report.hpp"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

struct Figures {
    std::string name;
    std::string why_none;  ///< where there is no result
    std::string form;
    std::optional<double> time_us, tflops, error, best_of_own, two_calls;  ///< two_calls: the library's time over ours
};

struct Report {
    std::string heading;
    std::vector<Figures> problems;
    std::vector<std::string> facts;
    std::vector<std::string> missed;
};

Figures figures_of(const SuiteShape& shape) {
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
    f.form = line.at("config").at("form").get<std::string>();
    if (const auto two = positive_at(line.at("baselines"), "two_calls_us")) f.two_calls = *two / *first->time_us;
    if (first->predicted_us) f.error = *first->predicted_us / *first->time_us - 1;
    f.best_of_own = shape.best_of_own();
    return f;
}

Report report_of(SuiteRecord record, const Suite* suite) {
    Report report;
    const std::vector<SuiteShape> shapes = record.take_shapes();
    double errors = 0, counted = 0, within = 0, ranked = 0, ratios = 0, compared = 0;
    for (const SuiteShape& shape : shapes) {
        report.problems.push_back(figures_of(shape));
        const Figures& f = report.problems.back();
        if (f.error) errors += std::fabs(*f.error), ++counted;
        if (f.two_calls) ratios += std::log(*f.two_calls), ++compared;
        constexpr double near = 1.02;
        if (f.best_of_own) within += *f.best_of_own <= near, ++ranked;
        if (!f.why_none.empty()) report.missed.push_back(f.name + ": no result: " + f.why_none);
    }
    report.heading = fmt::format("{}, driver {}, rooftile {}, {}: {} problems of suite {}",
                                 record.gpu.empty() ? record.machine_name : record.gpu, record.driver, record.version,
                                 record.date.substr(0, 10), shapes.size(), record.suite);
    if (counted > 0) report.facts.push_back("Prediction, mean error: " + percent_text(errors / counted) + ".");
    if (ranked > 0)
        report.facts.push_back(fmt::format("Plan 1 is within 2 % of the fastest of its own on {:.0f} of {:.0f}.", within, ranked));
    if (compared > 0)
        report.facts.push_back(fmt::format("Two library calls take {} of its time (geometric mean of {:.0f}).", number_text(std::exp(ratios / compared), 3), compared));
    const std::vector<std::string> missing = suite ? not_measured(*suite, shapes) : std::vector<std::string>();
    if (!missing.empty())
        report.facts.push_back(fmt::format("{} problems of the suite are not measured, the first {}.", missing.size(), missing.front()));
    for (const std::string& name : missing) report.missed.push_back(name + ": not measured");
    return report;
}

TextTable cells_of(const Report& report) {
    using Align = Table::Align;
    TextTable cells;
    cells.columns = {{"problem", Align::left}, {"form", Align::left, 2}, {"time"}, {"TFLOP/s"}, {"off"}, {"two calls", Align::right, 2}, {"behind best", Align::right, 1}};
    for (const Figures& f : report.problems) {
        if (!f.why_none.empty()) cells.rows.push_back({f.name, "-", "none", "-", "-", "-", f.why_none});
        else
            cells.rows.push_back({f.name, f.form, time_text(*f.time_us), f.tflops ? number_text(*f.tflops) : "-", signed_percent(f.error),
                                  f.two_calls ? number_text(*f.two_calls, 3) : "-", f.best_of_own ? percent_text(*f.best_of_own - 1) : "-"});
    }
    return cells;
}

}  // namespace

SuiteReporter chain_suite_reporter(SuiteRecord record, const Suite* suite) {
    const auto report = std::make_shared<const Report>(report_of(std::move(record), suite));
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
