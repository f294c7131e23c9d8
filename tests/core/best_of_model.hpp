// Plan 1 is the fastest of its own model: no value that a request may fix makes the prediction faster, whatever the problem and the
// machine. Each operation's test supplies the values (tests/<operation>/best_of_model_test.cpp).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {

struct BestOfModel {
    using Values = std::vector<std::pair<std::string, std::string>>;

    const Operation& op;
    /// A value of every key that fixes something of a plan, drawn.
    std::function<Values(Random&, const Problem&)> values;
    std::function<Problem(Random&)> problem;

    static constexpr double slack = 1 - 2e-3;  // of a prediction: what nobody can tell apart

    struct Drawn {
        std::shared_ptr<const Machine> machine;
        std::string machine_text;
        Problem problem;
        std::string text() const {
            std::string text = problem.operation->given(problem).text() + "on " + machine_text;
            std::ranges::replace(text, '\n', ' ');
            return text;
        }
    };

    /// A shipped machine, every other time with a number that is not its own.
    Drawn drawn(Random& random) const {
        static const std::vector<std::string> ids = machine_ids();
        Drawn d;
        d.machine_text = random.one_of(ids);
        Machine machine = machine_by_id(d.machine_text);
        if (random.coin()) {
            static constexpr const char* keys[] = {"sm.count", "l2.size", "l2.bandwidth", "l2.partitions", "dram.bandwidth", "dram.sustained_read",
                                                   "dram.latency", "launch.gap_stream", "power.sustained", "rate.mufu", "shared.per_cta"};
            const std::string key = random.one_of(keys);
            const double factor = random.log_uniform(0.5, 2);
            if (const auto fact = machine.facts.find(key); fact != machine.facts.end()) {
                fact->second.value = key.starts_with("sm.") ? std::round(fact->second.value * factor) : fact->second.value * factor;
                d.machine_text += " " + key + " x " + std::to_string(factor);
            }
        }
        d.machine = std::make_shared<const Machine>(std::move(machine));
        d.problem = problem(random);
        return d;
    }

    /// Of plan 1; NaN where there is none, or its time is unknown.
    struct Planned {
        double us = NAN;
        std::string label{};
        bool buildable = false;
    };
    Planned planned(const Drawn& d, const std::string& key = {}, const std::string& value = {}) const {
        Given given(Given::Named::by_key);
        if (!key.empty()) given.add(key, value);
        try {
            const PlanSet set = op.derive(d.machine, d.problem, op.request(given, {}));
            if (set.plans.empty()) return {};
            return {set.plans.front().time_us.value_or(NAN), op.label(set.plans.front()), set.plans.front().buildable};
        } catch (const RequestError&) { return {}; }
    }

    /// Every key is fixed in turn; at least `least` of the values have a plan.
    void no_fixed_value_is_faster(std::uint64_t seed, int problems, int least) const {
        Random random(seed);
        std::map<std::string, int> compared;
        int all = 0;
        for (int i = 0; i < problems; ++i) {
            const Drawn d = drawn(random);
            const Values drawn_values = values(random, d.problem);
            if (!one_in(3, std::size_t(i))) continue;
            const Planned free = planned(d);
            if (std::isnan(free.us)) continue;
            for (const auto& [key, value] : drawn_values) {
                const Planned fixed = planned(d, key, value);
                if (std::isnan(fixed.us) || (free.buildable && !fixed.buildable)) continue;  // what nobody can build need not come first
                ++compared[key], ++all;
                EXPECT_GE(fixed.us, free.us * slack) << d.text() << ", " << key << " = " << value << ": " << fixed.label
                                                     << " instead of " << free.label;
            }
        }
        EXPECT_GE(all, test_all() ? least : least / 5);
        if (!test_all()) return;
        for (const Field& field : op.fields())
            if (field.group.starts_with("Fixed") && field.kind != FieldKind::on) { EXPECT_GT(compared[field.key], 0) << field.key << " was never compared"; }
    }

    void does_not_depend_on_how_many_are_kept(std::uint64_t seed, int problems) const {
        Random random(seed);
        for (int i = 0; i < problems; ++i) {
            const Drawn d = drawn(random);
            const double free = planned(d).us;
            for (const char* top : {"1", "3", "64"}) {
                const double other = planned(d, "top", top).us;
                if (std::isnan(other) && std::isnan(free)) continue;
                EXPECT_EQ(other, free) << d.text() << " --top " << top;
            }
        }
    }

    /// Of a machine of which half of the numbers are unknown no sentence has a number that is none.
    void tells_no_nan(std::uint64_t seed, int problems) const {
        Random random(seed);
        static const std::vector<std::string> ids = machine_ids();
        int steps = 0;
        for (int i = 0; i < problems; ++i) {
            Machine machine = machine_by_id(random.one_of(ids));
            std::erase_if(machine.facts, [&](const auto&) { return random.coin(); });
            try {
                const PlanSet set = op.derive(std::make_shared<const Machine>(machine), problem(random), op.request(Given(Given::Named::by_key), {}));
                std::vector<std::string> sentences = set.notes;
                if (set.refusal) sentences.push_back(set.refusal->message);
                for (const Plan& plan : set.plans)
                    for (const Step& step : plan.derivation) sentences.push_back(step.quantity + ": " + step.limit), ++steps;
                static const std::regex none("(^|[^a-z_])-?(nan|inf)([^a-z_]|$)");
                for (const std::string& sentence : sentences) EXPECT_FALSE(std::regex_search(sentence, none)) << machine.id << ": " << sentence;
            } catch (const RequestError&) {}
        }
        EXPECT_GT(steps, 0);
    }

    void is_no_slower_without_rules(std::uint64_t seed, int problems) const {
        Random random(seed);
        for (int i = 0; i < problems; ++i) {
            const Drawn d = drawn(random);
            const Planned free = planned(d), all = planned(d, "exhaustive");
            if (std::isnan(free.us)) continue;
            EXPECT_LE(all.us * slack, free.us) << d.text() << ": " << all.label << " instead of " << free.label;
        }
    }
};

}  // namespace rooftile
