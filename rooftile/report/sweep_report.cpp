#include "rooftile/report/sweep_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "rooftile/core/random.hpp"
#include "rooftile/core/space.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

constexpr std::size_t worst_count = 10, resamples = 2000;

/// By the rounds in which both ran; of what is compared with a copy, by the copy or the reads that are its roof; else by both times.
std::optional<double> ratio_of(const Json& line, const Operation& operation) {
    const Json& baselines = line.at("baselines");
    if (const auto ratio = positive_at(baselines, (std::string(operation.baseline()) + "_ratio").c_str()))
        return ratio;
    const bool by_copy = operation.baseline() == "copy" && positive_at(baselines, (text_at(line, "roof") + "_us").c_str());
    if (by_copy) return positive_at(line, "roof_fraction");
    const auto baseline = positive_at(baselines, (std::string(operation.baseline()) + "_us").c_str()), own = positive_at(line, "time_us");
    return baseline && own ? std::optional(*baseline / *own) : std::nullopt;
}

/// The problem of a row, which says of it what this program says: what it does not read it would leave out.
Problem problem_of(const Json& recorded, const Operation& operation) {
    const Problem problem = operation.problem(operation.given_of_record(record_of(recorded)));
    const Json again = problem_json(problem);
    for (const auto& [key, value] : recorded.items())
        if (!again.contains(key) || again.at(key) != value)
            throw RequestError(fmt::format("problem.{} is {}, read as {}", printable(key, 40), printable(value.dump(), 80),
                                           again.contains(key) ? printable(again.at(key).dump(), 80) : "nothing"));
    return problem;
}

SweepPoint read_point(const SuiteRow& row, const Operation& operation, const std::shared_ptr<const Machine>& machine) {
    const Json line = Json::parse(row.line);
    const Problem problem = problem_of(line.at("problem"), operation);
    SweepPoint point;
    point.name = operation.short_name(problem);
    point.traits = operation.traits(problem);
    if (!row.time_us || (row.rank > 1 && !machine)) {
        point.why_none = row.invalid.empty() ? "no row of rank 1" : row.invalid;
        return point;
    }
    point.time_us = row.time_us;
    point.predicted_us = row.predicted_us;
    if (machine) {
        const auto plan = plan_of_member(operation, machine, problem, record_of(line.at("config")));
        point.predicted_us = plan ? plan->time_us : std::nullopt;
        if (point.predicted_us) point.interval = predicted_interval(*machine, problem, *point.predicted_us);
    }
    if (row.rank <= 1) point.ratio = ratio_of(line, operation);
    if (point.ratio) point.baseline_us = *point.ratio * *row.time_us;
    point.variants = row.variants;
    point.label = text_at(line, "label");
    return point;
}

SweepPoint point_of(const SuiteRow& row, const Operation& operation, const std::shared_ptr<const Machine>& machine) {
    const std::string& op = row.op;
    if (op != operation.name())
        throw RequestError(fmt::format("a row of {} among those of {}", op, operation.name()));
    try {
        return read_point(row, operation, machine);
    } catch (const nlohmann::json::exception& error) {
        throw RequestError(fmt::format("a row of {} lacks a key: {}", op, error.what()));
    }
}

/// Means of as many values drawn from these with replacement, in order.
std::vector<double> resampled_means(const std::vector<double>& values) {
    Random random(1);
    std::vector<double> means(resamples);
    for (double& m : means) {
        m = 0;
        for (std::size_t i = 0; i < values.size(); ++i) m += values[random.pick(values.size())];
        m /= double(values.size());
    }
    std::sort(means.begin(), means.end());
    return means;
}

