#include "rooftile/gemm/predictions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/gemm/packing.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

struct Times {
    std::vector<double> predicted, measured;
};

/// One configuration that has both times.
struct Timed {
    const RecordedRow* row;
    double predicted, measured;  // us
    double error() const { return predicted / measured - 1; }
};

/// Whether lines of that operand, as the GEMM reads them, begin off lines of 128 B.
bool off_line(std::int64_t leading, Type type, bool packed) {
    return !packed && line_step(leading * bytes_of(type)) < PackedCopy::alignment;
}

struct Feature {
    const char* name;
    bool (*has)(const RecordedRow& row);
};
constexpr Feature features[] = {
    {"A and B on lines of 128 B",
     [](const RecordedRow& r) {
         return !off_line(r.problem.lda, r.problem.a_type, r.config.pack_a)
                && !off_line(r.problem.ldb, r.problem.b_type, r.config.pack_b);
     }},
    {"A or B off the line",
     [](const RecordedRow& r) {
         return off_line(r.problem.lda, r.problem.a_type, r.config.pack_a)
                || off_line(r.problem.ldb, r.problem.b_type, r.config.pack_b);
     }},
    {"C off the line", [](const RecordedRow& r) { return off_line(r.problem.ldc, r.problem.c_type, false); }},
    {"packed first", [](const RecordedRow& r) { return r.config.pack_a || r.config.pack_b; }},
    {"M below 128", [](const RecordedRow& r) { return r.problem.m < 128; }},
    {"M 128 to 2047", [](const RecordedRow& r) { return r.problem.m >= 128 && r.problem.m < 2048; }},
    {"M from 2048 on", [](const RecordedRow& r) { return r.problem.m >= 2048; }},
    {"N below 256", [](const RecordedRow& r) { return r.problem.n < 256; }},
    {"K in parts", [](const RecordedRow& r) { return r.config.split_k > 1; }},
    {"K up to 512", [](const RecordedRow& r) { return r.problem.k <= 512; }},
};

template <class Has>
void add_class(PredictionReport& report, const std::vector<Timed>& all, const char* name, Has has) {
    PredictionClass c{.name = name};
    std::vector<double> errors;
    for (const Timed& t : all) {
        if (!has(t)) continue;
        errors.push_back(std::abs(t.error()));
        c.error += errors.back(), c.bias += t.error(), c.error_us += std::abs(t.predicted - t.measured);
    }
    if (errors.empty()) return;
    c.configurations = int(errors.size());
    for (double* mean : {&c.error, &c.bias, &c.error_us}) *mean /= c.configurations;
    std::sort(errors.begin(), errors.end());
    c.p95 = nearest_rank(errors, 0.95);
    report.classes.push_back(std::move(c));
}

void set_classes(PredictionReport& report, const std::vector<Timed>& all) {
    const auto counts = [](const Timed& t) { return t.measured >= small_time_us; };
    add_class(report, all, "from 5 us on", counts);
    add_class(report, all, "below 5 us", [&](const Timed& t) { return !counts(t); });
    for (const Feature& feature : features)
        add_class(report, all, feature.name, [&](const Timed& t) { return counts(t) && feature.has(*t.row); });
}

/// Null where no configuration is of it.
const PredictionClass* class_of(const PredictionReport& r, std::string_view name) {
    const auto at = std::find_if(r.classes.begin(), r.classes.end(), [&](const PredictionClass& c) { return c.name == name; });
    return at == r.classes.end() ? nullptr : &*at;
}

std::vector<std::string> missed_drawn_bars(const PredictionReport& r) {
    std::vector<std::string> missed;
    if (const auto* c = class_of(r, "from 5 us on")) {
        if (!(c->error <= drawn_error_limit))
            missed.push_back(fmt::format("mean absolute error from 5 us on {}; wanted {}", percent_text(c->error),
                                         percent_text(drawn_error_limit)));
        if (!(c->p95 <= drawn_p95_limit))
            missed.push_back(fmt::format("its 95th percentile {}; wanted {}", percent_text(c->p95), percent_text(drawn_p95_limit)));
    }
    if (const auto* c = class_of(r, "below 5 us"); c && !(c->error_us <= drawn_small_limit_us))
        missed.push_back(fmt::format("mean absolute error below 5 us {:.2f} us; wanted {:.1f} us", c->error_us, drawn_small_limit_us));
    return missed;
}

std::string classes_text(const PredictionReport& r, const Terminal& terminal) {
    Table table({{"of these", Table::Align::left}, {"configurations"}, {"mean off"}, {"95 % within"}, {"bias"}, {"mean off, us"}});
    for (const PredictionClass& c : r.classes)
        table.row({{c.name},
                   {number_text(c.configurations)},
                   {percent_text(c.error)},
                   {percent_text(c.p95)},
                   {signed_percent(c.bias)},
                   {fmt::format("{:.2f}", c.error_us)}});
    return table.text(terminal) + "\n";
}

/// Its times, predicted anew; `of` gets the configurations that have both.
PredictedShape shape_of(const RecordedRun& run, const Machine& machine, const GemmProblem& problem,
                        Times& times, std::vector<Timed>& all, int& without_result) {
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
        all.push_back({&row, *predicted, *row.time_us});
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
    std::vector<Timed> all;
    for (const RecordedRow& row : run.rows) {
        const auto same = [&](const PredictedShape& s) { return s.problem == row.problem; };
        if (std::any_of(report.shapes.begin(), report.shapes.end(), same)) continue;
        Times times;
        const PredictedShape shape = shape_of(run, machine, row.problem, times, all, report.without_result);
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
    set_classes(report, all);
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
    out += table.text(terminal) + "\n" + classes_text(r, terminal);
    if (r.configurations == 0)
        out += "mean absolute error and rank correlation: none, as no row has a time\n";
    else
        out += fmt::format(
            "mean absolute error: {} over the chosen plans, {} over all {} (bias {})\n",
            percent_text(r.chosen_error), percent_text(r.error), r.configurations, signed_percent(r.bias));
    if (r.configurations > 0 && !r.one_each())
        out += fmt::format("rank correlation within a shape: {:.3f} in the mean, {:.3f} at least\n",
                           r.rank_correlation, r.min_rank_correlation);
    if (r.without_result > 0) out += fmt::format("{} rows have no time\n", r.without_result);
    const auto missed = missed_prediction_bars(r);
    if (missed.empty()) return out + "every bar holds\n";
    for (const std::string& line : missed)
        out += "missed: " + wrapped(displayable(line, terminal.utf8), terminal.prose() - 8, 8) + "\n";
    return out;
}

std::vector<std::string> missed_prediction_bars(const PredictionReport& r) {
    if (r.one_each()) return missed_drawn_bars(r);
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
