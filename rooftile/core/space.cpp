#include "rooftile/core/space.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

/// The best buildable plan of a request.
PlanSet best_of(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                const Problem& problem, const Given& given) {
    return operation.derive(machine, problem, operation.request(given, {.top = 1, .buildable_only = true}));
}

/// Members that differ, by their configurations.
class Members {
  public:
    Members(const Operation& operation, std::vector<Plan>& plans) : operation_(operation), plans_(plans) {}
    /// The place of that configuration, which it now has.
    std::size_t add(Plan plan) {
        Record config = operation_.config_record(plan);
        const auto found = std::find(configs_.begin(), configs_.end(), config);
        if (found != configs_.end()) return std::size_t(found - configs_.begin());
        configs_.push_back(std::move(config));
        plans_.push_back(std::move(plan));
        return plans_.size() - 1;
    }

  private:
    const Operation& operation_;
    std::vector<Plan>& plans_;
    std::vector<Record> configs_;
};

}  // namespace

void Operation::add_tensors(Given&, std::span<const TensorInfo>) const {
    throw RequestError(std::string(name()) + " is not planned from tensors; give its fields");
}

std::vector<Pick> Operation::picks(const Machine&, const Problem&) const { return {}; }

DeclaredSpace declared_space(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                             const Problem& problem, int top, std::span<const Pick> others) {
    if (operation.space_rule().empty())
        throw RequestError(fmt::format("{} declares no space of configurations yet", operation.name()));
    DeclaredSpace space;
    Members members(operation, space.members);
    const Own request = operation.request(Given(Given::Named::by_key), {.top = top, .buildable_only = true});
    for (Plan& plan : operation.derive(machine, problem, request).plans) members.add(std::move(plan));
    space.kept = space.members.size();
    if (space.kept == 0) return space;
    for (Plan& plan : operation.space(machine, problem)) members.add(std::move(plan));
    std::vector<Pick> picks = operation.picks(*machine, problem);
    picks.insert(picks.end(), others.begin(), others.end());
    for (const Pick& pick : picks) {
        std::string why = "it picks nothing";
        bool found = false;
        for (const Given& given : pick.alternatives) {
            PlanSet plans = best_of(operation, machine, problem, given);
            if (plans.refusal) {
                why = plans.refusal->message;
                continue;
            }
            space.picks.push_back({pick.name, members.add(std::move(plans.plans.front()))});
            found = true;
            break;
        }
        if (!found) space.notes.push_back(fmt::format("{} has no member here: {}", pick.name, why));
    }
    return space;
}

namespace {

/// The best plan with what the record fixes, if it has the record's values under all of its keys that count.
template <class Counts>
std::optional<Plan> plan_with(const Operation& operation, const std::shared_ptr<const Machine>& machine, const Problem& problem, const Record& config,
                              Counts counts) {
    PlanSet plans = best_of(operation, machine, problem, operation.given_of_config(config));
    if (plans.plans.empty()) return std::nullopt;
    const Record planned = operation.config_record(plans.plans.front());
    const bool same = std::all_of(config.begin(), config.end(), [&](const auto& item) {
        const Value* value = find(planned, item.first);
        return !counts(item.first) || (value && *value == item.second);
    });
    if (!same)
        return std::nullopt;  // a key that this program does not know, or a value that it no longer takes
    return std::move(plans.plans.front());
}

}  // namespace

std::optional<Plan> plan_of_config(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                                   const Problem& problem, const Record& config) {
    return plan_with(operation, machine, problem, config, [](std::string_view) { return true; });
}

std::optional<Plan> plan_of_member(const Operation& operation, const std::shared_ptr<const Machine>& machine, const Problem& problem,
                                   const Record& config) {
    const auto keys = operation.space_keys();
    return plan_with(operation, machine, problem, config, [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); });
}

bool same_member(const Operation& operation, const Record& x, const Record& y) {
    const auto keys = operation.space_keys();
    return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
        const Value *a = find(x, key), *b = find(y, key);
        return (a ? *a : Value()) == (b ? *b : Value());  // null: the form has no use for it, or it is from before the key
    });
}

}  // namespace rooftile