SweepFigures figures_of(std::string name, const std::vector<const SweepPoint*>& points) {
    SweepFigures f;
    f.name = std::move(name);
    f.problems = int(points.size());
    std::vector<double> logarithms, errors, within;
    for (const SweepPoint* point : points) {
        if (point->ratio && *point->ratio > 0) logarithms.push_back(std::log(*point->ratio));
        if (point->interval) within.push_back(*point->time_us >= point->interval->low_us && *point->time_us <= point->interval->high_us);
        if (const auto error = point->prediction_error()) errors.push_back(*error);
    }
    f.compared = int(logarithms.size());
    if (!within.empty()) f.within = mean(within);
    if (!logarithms.empty()) {
        f.ratio = std::exp(mean(logarithms));
        f.least = std::exp(*std::min_element(logarithms.begin(), logarithms.end()));
        for (std::size_t i = 0; i < std::size(ratio_limits); ++i)
            f.below[i] = double(std::count_if(logarithms.begin(), logarithms.end(),
                                              [&](double l) { return l < std::log(ratio_limits[i]); }))
                         / double(logarithms.size());
        const auto means = resampled_means(logarithms);
        f.low = std::exp(nearest_rank(means, 0.025));
        f.high = std::exp(nearest_rank(means, 0.975));
    }
    if (const auto error = rooftile::prediction_error(errors))
        f.error_bias = error->bias, f.error_mean = error->mean, f.error_95th = error->p95, f.error_worst = error->max;
    return f;
}

void add_figures(SweepReport& report, std::string name,
                 const std::function<bool(const SweepPoint&)>& belongs) {
    std::vector<const SweepPoint*> points;
    for (const SweepPoint& point : report.points)
        if (is_judged(point) && belongs(point)) points.push_back(&point);
    if (!points.empty()) report.all.push_back(figures_of(std::move(name), points));
}

void set_figures(SweepReport& report) {
    add_figures(report, "all", [](const SweepPoint&) { return true; });
    std::vector<std::string> bands;
    for (const SweepPoint& point : report.points) bands.emplace_back(point.traits.band);
    std::sort(bands.begin(), bands.end());
    bands.erase(std::unique(bands.begin(), bands.end()), bands.end());
    for (const std::string& band : bands)
        add_figures(report, band, [&](const SweepPoint& point) { return point.traits.band == band; });
    report.bands = report.all.empty() ? 0 : report.all.size() - 1;
    // A problem names the features that its kind can have: those of groups are none of a plain product's.
    const auto has = [](const SweepPoint& point, std::string_view name) {
        return std::ranges::any_of(point.traits.features, [&](const auto& f) { return f.first == name && f.second; });
    };
    std::vector<std::string_view> names;
    for (const SweepPoint& point : report.points)
        for (const auto& [name, held] : point.traits.features)
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    for (const std::string_view name : names)
        add_figures(report, std::string(name), [&](const SweepPoint& point) { return has(point, name); });
}

void set_shorts(SweepReport& report) {
    std::vector<double> behind, errors;
    for (const SweepPoint& p : report.points) {
        if (!p.time_us || is_judged(p)) continue;
        ++report.shorts.problems;
        if (p.baseline_us) behind.push_back(*p.time_us - *p.baseline_us);
        if (p.predicted_us) errors.push_back(*p.predicted_us - *p.time_us);
    }
    ShortFigures& shorts = report.shorts;
    if (!behind.empty()) shorts.behind_mean_us = mean(behind), shorts.behind_most_us = *std::max_element(behind.begin(), behind.end());
    if (const auto error = prediction_error(errors))
        shorts.error_bias_us = error->bias, shorts.error_mean_us = error->mean, shorts.error_worst_us = error->max;
}

LaunchPoint launch_point(const SweepPoint& p) {
    return {std::string(p.traits.band), p.time_us, p.predicted_us, p.ratio, p.baseline_us, &p.variants};
}

void set_launches(SweepReport& report) {
    std::vector<LaunchPoint> points;
    for (const SweepPoint& p : report.points) points.push_back(launch_point(p));
    report.launches = launch_figures(points);
}

void set_worst(SweepReport& report) {
    for (std::size_t i = 0; i < report.points.size(); ++i)
        if (is_judged(report.points[i]) && report.points[i].ratio) report.worst.push_back(i);
    std::stable_sort(report.worst.begin(), report.worst.end(), [&](std::size_t a, std::size_t b) {
        return *report.points[a].ratio < *report.points[b].ratio;
    });
    if (report.worst.size() > worst_count) report.worst.resize(worst_count);
}

