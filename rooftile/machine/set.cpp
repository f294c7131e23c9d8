#include "rooftile/machine/set.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/follow.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view text, std::string_view problem) {
    throw RequestError(fmt::format("{} = \"{}\": {}", printable(key), printable(text), problem));
}

void set_feature(Machine& machine, std::string_view name, std::string_view text) {
    if (text == "unknown") machine.features.erase(std::string(name));
    else if (text == "true" || text == "false") machine.features[std::string(name)] = text == "true";
    else refuse(name, text, "accepted: true, false or unknown");
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Assignment split_assignment(std::string_view assignment) {
    if (const auto both = assignment_of(assignment)) return *both;
    throw RequestError(fmt::format("--set \"{}\": accepted is KEY=VALUE, as in --set l2.latency=200clk", printable(assignment)));
}

bool differs(const Machine& machine, const Machine& other, const std::string& key) {
    const std::string feature = key.starts_with("features.") ? key.substr(9) : key;
    if (find_feature(feature)) {
        const auto is = machine.features.find(feature), was = other.features.find(feature);
        const bool known = is != machine.features.end(), was_known = was != other.features.end();
        return known != was_known || (known && is->second != was->second);
    }
    const Fact *is = machine.find(key), *was = other.find(key);
    if (!is || !was) return is != was;
    return is->value != was->value || is->per != was->per || is->dimension != was->dimension;
}

// A product's latencies were fitted as cycles of clock.sustained. Another clock makes them neither more nor fewer.
void keep_fitted_clocks(Machine& machine, const Machine& before) {
    for (const std::string_view input : input_types()) {
        const std::string fitted = fmt::format("clock.fitted.{}", input), part = fmt::format(".{}.", input);
        const auto was = matrix_clock(before, input), is = matrix_clock(machine, input);
        const bool multiplied = std::ranges::any_of(before.facts, [&](const auto& fact) {
            return fact.first.starts_with("rate.") && fact.first.find(part) != std::string::npos;
        });
        if (!was || !multiplied || machine.find(fitted) || (is && is->clock == was->clock)) continue;
        Fact fact = *before.find(was->key);
        fact.source = fmt::format("{} before --set", was->key);
        machine.facts.emplace(fitted, std::move(fact));
    }
}

}  // namespace

std::optional<Assignment> assignment_of(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) return std::nullopt;
    return Assignment{trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
}

void set_fact(Machine& machine, std::string_view key, std::string_view text, std::string_view source) {
    const std::string_view feature = key.starts_with("features.") ? key.substr(9) : key;
    if (find_feature(feature)) return set_feature(machine, feature, text);
    const KeyMatch match = match_key(key);
    if (match.group) refuse(key, text, "this is the beginning of keys; write the whole key");
    if (!match.key) refuse(key, text, match.problem);
    if (text == "unknown") {
        machine.facts.erase(std::string(key));
        return;
    }
    const auto number = parse_number(text);
    if (auto* problem = std::get_if<TextProblem>(&number))
        refuse(key, text, problem->message + "; accepted: " + accepted(*match.key));
    auto fact = make_fact(*match.key, std::get<NumberText>(number), std::string(source));
    if (auto* problem = std::get_if<TextProblem>(&fact)) refuse(key, text, problem->message);
    machine.facts.insert_or_assign(std::string(key), std::move(std::get<Fact>(fact)));
}

void set_number(Machine& machine, std::string_view assignment) {
    const std::string one(assignment);
    set_numbers(machine, {&one, 1});
}

void set_numbers(Machine& machine, std::span<const std::string> assignments) {
    std::vector<Assignment> ordered;
    for (std::string_view assignment : assignments) ordered.push_back(split_assignment(assignment));
    std::ranges::stable_sort(ordered, {}, [](const Assignment& a) { return order_of_setting(a.key); });
    const Machine stated = machine;
    std::set<std::string, std::less<>> set;
    for (const auto& [key, text] : ordered) {
        try {
            const Machine before = machine;
            set_fact(machine, key, text, "--set");
            if (match_key(key).key) scale_followers(machine, before, key, set);
        } catch (const RequestError& error) { throw RequestError(fmt::format("--set {}", error.what())); }
        set.emplace(key);
    }
    keep_fitted_clocks(machine, stated);
    for (const std::string& key : set)
        if (differs(machine, stated, key) && std::ranges::find(machine.changed, key) == machine.changed.end())
            machine.changed.push_back(key);
}

}  // namespace rooftile
