#include "rooftile/report/validation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "rooftile/core/rank_correlation.hpp"
#include "rooftile/core/space.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

constexpr double short_us = 5;  // of the fastest member
constexpr int top_plans = 8;
constexpr std::size_t worst_shown = 10;

/// By how much times of longer blocks differ; of none by nothing.
double median_ratio(std::vector<double> ratios) { return ratios.empty() ? 1 : median(std::move(ratios)); }

/// Times of all members in one frame: that of the longest blocks in which the fastest of them were timed. What was timed in
/// shorter ones follows by the ratio of those that were in both.
std::vector<std::optional<double>> times_of(const LedgerEntry& entry) {
    std::vector<std::optional<double>> again(entry.members.size()), times(entry.members.size());
    std::vector<double> later, longer;
    for (const LedgerAgain& a : entry.again) {
        again[a.member] = a.us;
        if (const auto first = entry.members[a.member].first_us) later.push_back(a.us / *first);
        if (a.settled_us) longer.push_back(*a.settled_us / a.us);
    }
    const double to_again = median_ratio(std::move(later)), to_settled = median_ratio(std::move(longer));
    for (std::size_t i = 0; i < times.size(); ++i) {
        const LedgerMember& member = entry.members[i];
        if (!member.first_us || member.right == false) continue;
        times[i] = again[i] ? *again[i] * to_settled : *member.first_us * to_again * to_settled;
    }
    for (const LedgerAgain& a : entry.again)
        if (a.settled_us && times[a.member]) times[a.member] = a.settled_us;
    return times;
}

class Judge {
  public:
    Judge(const LedgerEntry& entry, const std::shared_ptr<const Machine>& machine)
        : entry_(entry), operation_(*entry.problem.operation), machine_(machine), times_(times_of(entry)) {}

    ValidatedProblem judged() {
        ValidatedProblem v;
        v.problem = entry_.problem;
        v.name = operation_.short_name(entry_.problem);
        predict(v);
        if (!find_fastest()) return v;
        v.best_us = *times_[fastest_];
        v.best_label = plans_[fastest_] ? operation_.label(*plans_[fastest_]) : "";
        correlate(v);
        choose(v);
        for (const LedgerPick& pick : entry_.picks)
            if (times_[pick.member]) v.picks.emplace_back(pick.name, *times_[pick.member] / v.best_us);
        if (entry_.duplicate) v.noise = noise();
        return v;
    }

  private:
    void predict(ValidatedProblem& v) {
        for (std::size_t i = 0; i < entry_.members.size(); ++i) {
            plans_.emplace_back();
            configs_.push_back(entry_.members[i].config);
            if (!times_[i]) continue;
            ++v.members;
            try {
                plans_[i] = plan_of_config(operation_, machine_, entry_.problem, entry_.members[i].config);
            } catch (const RequestError&) { plans_[i].reset(); }  // a value that no longer is one
            if (plans_[i]) configs_[i] = operation_.config_record(*plans_[i]);
            else ++v.unplanned;
        }
    }

    bool find_fastest() {
        bool found = false;
        const auto offer = [&](std::size_t i) {
            if (times_[i] && (!found || *times_[i] < *times_[fastest_])) fastest_ = i, found = true;
        };
        // What was timed once may be ahead by noise alone.
        for (const LedgerAgain& again : entry_.again) offer(again.member);
        if (!found)
            for (std::size_t i = 0; i < times_.size(); ++i) offer(i);
        return found;
    }

    void correlate(ValidatedProblem& v) {
        std::vector<double> predicted, measured;
        for (std::size_t i = 0; i < times_.size(); ++i) {
            if (!times_[i] || !plans_[i] || !plans_[i]->time_us) continue;
            predicted.push_back(*plans_[i]->time_us), measured.push_back(*times_[i]);
            v.errors.push_back(predicted.back() / measured.back() - 1);
            ranked_.push_back(i);
        }
        const double correlation = rank_correlation(predicted, measured);
        if (predicted.size() >= 3 && !std::isnan(correlation)) v.rank_correlation = correlation;
        std::stable_sort(ranked_.begin(), ranked_.end(), [&](std::size_t x, std::size_t y) {
            return *plans_[x]->time_us < *plans_[y]->time_us;
        });
        if (!ranked_.empty()) v.ranked_regret = *times_[ranked_.front()] / v.best_us;
    }