/// Throws RequestError where `other` is no run like `first`.
void check_together(const SuiteRecord& first, const SuiteRecord& other, bool again) {
    const auto same = [&](std::string_view what, const std::string& here, const std::string& there) {
        if (here != there)
            throw RequestError(fmt::format("{} and {} are of another {}: {} and {}", first.suite, other.suite,
                                           what, here.empty() ? "none" : here,
                                           there.empty() ? "none" : there));
    };
    same("operation", first.op(), other.op());
    same("GPU", first.gpu, other.gpu);
    if (!again) same("machine", first.machine_hash, other.machine_hash);
    same("mode", first.shapes.front().first().mode, other.shapes.front().first().mode);
}

std::string ratio_text(const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.3f}", *ratio) : "-";
}
std::string share_text(const std::optional<double>& share) {
    return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

TextTable figure_cells(const SweepReport& r) {
    TextTable cells;
    cells.columns = {
        {"problems with", Align::left}, {"of them"}, {"compared", Align::right, 3}, {"ratio"}, {"95 % interval", Align::left, 1}};
    for (const double limit : ratio_limits)
        cells.columns.push_back({fmt::format("< {:.2f}", limit), Align::right, 2});
    for (const char* title : {"least", "bias", "off", "95th", "worst"}) cells.columns.push_back({title});
    for (const SweepFigures& f : r.all) {
        std::vector<std::string> row = {f.name, std::to_string(f.problems), std::to_string(f.compared), ratio_text(f.ratio),
                                        f.low ? fmt::format("{:.3f} to {:.3f}", *f.low, *f.high) : ""};
        for (const double share : f.below) row.push_back(f.ratio ? share_text(share) : "-");
        for (const auto& cell : {ratio_text(f.least), f.error_bias ? signed_percent(*f.error_bias) : "-", share_text(f.error_mean), share_text(f.error_95th),
                                 share_text(f.error_worst)})
            row.push_back(cell);
        cells.rows.push_back(std::move(row));
    }
    return cells;
}

TextTable worst_cells(const SweepReport& r) {
    TextTable cells;
    cells.columns = {{"problem", Align::left}, {"ours"}, {"baseline"}, {"ratio"}, {"off", Align::right, 1},
                     {"plan", Align::left, 3}};
    const auto place = cells.columns.begin() + 1;
    if (!r.points.empty())
        cells.columns.insert(place, {{std::string(r.points.front().traits.x.name), Align::right, 2},
                                     {std::string(r.points.front().traits.y.name), Align::right, 2}});
    for (const std::size_t i : r.worst) {
        const SweepPoint& p = r.points[i];
        cells.rows.push_back({p.name, number_text(p.traits.x.value), number_text(p.traits.y.value),
                              time_text(*p.time_us), time_text(*p.baseline_us), ratio_text(p.ratio),
                              p.predicted_us ? signed_percent(*p.predicted_us / *p.time_us - 1) : "-",
                              p.label});
    }
    return cells;
}

std::string heading(const SweepReport& r) {
    return fmt::format("{}, driver {}, rooftile {}, {}: {} problems of {}, suite {}, {}",
                       r.record.gpu.empty() ? r.record.machine_name : r.record.gpu, r.record.driver,
                       r.record.version, r.record.date.substr(0, 10), r.points.size(), r.operation->name(),
                       r.suites, r.mode)
           + (r.record.law.empty() ? "" : " (" + r.record.law + ")")
           + (r.predicted_by.empty() ? "" : "; every plan predicted anew, by the numbers of " + r.predicted_by);
}

std::string meaning(const SweepReport& r) {
    return fmt::format(
        "Ratio: the time of {} over ours, geometric mean; above 1 ours is faster. The fastest of several algorithms in the "
        "same rounds is compared, which favours it. Interval: where 95 % of {} resampled draws have it. Then the share of problems below a ratio, and the least. Bias: predicted / measured - 1, mean; off: its size, mean. "
        "Problems of less than {} us are listed separately.",
        r.operation->baseline(), resamples, least_judged_us);
}

std::string short_text(const ShortFigures& f) {
    if (f.problems == 0) return "";
    std::string out =
        fmt::format("Under {} us: {} problem{}.", least_judged_us, f.problems, f.problems == 1 ? "" : "s");
    if (f.behind_mean_us)
        out += fmt::format(" Ours less theirs: mean {:+.2f} us, most {:+.2f} us.", *f.behind_mean_us,
                           *f.behind_most_us);
    if (f.error_mean_us)
        out += fmt::format(" Predicted off by {}, {:.2f} us at worst.", prediction_error_us_text(*f.error_bias_us, *f.error_mean_us),
                           *f.error_worst_us);
    return out;
}

std::string within_text(const SweepReport& r) {
    if (r.all.empty() || !r.all.front().within) return "";
    return fmt::format("{} of the measured times are within the interval of their prediction, which is to hold 90 %.", share_text(r.all.front().within));
}

std::vector<std::string> without_result(const SweepReport& r) {
    std::vector<std::string> lines;
    for (const SweepPoint& p : r.points)
        if (!p.why_none.empty()) lines.push_back(fmt::format("No result: {}: {}", p.name, p.why_none));
    if (lines.size() > worst_count) {
        const std::size_t more = lines.size() - worst_count;
        lines.resize(worst_count);
        lines.push_back(fmt::format("and {} more without a result", more));
    }
    return lines;
}

/// The parts of a report, by how a form writes paragraphs and tables.
std::string written(const SweepReport& r, const std::function<std::string(const std::string&)>& paragraph,
                    const std::function<std::string(const TextTable&)>& table) {
    std::string out = paragraph(heading(r)) + paragraph(meaning(r));
    if (!r.all.empty()) out += table(figure_cells(r));
    if (const std::string text = within_text(r); !text.empty()) out += paragraph(text);
    if (const std::string text = short_text(r.shorts); !text.empty()) out += paragraph(text);
    for (const LaunchFigures& f : r.launches) out += paragraph(launch_text(f));
    for (const std::string& line : without_result(r)) out += paragraph(line);
    if (!r.worst.empty()) out += paragraph("The worst:") + table(worst_cells(r));
    out.pop_back();  // the empty line behind the last part
    return out;
}

Json figures_json(const SweepFigures& f) {
    Json out = {{"name", f.name},
                {"problems", f.problems},
                {"ratio", json_number(f.ratio)},
                {"ratio_low", json_number(f.low)},
                {"ratio_high", json_number(f.high)},
                {"ratio_least", json_number(f.least)}};
    for (std::size_t i = 0; i < std::size(ratio_limits); ++i)
        out[fmt::format("share_below_{:.2f}", ratio_limits[i])] =
            f.ratio ? json_number(f.below[i]) : Json(nullptr);
    out["prediction_error"] = {{"mean", json_number(f.error_mean)},
                               {"bias", json_number(f.error_bias)},
                               {"p95", json_number(f.error_95th)},
                               {"max", json_number(f.error_worst)},
                             {"share_within_interval", json_number(f.within)}};
    return out;
}

Json launches_json(const LaunchFigures& f) {
    const auto way = [&](std::optional<double> beside, const std::optional<PredictionError>& error) -> Json {
        return {{f.in_us ? "behind_us" : "ratio", json_number(beside)},
                {f.in_us ? "error_us" : "prediction_error", error ? json_number(error->mean) : Json(nullptr)},
                {f.in_us ? "bias_us" : "prediction_bias", error ? json_number(error->bias) : Json(nullptr)}};
    };
    return {{"name", f.name},
            {"band", f.band},
            {"problems", f.problems},
            {"as_planned", way(f.planned, f.planned_error)},
            {"so", way(f.other, f.other_error)}};
}

Json point_json(const SweepPoint& p) {
    return {{"name", p.name},
            {p.traits.x.name, json_number(p.traits.x.value)},
            {p.traits.y.name, json_number(p.traits.y.value)},
            {"time_us", json_number(p.time_us)},
            {"baseline_us", json_number(p.baseline_us)},
            {"predicted_us", json_number(p.predicted_us)},
            {"ratio", json_number(p.ratio)},
            {"label", text_or_null(p.label)},
            {"invalid", text_or_null(p.why_none)}};
}

}  // namespace

