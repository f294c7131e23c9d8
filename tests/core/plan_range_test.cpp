// The fewest kernels for a range of one field: of every operation whose example has a field that may be one.
#include "rooftile/core/plan_range.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"
#include "tests/core/toy_operation.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

constexpr double within = 0.03;
constexpr std::int64_t largest = 8192;  ///< value of a field that is drawn

std::shared_ptr<const Machine> machine() {
    return std::make_shared<const Machine>(machine_by_id("h100-sxm"));
}

/// Every configuration is a kernel of its own: what code is shared is the compiler's side to say, no matter of the bound.
std::string code_of(const Plan& plan) {
    return plan.operation->given_of_config(plan.operation->config_record(plan)).text();
}

/// Whether the example may have that value.
bool takes(const Operation& operation, const Given& given, const std::string& key, std::int64_t value) {
    try {
        operation.problem(with_text(operation, given, key, std::to_string(value)));
        return true;
    } catch (const RequestError&) {
        return false;
    }
}

/// Fields of the example whose values make other problems, from 1 on, and that a configuration does not fix.
std::vector<std::string> extents_of(const Operation& operation) {
    std::vector<std::string> keys;
    const Given example = example_of(operation);
    for (const Field& field : operation.fields()) {
        const std::string& text = example.text(field.key);
        if (field.kind != FieldKind::value || text.empty()
            || text.find_first_not_of("0123456789") != text.npos)
            continue;
        constexpr std::int64_t odd = 17;  // of what takes only multiples, beyond a few, there are no ranges
        if (!takes(operation, example, field.key, 1) || !takes(operation, example, field.key, odd) || !takes(operation, example, field.key, largest)) continue;
        const auto record = [&](const char* value) {
            return operation.problem_record(
                operation.problem(with_text(operation, example, field.key, value)));
        };
        if (record("64") != record("128")) keys.push_back(field.key);
    }
    return keys;
}

/// What the problem derives from the field, as a line's length from an extent, given as it is at `most`.
Given with_followers(const Operation& operation, Given given, const std::string& key, std::int64_t most) {
    const auto record = [&](std::int64_t value) {
        return operation.problem_record(
            operation.problem(with_text(operation, given, key, std::to_string(value))));
    };
    const Record small = record(1), large = record(most);
    for (const auto& [other, value] : large)
        if (other != key && !(*find(small, other) == value))
            given = with_text(operation, given, other,
                              std::to_string(find_as<std::int64_t>(large, other).value()));
    return given;
}

PlanSet planned(const Operation& operation, const Given& given) {
    return operation.derive(machine(), operation.problem(given),
                            operation.request(given, {.top = 1, .buildable_only = true}));
}

/// The request, with what fixes the part's configuration, of one value.
PlanSet of_part(const Operation& operation, const Given& given, const PlanRange::Part& part,
                const std::string& key, std::int64_t value) {
    Given fixed = with_text(operation, given, key, std::to_string(value));
    for (const Field& field : operation.fields())
        for (const std::string& text : part.fields.list(field.key)) fixed.add(field.key, text);
    return planned(operation, fixed);
}

struct Ranged {
    const Operation* operation;
    std::string key;
};

std::vector<Ranged> ranged_fields() {
    std::vector<Ranged> out;
    for (const Operation* operation : all_operations())
        for (const std::string& key : extents_of(*operation))
            // Where what follows from a field ties it to divisors, as heads that share keys, other values are no problems.
            if (takes(*operation, with_followers(*operation, example_of(*operation), key, 4096), key, 3)) out.push_back({operation, key});
    return out;
}

class Ranges : public testing::TestWithParam<Ranged> {
  protected:
    const Operation& operation() const { return *GetParam().operation; }
    const std::string& key() const { return GetParam().key; }
    /// The example, its other extents drawn.
    Given drawn(std::uint64_t seed) const {
        Random random(seed);
        Given given = example_of(operation());
        for (const std::string& other : extents_of(operation()))
            if (other != key()) {
                const Given next = with_text(operation(), given, other, std::to_string(8 * random.whole(8, largest / 8)));
                if (takes(operation(), next, key(), 1) && takes(operation(), next, key(), 4096)) given = next;
            }
        return with_followers(operation(), given, key(), 4096);
    }
    PlanRange range(const Given& given, std::int64_t least, std::int64_t most) const {
        return plan_range(operation(), machine(), given, {key(), least, most}, within, code_of);
    }
};