    /// The member of a configuration: exactly it, else one that differs in what its rule leaves to the planner.
    std::optional<std::size_t> member_of(const Record& config) const {
        std::optional<std::size_t> near;
        for (std::size_t i = 0; i < entry_.members.size(); ++i) {
            if (!times_[i]) continue;
            if (configs_[i] == config) return i;
            if (!near && same_member(operation_, configs_[i], config)) near = i;
        }
        return near;
    }

    void choose(ValidatedProblem& v) {
        const Own request =
            operation_.request(Given(Given::Named::by_key), {.top = top_plans, .buildable_only = true});
        const PlanSet chosen = operation_.derive(machine_, entry_.problem, request);
        std::vector<std::size_t> members;
        for (std::size_t i = 0; i < chosen.plans.size(); ++i) {
            const auto member = member_of(operation_.config_record(chosen.plans[i]));
            if (i == 0) {
                v.outside = !member;
                v.plan_label = operation_.label(chosen.plans[i]);
                v.plan_predicted_us = chosen.plans[i].time_us;
            }
            if (member) members.push_back(*member);
            if (i > 0 || member || ranked_.empty()) continue;
            members.push_back(ranked_.front());
            v.plan_predicted_us = plans_[ranked_.front()]->time_us;
        }
        if (members.empty()) return;
        v.plan_us = times_[members.front()];
        v.regret = *v.plan_us / v.best_us;
        if (v.plan_predicted_us) v.plan_error = *v.plan_predicted_us / *v.plan_us - 1;
        for (std::size_t b = 0; b < std::size(best_of_counts); ++b) {
            double least = INFINITY;
            for (std::size_t k = 0; k < std::min(members.size(), std::size_t(best_of_counts[b])); ++k)
                least = std::min(least, *times_[members[k]]);
            v.best_of[b] = least / v.best_us;
        }
    }

    std::optional<double> noise() const {
        for (const LedgerAgain& again : entry_.again) {
            if (again.member != entry_.duplicate->member) continue;
            if (again.settled_us && entry_.duplicate->settled_us)
                return std::fabs(*entry_.duplicate->settled_us / *again.settled_us - 1);
            return std::fabs(entry_.duplicate->us / again.us - 1);
        }
        return std::nullopt;
    }

    const LedgerEntry& entry_;
    const Operation& operation_;
    const std::shared_ptr<const Machine>& machine_;
    std::vector<std::optional<double>> times_;
    std::vector<std::optional<Plan>> plans_;  ///< of members, by today's model
    std::vector<Record> configs_;             ///< theirs, with keys that came after the ledger
    std::vector<std::size_t> ranked_;         ///< members, the one predicted fastest first
    std::size_t fastest_ = 0;
};

std::optional<double> mean_or_none(const std::vector<double>& values) {
    return values.empty() ? std::nullopt : std::optional(mean(values));
}

FigureSpread spread_of(std::vector<double> ratios) {
    if (ratios.empty()) return {};
    std::sort(ratios.begin(), ratios.end());
    FigureSpread spread{.p95 = nearest_rank(ratios, 0.95), .max = ratios.back()};
    for (double& ratio : ratios) ratio = std::log(ratio);
    spread.mean = std::exp(mean(ratios));
    return spread;
}

FigureSpread spread_of_errors(const std::vector<double>& errors) {
    const auto error = prediction_error(errors);
    return error ? FigureSpread{error->mean, error->p95, error->max, error->bias} : FigureSpread();
}

/// What all problems that are not short have under `get`.
template <class Get>
std::vector<double> values_of(const Validation& v, Get get) {
    std::vector<double> values;
    for (const ValidatedProblem& problem : v.problems)
        if (!problem.is_short())
            if (const std::optional<double> value = get(problem)) values.push_back(*value);
    return values;
}

