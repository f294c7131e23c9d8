#include "rooftile/physics/what_if.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr int steps_each_way = 24;  // of 6 %: 4^(1/24)

// Whole numbers of things.
bool is_count(std::string_view key) {
    return key.starts_with("sm.") || key.starts_with("cluster.") || key == "l2.partitions";
}

// Plans, timed on a machine of which one number may be another.
class Contest {
  public:
    Contest(const Machine& machine, std::span<const Plan> plans)
        : machine_(machine), size_(plans.size()), predictor_(plans.front().operation->predictor(machine, plans)),
          own_(times()) {}
    std::size_t size() const { return size_; }
    bool known(std::size_t plan) const { return !std::isnan(own_[plan]); }
    bool wins_already(std::size_t plan) const { return wins(own_, plan); }

    /// Seconds of each plan; NaN unknown, as all are where no machine has such a number beside the others.
    std::vector<double> times(const std::string& key, double value) {
        Fact& fact = machine_.facts.find(key)->second;
        const double own = std::exchange(fact.value, value);
        std::vector<double> seconds = times();
        fact.value = own;
        return seconds;
    }
    /// Whether another value changes a time that is known.
    bool changes(const std::string& key, double value) {
        const std::vector<double> seconds = times(key, value);
        for (std::size_t plan = 0; plan < size_; ++plan)
            if (known(plan) && seconds[plan] != own_[plan]) return true;
        return false;
    }

    /// Faster than plan 1 and no slower than any, by more than the clock under power is exact to: a plan's
    /// twin is no competitor.
    static bool wins(const std::vector<double>& times, std::size_t plan) {
        if (!(times[plan] < times[0] * (1 - win_margin))) return false;
        return std::none_of(times.begin(), times.end(),
                            [&](double other) { return other < times[plan] * (1 - win_margin); });
    }

  private:
    std::vector<double> times() const {
        std::vector<double> seconds;
        try {
            for (const PredictedRun& run : predictor_(machine_)) seconds.push_back(run.seconds);
        } catch (const RequestError&) { seconds.assign(size_, unknown_number); }
        return seconds;
    }

    Machine machine_;
    std::size_t size_;
    Predictor predictor_;
    std::vector<double> own_;  ///< times on the machine as it is
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
    Search(const Machine& machine, std::span<const Plan> plans)
        : machine_(machine), contest_(machine, plans), found_(plans.size()) {
        for (std::size_t plan = 1; plan < plans.size(); ++plan)
            if (!contest_.wins_already(plan)) found_[plan].emplace();
    }

    WinsIf run() {
        for (const auto& [key, fact] : machine_.facts) {
            const auto moves = [&](double factor) { return contest_.changes(key, fact.value * factor); };
            if (fact.value == 0 || key.starts_with("interval.") || !(moves(min_change) || moves(max_change))) continue;
            search_outwards(key, fact.value, std::pow(min_change, 1.0 / steps_each_way));
            search_outwards(key, fact.value, std::pow(max_change, 1.0 / steps_each_way));
        }
        for (auto& list : found_) {
            if (!list) continue;
            const auto change = [](const Counterfactual& c) {
                return std::abs(std::log(c.threshold / c.value));
            };
            std::stable_sort(list->begin(), list->end(),
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
                if (won[plan] || !found_[plan] || !contest_.known(plan) || !Contest::wins(times, plan)) continue;
                won[plan] = true;
                add(key, plan, bisected(contest_, key, plan, before, value));
            }
            before = value;
        }
    }
    void add(const std::string& key, std::size_t plan, double threshold) {
        const Input written = Derivation(machine_).fact(key);
        const double unit = written.value.value_or(0) / machine_.find(key)->value;
        found_[plan]->push_back({key, written.unit, written.value.value_or(0), threshold * unit});
    }

    const Machine& machine_;
    Contest contest_;
    WinsIf found_;
};

}  // namespace

WinsIf counterfactuals(const Machine& machine, std::span<const Plan> plans) {
    return Search(machine, plans).run();
}

}  // namespace rooftile