INSTANTIATE_TEST_SUITE_P(Fields, Ranges, testing::ValuesIn(ranged_fields()), [](const auto& info) {
    return std::string(info.param.operation->name()) + "_" + info.param.key;
});

TEST(Range, SomeFieldsMayBeOne) {
    bool shipped = false;
    for (const Ranged& field : ranged_fields())
        shipped |= std::ranges::find(operations(), field.operation) != operations().end();
    EXPECT_TRUE(shipped);
}

TEST_P(Ranges, PartsFollowEachOtherFromTheFirstValueToTheLast) {
    const PlanRange plans = range(drawn(1), 3, 300);
    std::int64_t next = 3;
    std::set<std::size_t> kernels;
    for (const PlanRange::Part& part : plans.parts) {
        EXPECT_EQ(part.from, next);
        EXPECT_TRUE(part.from <= part.worst && part.worst <= part.to);
        EXPECT_LE(part.ratio, plans.ratio);
        kernels.insert(part.kernel);
        next = part.to + 1;
    }
    EXPECT_EQ(next, 301);
    EXPECT_EQ(kernels.size(), plans.kernels);
    EXPECT_LE(plans.ratio, 1 + within);
}

// The bound is proved for the values that were looked at. The last round drew 48 more and found none outside: of all values, at
// most 3 in 48 are outside then, with a confidence of 95 %.
TEST_P(Ranges, ValuesThatNobodyLookedAtAreWithinTheBoundButForFew) {
    const std::int64_t most = test_all() ? 4096 : 1024;
    constexpr int values = 96;  // one range is enough: most of the time goes into it, and each field has its own
    const Given given = drawn(1);
    const PlanRange plans = range(given, 1, most);
    std::vector<std::string> outside;
    Random random(101);
    for (int i = 0; i < values; ++i) {
        const auto value = std::min(most, std::int64_t(random.log_uniform(1, double(most) + 1)));
        if (!one_in(4, std::size_t(i))) continue;
        const auto part = std::ranges::find_if(plans.parts, [&](const auto& p) { return value <= p.to; });
        const PlanSet own = planned(operation(), with_text(operation(), given, key(), std::to_string(value)));
        const PlanSet ours = of_part(operation(), given, *part, key(), value);
        ASSERT_FALSE(own.refusal) << value << ": " << own.refusal->message;
        if (ours.refusal || *ours.plans.front().time_us > *own.plans.front().time_us * (1 + within))
            outside.push_back(fmt::format("{} = {}: {}", key(), value, ours.refusal ? ours.refusal->message : "slower"));
    }
    EXPECT_LE(outside.size(), std::size_t(values) * 3 / 48) << testing::PrintToString(outside);
}

TEST_P(Ranges, OneValueHasItsOwnPlan) {
    for (const std::int64_t value : {1, 77, 1024}) {
        const Given given = drawn(4);
        const PlanRange plans = range(given, value, value);
        const PlanSet own = planned(operation(), with_text(operation(), given, key(), std::to_string(value)));
        ASSERT_EQ(plans.parts.size(), 1u);
        EXPECT_EQ(plans.kernels, 1u);
        EXPECT_EQ(plans.ratio, 1);
        EXPECT_EQ(operation().config_record(plans.parts[0].plan),
                  operation().config_record(own.plans.front()));
    }
}

TEST_P(Ranges, WhatIsNoRangeIsRefusedInOneLine) {
    const auto asked = [&](const std::string& text) { return with_text(operation(), drawn(1), key(), text); };
    EXPECT_FALSE(range_in(operation(), asked("64")));
    EXPECT_EQ(range_in(operation(), asked("5..5"))->least, 5);
    std::vector<Given> refused;
    for (const char* text :
         {"5..1", "0..4", "1..x", "..", "1..", "..4", "1...4", "-1..4", "1..99999999999999999999"})
        refused.push_back(asked(text));
    refused.push_back(asked("1..8"));
    refused.back().add("explain", "");
    for (const std::string& other : extents_of(operation()))
        if (other != key()) refused.push_back(with_text(operation(), asked("1..8"), other, "1..8"));
    // What follows the field, and is left open.
    const Given open = with_text(operation(), example_of(operation()), key(), "1..8");
    if (with_followers(operation(), open, key(), 8).text() != open.text()) {
        EXPECT_THROW(plan_range(operation(), machine(), open, {key(), 1, 8}, within, code_of), RequestError);
    }
    for (const Given& given : refused) {
        try {
            range_in(operation(), given);
            ADD_FAILURE() << given.text();
        } catch (const RequestError& error) {
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace rooftile