void set_figures(Validation& v) {
    std::vector<double> errors, behind, short_errors;
    std::map<std::string, std::vector<double>> picks;
    std::size_t members = 0;
    v.space_least = SIZE_MAX;
    for (const ValidatedProblem& problem : v.problems) {
        members += problem.members;
        v.space_least = std::min(v.space_least, problem.members),
        v.space_most = std::max(v.space_most, problem.members);
        v.unplanned += problem.unplanned;
        v.outside += problem.outside;
        if (problem.is_short()) {
            ++v.shorts;
            if (!problem.plan_us) continue;
            behind.push_back(*problem.plan_us - problem.best_us);
            if (problem.plan_predicted_us)
                short_errors.push_back(*problem.plan_predicted_us - *problem.plan_us);
            continue;
        }
        ++v.judged;
        errors.insert(errors.end(), problem.errors.begin(), problem.errors.end());
        for (const auto& [name, regret] : problem.picks) picks[name].push_back(regret);
    }
    v.space_mean = double(members) / double(std::max<std::size_t>(1, v.problems.size()));
    v.regret = spread_of(values_of(v, [](const auto& p) { return p.regret; }));
    v.ranked_regret = spread_of(values_of(v, [](const auto& p) { return p.ranked_regret; }));
    for (std::size_t b = 0; b < std::size(best_of_counts); ++b)
        v.best_of[b] = spread_of(values_of(v, [b](const auto& p) { return p.best_of[b]; }));
    v.prediction_error = spread_of_errors(values_of(v, [](const auto& p) { return p.plan_error; }));
    v.prediction_error_all = spread_of_errors(errors);
    v.rank_correlation = mean_or_none(values_of(v, [](const auto& p) { return p.rank_correlation; }));
    const std::vector<double> noise = values_of(v, [](const auto& p) { return p.noise; });
    v.noise_floor = mean_or_none(noise);
    if (!noise.empty()) v.noise_max = *std::max_element(noise.begin(), noise.end());
    for (auto& [name, regrets] : picks) {
        const int count = int(regrets.size());
        v.pickers.push_back({name, count, spread_of(std::move(regrets))});
    }
    v.short_behind_us = mean_or_none(behind);
    v.short_error_us = prediction_error(short_errors);
}

/// What --require may name, and whether more is better.
struct Figure {
    std::string name;
    std::optional<double> value;
    bool at_least = false;
};
std::vector<Figure> figures_of(const Validation& v) {
    std::vector<Figure> figures;
    const auto spread = [&](const std::string& name, const FigureSpread& s) {
        figures.push_back({name + ".mean", s.mean});
        figures.push_back({name + ".p95", s.p95});
        figures.push_back({name + ".max", s.max});
    };
    spread("regret", v.regret);
    spread("ranked_regret", v.ranked_regret);
    spread("prediction_error", v.prediction_error);
    spread("prediction_error_all", v.prediction_error_all);
    for (std::size_t b = 0; b < std::size(best_of_counts); ++b)
        figures.push_back({fmt::format("best_of.{}", best_of_counts[b]), v.best_of[b].mean});
    figures.push_back({"rank_correlation", v.rank_correlation, true});
    figures.push_back({"noise_floor", v.noise_floor});
    return figures;
}

Json spread_json(const FigureSpread& s) {
    return {{"mean", json_number(s.mean)}, {"p95", json_number(s.p95)}, {"max", json_number(s.max)}};
}
Json errors_json(const FigureSpread& s) {
    Json out = spread_json(s);
    out["bias"] = json_number(s.bias);
    return out;
}

Json problem_row(const ValidatedProblem& p) {
    Json picks = Json::object();
    for (const auto& [name, regret] : p.picks) picks[name] = json_number(regret);
    return {{"problem", problem_json(p.problem)},
            {"members", p.members},
            {"best_us", json_number(p.best_us)},
            {"best", p.best_label},
            {"plan_us", json_number(p.plan_us)},
            {"plan_predicted_us", json_number(p.plan_predicted_us)},
            {"plan", p.plan_label},
            {"outside", p.outside},
            {"regret", json_number(p.regret)},
            {"ranked_regret", json_number(p.ranked_regret)},
            {"best_of_8", json_number(p.best_of[2])},
            {"prediction_error_all", spread_json(spread_of_errors(p.errors)).at("mean")},
            {"rank_correlation", json_number(p.rank_correlation)},
            {"noise", json_number(p.noise)},
            {"pickers", std::move(picks)}};
}

