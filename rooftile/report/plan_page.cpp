#include "rooftile/report/plan_page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// Two times are shown alike, and the model cannot tell them apart.
constexpr double tie = 0.0005;

/// Gives the choices that no column shows and in which plans differ a column each; where width is short a long name is cut.
void add_other_choices(const PlanSet& plans, PlanPage& page, const Terminal& terminal) {
    constexpr std::size_t longest = 9;
    if (page.columns.empty()) return;
    std::vector<Record> configs;
    for (const Plan& plan : plans.plans) configs.push_back(plan.operation->config_record(plan));
    std::vector<std::string> keys;
    for (const Record& config : configs)
        for (const auto& [key, value] : config)
            if (std::ranges::find(page.columns, key) == page.columns.end() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    for (const std::string& key : keys) {
        const auto text = [&](const Record& config) -> std::string {
            const Json value = find(config, key) ? to_json(*find(config, key)) : Json();
            if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
            if (value.is_string() && !value.get<std::string>().empty()) return value.get<std::string>();
            return value.is_null() || value.is_string() ? "none" : value.dump();
        };
        std::vector<std::string> texts;
        for (const Record& config : configs) texts.push_back(text(config));
        constexpr int drop = 7;
        if (std::ranges::any_of(texts, [&](const std::string& other) { return other != texts[0]; })) {
            const bool cut = terminal.width > 0 && key.size() > longest;
            page.table.column({cut ? key.substr(0, longest - 1) + std::string(terminal.sign("…", "~")) : key, Table::Align::right, drop}, texts);
        }
    }
}

std::string slower_text(const Plan& best, const Plan& other) {
    if (!best.time_us || !other.time_us) return "its time is not known: a number of the machine is missing";
    const double slower = *other.time_us / *best.time_us - 1;
    if (std::abs(slower) < tie) return "as fast by the model";
    return percent_text(std::abs(slower)) + (slower > 0 ? " slower" : " faster by the model");
}

/// "plans 1 to 4 tie; all 8 are within 1.7 %".
std::string ties_text(const PlanSet& plans) {
    const std::size_t count = plans.plans.size();
    const auto slower = [&](std::size_t i) {
        const auto &first = plans.plans[0].time_us, &other = plans.plans[i].time_us;
        return first && other ? *other / *first - 1 : std::nan("");
    };
    std::size_t tied = 1;
    while (tied < count && std::abs(slower(tied)) < tie) ++tied;
    double most = 0;
    for (std::size_t i = 1; i < count; ++i) most = std::max(most, slower(i));  // without those whose time is not known
    std::string out;
    if (tied > 1) out = tied == count ? fmt::format("all {} plans tie: the model cannot tell them apart", count) : fmt::format("plans 1 to {} tie", tied);
    if (count > tied && most > 0) out += fmt::format("{}all {} plans are within {}", out.empty() ? "" : "; ", count, percent_text(most));
    return out;
}

/// "90 % of drawn problems of this kind measured within -8.2 % to +8.0 % of the prediction: plan 1 within 1371 us to 1614 us".
std::string interval_text(const PlanSet& plans) {
    const Plan& best = plans.plans.front();
    if (!best.time_us) return {};
    if (!best.interval) {
        constexpr const char* unrecorded = "no runs of such problems are recorded for this GPU";
        return "predicted times have no interval: " + (plans.why_no_interval.empty() ? unrecorded : plans.why_no_interval);
    }
    const auto& [low, high, machine] = *best.interval;
    return fmt::format("90 % of drawn problems of this kind measured within {} to {} of the prediction{}: plan 1 within {} to {}",
                       signed_percent(low / *best.time_us - 1), signed_percent(high / *best.time_us - 1),
                       machine == plans.machine_id ? "" : " on " + machine, time_text(low), time_text(high));
}

/// "486.2 us at the datasheet's roof; measured roof +150.4 us, epilogue +13.0 us; the rest +21.6 us".
std::string cost_text(const std::vector<RoofStep>& steps) {
    constexpr std::size_t shown = 3;
    if (steps.size() < 2) return {};
    std::vector<const RoofStep*> costs;
    for (std::size_t i = 1; i < steps.size(); ++i)
        if (steps[i].cost_ns != 0) costs.push_back(&steps[i]);
    std::ranges::stable_sort(costs, [](const RoofStep* x, const RoofStep* y) { return std::abs(x->cost_ns) > std::abs(y->cost_ns); });
    std::string out = fmt::format("{} at the datasheet's roof", time_text(double(steps[0].time_ns) / 1000));
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (i >= shown) rest += costs[i]->cost_ns;
        else out += fmt::format("{} {} {}{}", i == 0 ? ";" : ",", roof_step_words(costs[i]->name), costs[i]->cost_ns < 0 ? "-" : "+", time_text(double(std::abs(costs[i]->cost_ns)) / 1000));
    }
    if (rest != 0) out += fmt::format(", the rest {}{}", rest < 0 ? "-" : "+", time_text(double(std::abs(rest)) / 1000));
    return out;
}

