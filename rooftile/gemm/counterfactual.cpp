#include "rooftile/gemm/counterfactual.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rooftile/core/derivation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"

namespace rooftile {
namespace {

constexpr int steps_each_way = 24;  // of 6 %: 4^(1/24)

// Whole numbers of things.
bool is_count(std::string_view key) {
    return key.starts_with("sm.") || key.starts_with("cluster.") || key == "l2.partitions";
}

// The plans of one outcome, timed on a machine of which one number may be another.
class Contest {
  public:
    Contest(const Machine& machine, const Plans& plans) : machine_(machine) {
        for (const GemmPlan& plan : plans.plans) plans_.push_back(evaluate_plan(machine, plan));
        for (const auto& plan : plans_)
            if (plan) family_ = plan->family, type_ = plan->gemm.problem.a_type;
    }
    std::size_t size() const { return plans_.size(); }
    bool known(std::size_t plan) const { return plans_[plan] && !std::isnan(plans_[plan]->time.seconds); }

    /// Seconds of each plan; NaN unknown, as all are where no machine has such a number beside the others.
    std::vector<double> times(const std::string& key, double value) {
        std::vector<double> seconds(plans_.size(), unknown_number);
        Fact& fact = machine_.facts.find(key)->second;
        const double own = std::exchange(fact.value, value);
        try {
            std::vector<std::string> unknown;
            const GemmHardware hw = gemm_hardware(machine_, family_, type_, unknown);
            for (std::size_t i = 0; i < plans_.size(); ++i)
                if (plans_[i]) seconds[i] = on_hardware(hw, *plans_[i]).time.seconds;
        } catch (const RequestError&) {}
        fact.value = own;
        return seconds;
    }

    /// Faster than plan 1 and no slower than any, by more than the clock under power is exact to: a plan's
    /// twin is no competitor.
    static bool wins(const std::vector<double>& times, std::size_t plan) {
        if (!(times[plan] < times[0] * (1 - win_margin))) return false;
        return std::none_of(times.begin(), times.end(),
                            [&](double other) { return other < times[plan] * (1 - win_margin); });
    }

  private:
    Machine machine_;
    std::vector<std::optional<PlanEvaluation>> plans_;
    std::string family_;
    Type type_ = Type::bf16;
};

// Between a value at which `plan` does not win and one at which it does: the nearest to the first at which it
// still does.
double bisected(Contest& contest, const std::string& key, std::size_t plan, double loses, double wins) {
    const bool count = is_count(key);
    constexpr int halvings = 30;
    for (int i = 0; i < halvings; ++i) {
        double middle = (loses + wins) / 2;
        if (count) middle = std::round(middle);
        if (middle == loses || middle == wins) break;
        (Contest::wins(contest.times(key, middle), plan) ? wins : loses) = middle;
    }
    return wins;
}

class Search {
  public:
    Search(const Machine& machine, const Plans& plans)
        : machine_(machine), contest_(machine, plans), found_(plans.plans.size()) {}

    std::vector<std::vector<Counterfactual>> run() {
        for (const auto& [key, fact] : machine_.facts) {
            const auto own = contest_.times(key, fact.value);
            const auto moves = [&](double factor) { return contest_.times(key, fact.value * factor) != own; };
            if (fact.value == 0 || !(moves(min_change) || moves(max_change))) continue;
            search_outwards(key, fact.value, std::pow(min_change, 1.0 / steps_each_way));
            search_outwards(key, fact.value, std::pow(max_change, 1.0 / steps_each_way));
        }
        for (auto& list : found_) {
            const auto change = [](const Counterfactual& c) {
                return std::abs(std::log(c.threshold / c.value));
            };
            std::stable_sort(list.begin(), list.end(),
                             [&](const auto& x, const auto& y) { return change(x) < change(y); });
        }
        return std::move(found_);
    }

  private:
    // Away from the machine's own value step by step, until every plan has won once or the range ends.
    void search_outwards(const std::string& key, double own, double factor) {
        std::vector<bool> won(contest_.size(), false);
        double before = own, exact = own;
        for (int i = 0; i < steps_each_way; ++i) {
            exact *= factor;
            const double value = is_count(key) ? std::max(1.0, std::round(exact)) : exact;
            if (value == before) continue;
            const std::vector<double> times = contest_.times(key, value);
            for (std::size_t plan = 1; plan < contest_.size(); ++plan) {
                if (won[plan] || !contest_.known(plan) || !Contest::wins(times, plan)) continue;
                won[plan] = true;
                add(key, plan, bisected(contest_, key, plan, before, value));
            }
            before = value;
        }
    }
    void add(const std::string& key, std::size_t plan, double threshold) {
        const Input written = Derivation(machine_).fact(key);
        const double unit = written.value.value_or(0) / machine_.find(key)->value;
        found_[plan].push_back({key, written.unit, written.value.value_or(0), threshold * unit});
    }

    const Machine& machine_;
    Contest contest_;
    std::vector<std::vector<Counterfactual>> found_;
};

}  // namespace

std::vector<std::vector<Counterfactual>> counterfactuals(const Machine& machine, const Plans& plans) {
    return Search(machine, plans).run();
}

}  // namespace rooftile
