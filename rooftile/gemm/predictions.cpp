#include "rooftile/gemm/predictions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

struct Times {
    std::vector<double> predicted, measured;
};

/// Its times, predicted anew; `of` gets the configurations that have both.
PredictedShape shape_of(const RecordedRun& run, const Machine& machine, const GemmProblem& problem,
                        Times& times, int& without_result) {
    PredictedShape shape;
    shape.problem = problem;
    for (const RecordedRow& row : run.rows) {
        if (row.problem != problem) continue;
        const auto predicted = row.time_us && *row.time_us > 0 ? plan_again(machine, row).prediction.time_us
                                                               : std::optional<double>();
        if (!predicted) {
            ++without_result;
            continue;
        }
        const double error = *predicted / *row.time_us - 1;
        if (row.rank == 1) shape.chosen_error = error;
        shape.error += std::abs(error);
        shape.worst = std::max(shape.worst, std::abs(error));
        times.predicted.push_back(*predicted);
        times.measured.push_back(*row.time_us);
    }
    shape.configurations = int(times.measured.size());
    if (shape.configurations > 0) shape.error /= shape.configurations;
    const double rank = rank_correlation(times.predicted, times.measured);
    if (shape.configurations >= 3 && !std::isnan(rank)) shape.rank_correlation = rank;
    return shape;
}

std::string correlation_text(std::optional<double> value) {
    return value ? fmt::format("{:.3f}", *value) : "-";
}

}  // namespace

PredictionReport prediction_report(const RecordedRun& run, const Machine& machine) {
    PredictionReport report;
    report.machine_id = run.machine_id, report.gpu = run.gpu, report.driver = run.driver;
    report.date = run.date, report.mode = run.mode;
    int chosen = 0, ranked = 0;
    double logarithms = 0;
    for (const RecordedRow& row : run.rows) {
        const auto same = [&](const PredictedShape& s) { return s.problem == row.problem; };
        if (std::any_of(report.shapes.begin(), report.shapes.end(), same)) continue;
        Times times;
        const PredictedShape shape = shape_of(run, machine, row.problem, times, report.without_result);
        report.shapes.push_back(shape);
        report.configurations += shape.configurations;
        report.error += shape.error * shape.configurations;
        for (std::size_t i = 0; i < times.measured.size(); ++i)
            logarithms += std::log(times.predicted[i] / times.measured[i]);
        if (shape.chosen_error) ++chosen, report.chosen_error += std::abs(*shape.chosen_error);
        if (!shape.rank_correlation) continue;
        ++ranked;
        report.rank_correlation += *shape.rank_correlation;
        report.min_rank_correlation = std::min(report.min_rank_correlation, *shape.rank_correlation);
    }
    if (chosen > 0) report.chosen_error /= chosen;
    if (report.configurations > 0) {
        report.error /= report.configurations;
        report.bias = std::exp(logarithms / report.configurations) - 1;
    }
    if (ranked > 0) report.rank_correlation /= ranked;
    else report.rank_correlation = report.min_rank_correlation = 0;
    return report;
}

std::string predictions_text(const PredictionReport& r, const Terminal& terminal) {
    std::string out = fmt::format("{}, driver {}, {}, {}: predicted time beside measured\n\n",
                                  displayable(r.gpu.empty() ? r.machine_id : r.gpu), displayable(r.driver),
                                  displayable(r.date.substr(0, 10)), displayable(r.mode));
    Table table({{"M x N x K", Table::Align::left},
                 {"configurations"},
                 {"chosen plan off"},
                 {"mean off"},
                 {"at worst", Table::Align::right, 1},
                 {"rank correlation"}});
    for (const PredictedShape& s : r.shapes)
        table.row({{shape_text(s.problem)},
                   {number_text(s.configurations)},
                   {signed_percent(s.chosen_error)},
                   {percent_text(s.error)},
                   {percent_text(s.worst)},
                   {correlation_text(s.rank_correlation)}});
    out += table.text(terminal) + "\n";
    if (r.configurations == 0)
        out += "mean absolute error and rank correlation: none, as no row has a time\n";
    else
        out += fmt::format(
            "mean absolute error: {} over the chosen plans, {} over all {} (bias {})\n"
            "rank correlation within a shape: {:.3f} in the mean, {:.3f} at least\n",
            percent_text(r.chosen_error), percent_text(r.error), r.configurations, signed_percent(r.bias),
            r.rank_correlation, r.min_rank_correlation);
    if (r.without_result > 0) out += fmt::format("{} rows have no time\n", r.without_result);
    const auto missed = missed_prediction_bars(r);
    if (missed.empty()) return out + "every bar holds\n";
    for (const std::string& line : missed)
        out += "missed: " + wrapped(displayable(line, terminal.utf8), terminal.prose() - 8, 8) + "\n";
    return out;
}

std::vector<std::string> missed_prediction_bars(const PredictionReport& r) {
    std::vector<std::string> missed;
    for (const PredictedShape& s : r.shapes) {
        if (s.configurations < min_configurations)
            missed.push_back(fmt::format("{}: {} configurations with a time; wanted {}",
                                         shape_text(s.problem), s.configurations, min_configurations));
        if (!s.chosen_error)
            missed.push_back(fmt::format("{}: the chosen plan has no time", shape_text(s.problem)));
    }
    if (!(r.chosen_error <= chosen_error_limit))
        missed.push_back(fmt::format("mean absolute error over the chosen plans {}; wanted {}",
                                     percent_text(r.chosen_error), percent_text(chosen_error_limit)));
    if (!(r.error <= error_limit))
        missed.push_back(fmt::format("mean absolute error over all {}; wanted {}", percent_text(r.error),
                                     percent_text(error_limit)));
    if (!(r.rank_correlation >= min_correlation))
        missed.push_back(fmt::format("rank correlation within a shape {:.3f} in the mean; wanted {:.1f}",
                                     r.rank_correlation, min_correlation));
    return missed;
}

}  // namespace rooftile