std::optional<double> SweepPoint::prediction_error() const {
    if (!predicted_us || !time_us) return std::nullopt;
    return *predicted_us / *time_us - 1;
}

bool is_judged(const SweepPoint& point) {
    return is_judged(launch_point(point));
}

SweepReport sweep_report(std::vector<SuiteRecord> records, const std::shared_ptr<const Machine>& machine) {
    SweepReport report;
    if (machine) report.predicted_by = machine->id;
    report.operation = find_operation(records.front().op());
    if (!report.operation) throw RequestError("this program has no operation " + records.front().op());
    for (const SuiteRecord& record : records) {
        check_together(records.front(), record, machine != nullptr);
        report.suites += (report.suites.empty() ? "" : ", ") + record.suite;
        for (const SuiteShape& shape : record.shapes) {
            const SuiteRow& judged = shape.rank1() ? *shape.rank1() : shape.first();
            report.points.push_back(point_of(judged, *report.operation, machine));
            if (!machine) continue;
            for (const SuiteRow& row : shape.rows)
                if (&row != &judged && row.time_us) report.points.push_back(point_of(row, *report.operation, machine));
        }
    }
    report.mode = records.front().shapes.front().first().mode;
    records.front().take_shapes();
    report.record = std::move(records.front());
    set_figures(report);
    set_shorts(report);
    set_launches(report);
    set_worst(report);
    return report;
}