std::string_view words_of(Reason reason) {
    if (reason == Reason::shared) return "shared memory";
    if (reason == Reason::rule) return "left out by rules";
    return name_of(reason);
}

/// "23569920 configurations: 5063290 feasible, 8 shown, 78430 refused by registers, ..., 17472840 left out by rules".
std::string searched_text(const PlanSet& plans, bool by_reason) {
    const auto shown = std::int64_t(plans.plans.size());
    const std::int64_t feasible = plans.rejected.reasons[std::size_t(Reason::dominated)] + shown;
    std::string out = fmt::format("{} configurations: {} feasible, {} shown", plans.rejected.count() + shown, feasible, shown);
    for (int i = 0; by_reason && i < reason_count; ++i)
        if (const std::int64_t n = plans.rejected.reasons[std::size_t(i)]; n > 0 && Reason(i) != Reason::dominated)
            out += fmt::format(", {} {}{}", n, Reason(i) == Reason::rule ? "" : "refused by ", words_of(Reason(i)));
    return out;
}

/// Those that say something, their texts under each other.
std::string entries_of(const std::vector<Remark>& remarks, const Terminal& terminal) {
    int width = 0;
    for (const Remark& remark : remarks)
        if (!remark.text.empty()) width = std::max(width, columns_of(remark.title));
    std::string out;
    for (const Remark& remark : remarks)
        if (!remark.text.empty()) out += entry(remark.title + std::string(std::size_t(width - columns_of(remark.title)), ' '), remark.text, terminal);
    return out;
}

/// What a reader must know of a plan besides: whether it can be built, what is unknown.
std::string warnings_text(const PlanSet& plans, const Terminal& terminal) {
    std::vector<Remark> out;
    for (const Plan& plan : plans.plans)
        if (!plan.buildable && std::ranges::none_of(out, [&](const Remark& r) { return r.text == plan.why_not; })) out.push_back({"not buildable", plan.why_not});
    out.push_back({"unknown", joined(plans.unknown)});
    out.push_back({"not checked", joined(plans.unchecked_constraints)});
    for (const std::string& note : plans.notes) out.push_back({"note", note});
    return entries_of(out, terminal);
}

class Page {
  public:
    Page(const PlanSet& plans, PlanPage page, std::span<const Explanation> explanations, const Terminal& terminal)
        : plans_(plans), page_(std::move(page)), explanations_(explanations), terminal_(terminal) {}

    std::string text(const PlanDetail& detail) {
        add_other_choices(plans_, page_, terminal_);
        std::string out = detail.depth == Depth::brief ? brief() : above(page_.walls.size(), detail.depth);
        if (detail.depth == Depth::all) out += everything();
        if (!explanations_.empty() && explanations_[0].energy) out += energy();
        return out;
    }

