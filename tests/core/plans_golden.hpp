// Plans of drawn problems as they were when somebody last looked at them, in tests/golden/: the best plan with all that it says of itself,
// those behind it by their time, what was rejected. A change of a planner that is meant rewrites them, with ROOFTILE_REGENERATE=1, and
// the difference shows what became of whom; one that is not meant is noticed, wherever in the planner it is.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <string>

#include "rooftile/physics/explanation.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/report/json.hpp"
#include "tests/core/best_of_model.hpp"
#include "tests/golden.hpp"

namespace rooftile {

/// Four digits: another compiler's last bits are not another plan.
inline std::string rounded(double value) { return fmt::format("{:.4g}", value); }
inline void append_rounded(std::string& text, const Json& json) {
    if (json.is_object() || json.is_array()) {
        text += json.is_object() ? '{' : '[';
        for (auto i = json.begin(); i != json.end(); ++i) {
            if (i != json.begin()) text += ' ';
            if (json.is_object()) text += i.key() + ':';
            append_rounded(text, *i);
        }
        text += json.is_object() ? '}' : ']';
    } else if (json.is_number()) text += rounded(json.get<double>());
    else text += json.is_string() ? json.get<std::string>() : json.dump();
}
inline std::string rounded(const Record& record) {
    std::string text;
    append_rounded(text, to_json(record));
    return text;
}

/// " 4 5 49152" of "4 stages fit, 5 x 49152 B do not": words may change.
inline std::string numbers_in(const std::string& text) {
    std::string numbers;
    bool in_one = false;
    for (const char c : text) {
        const bool part = (c >= '0' && c <= '9') || (in_one && c == '.');
        if (part) numbers += (in_one ? "" : " ") + std::string(1, c);
        in_one = part;
    }
    return numbers.empty() ? numbers : ";" + numbers;
}

/// The fastest plan, and all that it says of itself.
inline std::string plan_text(const Operation& op, const Machine& machine, const Plan& plan) {
    std::string text = "  config " + rounded(op.config_record(plan)) + "\n  resources " + rounded(op.resources_record(plan))
                       + "\n  prediction " + rounded(op.prediction_record(plan)) + "\n  roofs";
    const Demand demand = op.demand(machine, plan);
    for (const UnitTime& unit : roof_time(demand, machine, {.sm_share = 0.75, .sustained = true}).units)
        text += " " + unit.key + " " + rounded(unit.seconds);
    for (const PlannedLaunch& launch : plan.launches)
        text += fmt::format("\n  launch {}, workspace {} B, {}{}", launch.kernel, launch.workspace_bytes, int(launch.before),
                            int(launch.after));
    text += "\n  tensors";
    for (const TensorTraffic& t : demand.tensors)
        text += fmt::format(" {} {} {}", t.tensor, rounded(t.footprint_bytes), rounded(t.dram_bytes.value_or(NAN)));
    // What the predictor says of a faster clock and slower memory.
    Machine other = machine;
    for (const auto& [key, factor] : {std::pair{"clock.boost", 1.2}, {"dram.sustained_read", 0.8}, {"dram.latency", 1.1}})
        if (const auto fact = other.facts.find(key); fact != other.facts.end()) fact->second.value *= factor;
    try {
        const PredictedRun run = op.predictor(machine, std::span(&plan, 1))(other).front();
        text += fmt::format("\n  elsewhere {} s at {} Hz\n", rounded(run.seconds), rounded(run.clock_hz));
    } catch (const RequestError& error) { text += fmt::format("\n  elsewhere {}\n", error.what()); }
    const Explanation why = explain(machine, plan, {.depth = Depth::all, .energy = op.models_energy()});
    for (const RoofStep& step : why.attainability) text += fmt::format("  {} {} ns, {} ns\n", step.name, step.time_ns, step.cost_ns);
    if (why.energy)
        text += fmt::format("  energy {} + {} + {} + {} J\n", rounded(why.energy->matrix.value_or(NAN)),
                            rounded(why.energy->fill.value_or(NAN)), rounded(why.energy->dram.value_or(NAN)),
                            rounded(why.energy->idle.value_or(NAN)));
    for (const Step& step : plan.derivation) {
        text += "  " + step.quantity + " " + rounded(step.value.value_or(NAN)) + " " + step.unit + " of";
        for (const Input& input : step.inputs) text += " " + rounded(input.value.value_or(NAN));
        text += numbers_in(step.limit) + "\n";
    }
    return text;
}

inline std::uint32_t checksum(const std::string& text) {  // FNV-1a
    std::uint32_t sum = 2166136261;
    for (const char c : text) sum = (sum ^ std::uint8_t(c)) * 16777619u;
    return sum;
}

/// Of a drawn problem: what was rejected, the first plans by their time and a checksum of all that each says of itself; `whole`: what
/// the first says in full.
inline std::string plans_text(const Operation& op, const BestOfModel::Drawn& drawn, const BestOfModel::Values& fixed, bool whole) {
    Given given(Given::Named::by_key);
    std::string text = drawn.text();
    for (const auto& [key, value] : fixed) given.add(key, value), text += " with " + key + " = " + value;
    PlanSet set;
    try {
        set = op.derive(drawn.machine, drawn.problem, op.request(given, {.top = 4}));
    } catch (const RequestError& error) { return text + "\n  " + error.what() + "\n"; }
    Record rejected{{"count", set.rejected.count()}};
    for (int reason = 0; reason < reason_count; ++reason)
        if (const auto count = set.rejected.reasons[std::size_t(reason)])
            rejected.emplace_back(std::string(name_of(Reason(reason))), count);
    for (const LeftOutByRule& rule : set.rejected.by_rule) rejected.emplace_back(std::string(rule.rule->name), rule.count);
    text += "\n  rejected " + rounded(rejected) + "\n";
    if (set.refusal) return text + "  " + set.refusal->message + "\n";
    const std::string totals = "  problem " + rounded(set.totals) + "\n";
    for (const Plan& plan : set.plans)
        text += fmt::format("  {} {} us {:08x}\n", op.label(plan), rounded(plan.time_us.value_or(NAN)),
                            checksum(totals + plan_text(op, *drawn.machine, plan)));
    return whole ? text + totals + plan_text(op, *drawn.machine, set.plans.front()) : text;
}

inline void forget_a_number(Random& random, BestOfModel::Drawn& drawn) {
    Machine machine = *drawn.machine;
    std::vector<std::string> keys;  // that a plan follows from
    for (const auto& [key, fact] : machine.facts)
        if (!key.starts_with("interval.") && !key.starts_with("link.")) keys.push_back(key);
    const std::string key = random.one_of(keys);
    machine.facts.erase(key);
    drawn.machine = std::make_shared<const Machine>(std::move(machine)), drawn.machine_text += " without " + key;
}

/// Every other problem with one of the values that a request may fix, where `draws` has any; every fifth on a machine of which one
/// number is unknown.
inline void expect_plans_as_before(const BestOfModel& draws, std::uint64_t seed, int problems) {
    Random random(seed);
    std::string text;
    for (int i = 0; i < problems; ++i) {
        BestOfModel::Drawn drawn = draws.drawn(random);
        if (i % 5 == 4) forget_a_number(random, drawn);
        BestOfModel::Values fixed;
        if (draws.values && i % 2) fixed = {random.one_of(draws.values(random, drawn.problem))};
        text += plans_text(draws.op, drawn, fixed, i % 10 == 0);
    }
    expect_golden(fmt::format("plans_{}.txt", draws.op.name()), text);
}

}  // namespace rooftile