Json sweep_document(const SweepReport& r) {
    Json run = {{"version", r.record.version}, {"machine_hash", text_or_null(r.record.machine_hash)},
                {"kernel_hash", nullptr},      {"command", r.record.command},
                {"gpu", r.record.gpu},         {"driver", r.record.driver},
                {"date", r.record.date},       {"seed", r.record.seed}};
    if (!r.record.program_hash.empty()) run["program_hash"] = r.record.program_hash;
    Json out = {{"schema", "rooftile/sweep/1"},
                {"context", std::move(run)},
                {"machine", {{"id", r.record.machine_id}, {"name", r.record.machine_name}}},
                {"operation", r.operation->name()},
                {"suite", r.suites},
                {"law", text_or_null(r.record.law)},
                {"mode", r.mode},
                {"baseline", r.operation->baseline()},
                {"problems", r.points.size()}};
    const ProblemTraits none{};
    const ProblemTraits& traits = r.points.empty() ? none : r.points.front().traits;
    out["axes"] = {traits.x.name, traits.y.name};
    for (const char* list : {"figures", "launches", "points", "worst", "without_result"}) out[list] = Json::array();
    for (const LaunchFigures& f : r.launches) out["launches"].push_back(launches_json(f));
    for (const SweepFigures& f : r.all) out["figures"].push_back(figures_json(f));
    for (const SweepPoint& p : r.points) out["points"].push_back(point_json(p));
    for (const std::size_t i : r.worst) out["worst"].push_back(point_json(r.points[i]));
    for (const SweepPoint& p : r.points)
        if (!p.why_none.empty()) out["without_result"].push_back(point_json(p));
    out["under_5_us"] = {{"problems", r.shorts.problems},
                         {"behind_mean_us", json_number(r.shorts.behind_mean_us)},
                         {"behind_most_us", json_number(r.shorts.behind_most_us)},
                         {"error_bias_us", json_number(r.shorts.error_bias_us)},
                         {"error_mean_us", json_number(r.shorts.error_mean_us)},
                         {"error_worst_us", json_number(r.shorts.error_worst_us)}};
    return out;
}

std::string sweep_text(const SweepReport& r, const Terminal& terminal) {
    return written(
        r,
        [&](const std::string& text) {
            return wrapped(displayable(text, terminal.utf8), terminal.prose(), 0) + "\n\n";
        },
        [&](const TextTable& cells) { return text_table(cells, terminal) + "\n"; });
}

std::string sweep_markdown(const SweepReport& r) {
    return written(
        r, [](const std::string& text) { return markdown_cell(text) + "\n\n"; },
        [](const TextTable& cells) { return markdown_table(cells) + "\n"; });
}

}  // namespace rooftile