  private:
    std::string titled(std::string_view title, const std::string& text) const {
        return text.empty() ? "" : "\n" + terminal_.paint(title, Tone::strong) + "\n\n" + text;
    }
    std::vector<NamedPlan> named() const {
        std::vector<NamedPlan> out;
        for (std::size_t i = 0; i < plans_.plans.size(); ++i) {
            const Plan& plan = plans_.plans[i];
            out.push_back({plan.operation->label(plan), plan.time_us, page_.behind.empty() ? slower_text(plans_.plans[0], plan) : page_.behind[i]});
        }
        return out;
    }
    /// Heading, table, reasons and facts.
    std::string above(std::size_t walls, Depth depth) const {
        std::string out = page_.heading + (page_.lead.empty() || depth == Depth::brief ? "" : "\n" + page_.lead) + "\n" + page_.table.text(terminal_);
        if (const std::string ties = ties_text(plans_); !ties.empty()) out += "  " + wrapped(ties, terminal_.prose() - 2, 2) + "\n";
        if (const std::string interval = interval_text(plans_); !interval.empty()) out += "  " + wrapped(interval, terminal_.prose() - 2, 2) + "\n";
        std::vector<Remark> reasons = page_.why;
        if (depth >= Depth::brief) reasons.insert(reasons.end(), page_.walls.begin(), page_.walls.begin() + std::ptrdiff_t(walls));
        if (!explanations_.empty()) reasons.push_back({"what it costs", cost_text(explanations_[0].attainability)});
        const std::string why = entries_of(reasons, terminal_), facts = entries_of(page_.facts, terminal_) + warnings_text(plans_, terminal_);
        return out + (why.empty() ? "" : "\n" + why) + (facts.empty() ? "" : "\n" + facts);
    }
    /// One page. Where all has no room, first the runners-up go, then walls, then rows of the table.
    std::string brief() {
        constexpr int most_lines = 45;
        const auto lines = [](std::string_view text) { return int(std::ranges::count(text, '\n')); };
        std::string end;
        if (!explanations_.empty() && !explanations_[0].attainability.empty())
            end += "\n" + terminal_.paint("From the roof to the prediction", Tone::strong) + "\n" + roof_bars_text(explanations_[0].attainability, terminal_);
        const std::string searched = "\n" + entry("searched", searched_text(plans_, false) + "; --explain=all shows every step", terminal_);
        const std::vector<NamedPlan> plans = named();
        std::size_t others = std::min<std::size_t>(2, plans.size() - 1), walls = page_.walls.size(), rows = plans.size();
        for (;;) {
            const std::string out = above(walls, Depth::brief) + end + runners_up_text({plans.data(), 1 + others}, explanations_, 1, terminal_) + searched;
            if (lines(out) <= most_lines || (others == 0 && walls == 0 && rows <= 2)) return out;
            if (others > 0) --others;
            else if (walls > 0) --walls;
            else page_.table.keep_rows(--rows);
        }
    }
    std::string everything() const {
        const Plan& best = plans_.plans.front();
        std::string out = entry("searched", searched_text(plans_, true), terminal_) + rules_text(plans_.rejected, terminal_);
        out += "\n" + terminal_.paint_lines(wrapped("Why plan 1: " + best.operation->label(best), terminal_.width, 2), Tone::strong) + "\n" + steps_text(best.derivation, best.operation->config_record(best), terminal_);
        if (!explanations_.empty())
            out += titled("From the roof to the prediction, plan 1", attainability_text(explanations_[0].attainability, std::nullopt, terminal_));
        return out + runners_up_text(named(), explanations_, 3, terminal_);
    }
    std::string energy() const {
        if (!page_.energy.empty()) return titled("Energy of one launch", page_.energy);
        return titled("Energy of one launch, plan 1", energy_text(*explanations_[0].energy, terminal_) + min_energy_text(named(), explanations_, terminal_));
    }

    const PlanSet& plans_;
    PlanPage page_;
    std::span<const Explanation> explanations_;
    const Terminal& terminal_;
};

}  // namespace

std::string plan_text(const PlanSet& plans, const PlanDetail& detail, std::span<const Explanation> explanations, const Terminal& terminal) {
    return Page(plans, plans.problem.operation->page(plans, explanations, terminal), explanations, terminal).text(detail);
}

const Step* step_of(const std::vector<Step>& steps, std::string_view quantity) {
    const auto found = std::ranges::find(steps, quantity, &Step::quantity);
    return found == steps.end() ? nullptr : &*found;
}

std::string limit_of(const std::vector<Step>& steps, std::string_view quantity) {
    const Step* step = step_of(steps, quantity);
    return step ? step->limit : std::string();
}

std::string value_of(const std::vector<Step>& steps, std::string_view quantity) {
    const Step* step = step_of(steps, quantity);
    return step && step->value ? number_text(*step->value) : std::string("?");
}

}  // namespace rooftile