Json operation_json(const Validation& v) {
    Json best = Json::object(), pickers = Json::object(), rows = Json::array();
    for (std::size_t b = 0; b < std::size(best_of_counts); ++b)
        best[std::to_string(best_of_counts[b])] = json_number(v.best_of[b].mean);
    for (const auto& picker : v.pickers)
        pickers[picker.name] = {{"problems", picker.problems},
                                {"regret_mean", json_number(picker.regret.mean)},
                                {"regret_p95", json_number(picker.regret.p95)},
                                {"regret_max", json_number(picker.regret.max)}};
    for (const ValidatedProblem& p : v.problems) rows.push_back(problem_row(p));
    return {{"operation", v.operation->name()},
            {"ledger",
             {{"files", v.files},
              {"gpu", v.ledger.gpu},
              {"driver", v.ledger.driver},
              {"date", v.ledger.date},
              {"command", v.ledger.command},
              {"program_hash", v.ledger.program_hash},
              {"machine_hash", v.ledger.machine_hash}}},
            {"space", v.operation->space_rule()},
            {"problems", v.judged},
            {"space_size", json_number(std::round(v.space_mean))},
            {"space_size_least", v.space_least},
            {"space_size_most", v.space_most},
            {"regret", spread_json(v.regret)},
            {"best_of", std::move(best)},
            {"ranked_regret", spread_json(v.ranked_regret)},
            {"prediction_error", errors_json(v.prediction_error)},
            {"prediction_error_all", errors_json(v.prediction_error_all)},
            {"rank_correlation", json_number(v.rank_correlation)},
            {"noise_floor", json_number(v.noise_floor)},
            {"noise_max", json_number(v.noise_max)},
            {"outside", v.outside},
            {"unplanned", v.unplanned},
            {"pickers", std::move(pickers)},
            {"under_5_us",
             {{"problems", v.shorts},
              {"behind_mean_us", json_number(v.short_behind_us)},
              {"error_mean_us", v.short_error_us ? json_number(v.short_error_us->mean) : Json(nullptr)},
              {"error_bias_us", v.short_error_us ? json_number(v.short_error_us->bias) : Json(nullptr)}}},
            {"rows", std::move(rows)}};
}

std::string ratio_figure(std::optional<double> value) { return value ? fmt::format("{:.3f}", *value) : "-"; }
std::string share_figure(std::optional<double> value) { return value ? percent_text(*value) : "-"; }

}  // namespace

bool ValidatedProblem::is_short() const { return best_us < short_us; }

Validation validation_of(const std::vector<Ledger>& ledgers, const std::shared_ptr<const Machine>& machine,
                         const ForEach& each) {
    Validation v;
    std::vector<const LedgerEntry*> entries;
    for (const Ledger& ledger : ledgers) {
        if (ledger.operation != ledgers.front().operation)
            throw RequestError(
                fmt::format("{} and {} are of different operations", ledgers.front().file, ledger.file));
        v.files += (v.files.empty() ? "" : ", ") + ledger.file;
        for (const LedgerEntry& entry : ledger.entries) entries.push_back(&entry);
    }
    v.operation = ledgers.front().operation;
    v.ledger = ledgers.front();
    v.ledger.entries.clear();
    v.ledger.text.clear();
    v.problems.resize(entries.size());
    each(entries.size(), [&](std::size_t i) { v.problems[i] = Judge(*entries[i], machine).judged(); });
    std::erase_if(v.problems, [](const ValidatedProblem& p) { return p.members == 0; });
    if (v.problems.empty()) throw RequestError(fmt::format("{}: no problem in it has a time", v.files));
    set_figures(v);
    return v;
}

std::vector<std::string> missed_thresholds(const Validation& v, const std::vector<std::string>& required) {
    std::vector<std::string> missed;
    const std::vector<Figure> figures = figures_of(v);
    for (const std::string& text : required) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const auto figure =
            std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.name == name; });
        double wanted = 0;
        const char *const end = text.data() + text.size(), *const begin = equals == text.npos
                                                                              ? end
                                                                              : text.data() + equals + 1;
        const auto [last, error] = std::from_chars(begin, end, wanted);
        const bool read = error == std::errc() && last == end;
        if (figure == figures.end() || !read)
            throw RequestError(
                fmt::format("--require {}: accepted is NAME=VALUE, as in regret.mean=1.02, best_of.4=1.005, "
                            "prediction_error.p95=0.15 or rank_correlation=0.9",
                            text));
        const bool holds =
            figure->value && (figure->at_least ? *figure->value >= wanted : *figure->value <= wanted);
        if (!holds)
            missed.push_back(fmt::format("{} of {}: {}; wanted {} {}", name, v.operation->name(),
                                         figure->value ? fmt::format("{:.4f}", *figure->value) : "unknown",
                                         figure->at_least ? "at least" : "at most", text.substr(equals + 1)));
    }
    return missed;
}

Json validation_document(const DocumentContext& context, const std::vector<Validation>& operations) {
    Json document = {{"schema", "rooftile/validation/1"},
                     {"context", context_json(context)},
                     {"machine", machine_json(context)},
                     {"operations", Json::array()}};
    for (const Validation& v : operations) document["operations"].push_back(operation_json(v));
    return document;
}

std::string validation_text(const Validation& v, const Terminal& terminal) {
    std::string out = fmt::format("{}, driver {}, {}: {} problems of {} in {}\n", displayable(v.ledger.gpu),
                                  displayable(v.ledger.driver), displayable(v.ledger.date.substr(0, 10)),
                                  v.problems.size(), v.operation->name(), displayable(v.files));
    out += fmt::format("{:.0f} members each in the mean, {} to {}; planned and predicted by this program\n\n",
                       v.space_mean, v.space_least, v.space_most);
    Table figures({{"from 5 us on", Table::Align::left}, {"mean"}, {"95th"}, {"worst"}});
    const auto ratios = [&](const std::string& name, const FigureSpread& s) {
        figures.row({{name}, {ratio_figure(s.mean)}, {ratio_figure(s.p95)}, {ratio_figure(s.max)}});
    };
    const auto shares = [&](const std::string& name, const FigureSpread& s) {
        figures.row({{name}, {share_figure(s.mean)}, {share_figure(s.p95)}, {share_figure(s.max)}});
    };
    ratios("plan 1 over the fastest", v.regret);
    for (std::size_t b = 0; b < std::size(best_of_counts); ++b)
        ratios(fmt::format("best of {}", best_of_counts[b]), v.best_of[b]);
    ratios("predicted fastest member", v.ranked_regret);
    for (const auto& picker : v.pickers)
        ratios(fmt::format("{} ({} problems)", picker.name, picker.problems), picker.regret);
    shares("prediction off, plan 1", v.prediction_error);
    shares("prediction off, all members", v.prediction_error_all);
    out += figures.text(terminal);
    const auto errors = [](const FigureSpread& s) { return s.bias ? prediction_error_text(*s.bias, *s.mean) : std::string("-"); };
    out += fmt::format("\nprediction of plan 1: {}; of all members: {}\n", errors(v.prediction_error), errors(v.prediction_error_all));
    out += fmt::format(
        "\nrank correlation within a problem {} in the mean; the same configuration timed twice differs by "
        "{} in "
        "the mean, {} at most\n",
        ratio_figure(v.rank_correlation), share_figure(v.noise_floor), share_figure(v.noise_max));
    if (v.shorts > 0)
        out += fmt::format(
            "{} problems under 5 us: plan 1 {} us behind the fastest in the mean, prediction off by {}\n",
            v.shorts, ratio_figure(v.short_behind_us),
            v.short_error_us ? prediction_error_us_text(v.short_error_us->bias, v.short_error_us->mean) : "-");
    if (v.outside > 0)
        out += fmt::format("{} problems whose plan 1 is no member: the member predicted fastest takes its place\n",
                           v.outside);
    if (v.unplanned > 0) out += fmt::format("{} members have no plan any more\n", v.unplanned);
    std::vector<const ValidatedProblem*> worst;
    for (const ValidatedProblem& p : v.problems)
        if (p.regret && !p.is_short()) worst.push_back(&p);
    std::stable_sort(worst.begin(), worst.end(),
                     [](const auto* x, const auto* y) { return *x->regret > *y->regret; });
    if (worst.size() > worst_shown) worst.resize(worst_shown);
    Table table({{"worst", Table::Align::left},
                 {"over fastest"},
                 {"best of 8"},
                 {"measured"},
                 {"off"},
                 {"correlation"},
                 {"plan 1", Table::Align::left},
                 {"fastest", Table::Align::left}});
    for (const ValidatedProblem* p : worst)
        table.row({{p->name},
                   {ratio_figure(p->regret)},
                   {ratio_figure(p->best_of[2])},
                   {time_text(*p->plan_us)},
                   {share_figure(p->plan_error)},
                   {ratio_figure(p->rank_correlation)},
                   {p->plan_label},
                   {p->best_label}});
    return out + "\n" + table.text(terminal);
}

}  // namespace rooftile
