// What every operation promises the stations: all of the list, and the toy one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/report/csv.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/terminal.hpp"
#include "tests/core/example.hpp"
#include "tests/core/toy_operation.hpp"
#include "tests/watched_file.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

class Conformance : public testing::TestWithParam<const Operation*> {
  protected:
    const Operation& operation() const { return *GetParam(); }
    Problem problem() const { return operation().problem(example_of(operation())); }
    PlanSet derived(const char* machine, int top = 8) const {
        return operation().derive(std::make_shared<const Machine>(machine_by_id(machine)), problem(),
                                  operation().request(Given(), {.top = top}));
    }
    Json document(const PlanSet& plans) const { return plan_document({}, plans); }
};

INSTANTIATE_TEST_SUITE_P(Operations, Conformance, testing::ValuesIn(all_operations()),
                         name_of_operation);

TEST_P(Conformance, FieldsHaveKeysOfTheirOwnAndSayWhatTheyMean) {
    std::set<std::string> keys;
    for (const Field& field : operation().fields()) {
        EXPECT_TRUE(keys.insert(field.key).second) << field.key;
        EXPECT_FALSE(field.meaning.empty()) << field.key;
        EXPECT_EQ(field.form.empty(), field.kind == FieldKind::on) << field.key;
    }
}

TEST_P(Conformance, ARequestWithoutAProblemIsRefusedInOneLine) {
    try {
        operation().problem(Given());
        FAIL() << "nothing is a problem";
    } catch (const RequestError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
}

TEST_P(Conformance, AProblemComesBackFromItsText) {
    const Problem first = problem(), second = operation().problem(operation().given(first));
    EXPECT_EQ(operation().problem_record(first), operation().problem_record(second));
}

TEST_P(Conformance, AProblemComesBackFromItsRecord) {
    const Problem again = operation().problem(operation().given_of_record(operation().problem_record(problem())));
    EXPECT_EQ(operation().problem_record(again), operation().problem_record(problem()));
}

TEST_P(Conformance, EveryShippedMachineGivesATimeForWhatItPlans) {
    for (const std::string& id : machine_ids()) {
        const PlanSet set = derived(id.c_str(), 1);
        if (set.plans.empty()) {
            EXPECT_FALSE(set.refusal->message.empty()) << id;
        } else EXPECT_TRUE(set.plans.front().time_us) << id;
    }
}

// A launch takes as long whatever is launched: where that is unknown, plans are ranked as with it, and it is named.
TEST_P(Conformance, WhatIsTheSameForAllPlansIsNotNeededToRankThem) {
    Machine machine = machine_by_id("h100-sxm"), blind = machine;
    set_number(blind, "launch.gap_stream=unknown");
    const auto derived_on = [&](const Machine& on) {
        return operation().derive(std::make_shared<const Machine>(on), problem(), operation().request(Given(), {.top = 8}));
    };
    const PlanSet with = derived_on(machine), without = derived_on(blind);
    ASSERT_EQ(with.plans.size(), without.plans.size());
    // But for plans half a percent apart: power is joules a second, which a launch has none of.
    const Record first = operation().config_record(without.plans.front());
    const auto same = std::ranges::find_if(with.plans, [&](const Plan& plan) { return operation().config_record(plan) == first; });
    ASSERT_NE(same, with.plans.end());
    EXPECT_LE(*same->time_us, 1.005 * *with.plans.front().time_us);
    EXPECT_TRUE(without.plans.front().time_us);
}

// A suite, a request in JSON and a row of results are from anybody: whichever of their values is the name of a file, it is not read.
TEST_P(Conformance, NoValueOfADocumentIsReadAsAFile) {
    WatchedFile file;
    const auto refused = [&](const std::string& key, const std::function<void()>& use) {
        try {
            use();
        } catch (const std::exception& error) {
            EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
        }
        EXPECT_FALSE(file.opened()) << operation().name() << " reads the file that " << key << " names";
    };
    for (const Field& field : operation().fields()) {
        Given given(Given::Named::by_key);
        for (const Field& other : operation().fields())
            if (const Given example = example_of(operation()); other.key != field.key && example.has(other.key))
                for (const std::string& text : example.list(other.key)) given.add(other.key, text);
        // Those that say the same in another way would be refused first.
        for (int without = 0; without < 2; ++without) {
            Given asked = without ? Given(Given::Named::by_key) : given;
            if (without)
                for (const char* key : {"n", "k", "heads", "dim"})
                    if (field.key != key) asked.add(key, "64");
            asked.add(field.key, file.path());
            refused(field.key, [&] { operation().problem(asked); });
            refused(field.key, [&] { operation().request(asked, {}); });
        }
    }
    Random random(16);
    for (int i = 0; i < 20; ++i) {
        Record record = operation().problem_record(operation().draw(random, {}));
        for (const Field& field : operation().fields())
            if (!find(record, field.key)) record.emplace_back(field.key, Value());
        for (auto& [key, value] : record) {
            const Value kept = std::exchange(value, Value(file.path()));
            refused(key, [&] { operation().problem(operation().given_of_record(record)); });
            value = kept;
        }
    }
}

// Which problems are drawn follows from the seed alone, and each is one that can be asked for.
TEST_P(Conformance, DrawsAreTheSameOfASeedAndCanBeAskedFor) {
    Random random(3), same(3);
    EXPECT_FALSE(operation().law({}).name.empty());
    std::vector<std::string_view> features;
    for (int i = 0; i < 100; ++i) {
        const Problem drawn = operation().draw(random, {});
        const Record record = operation().problem_record(drawn);
        EXPECT_EQ(operation().problem_record(operation().draw(same, {})), record);
        EXPECT_EQ(operation().problem_record(operation().problem(operation().given(drawn))), record);
        EXPECT_EQ(operation().problem_record(operation().problem(operation().given_of_record(record))), record);
        const ProblemTraits traits = operation().traits(drawn);
        EXPECT_FALSE(traits.band.empty());
        EXPECT_GT(traits.x.value, 0);
        EXPECT_GT(traits.y.value, 0);
        std::vector<std::string_view> names;  // whatever the problem is, the same features are looked at
        for (const auto& [name, has] : traits.features) names.push_back(name);
        if (i > 0) { EXPECT_EQ(names, features); }
        features = names;
    }
}

/// By the words that the refusal of another one lists.
std::vector<std::string> laws_of(const Operation& operation) {
    std::string list;
    try {
        operation.law({.law = "no law"});
    } catch (const RequestError& error) {
        list = std::string(error.what());
    }
    if (list.find("accepted is ") == list.npos) return {""};  // the plain one alone
    list.erase(0, list.rfind("accepted is ") + std::string("accepted is ").size());
    std::vector<std::string> laws;
    for (std::size_t end; !list.empty(); list.erase(0, end == list.npos ? end : end + 2)) {
        end = list.find(", ");
        laws.push_back(list.substr(0, end));
    }
    return laws;
}

TEST_P(Conformance, ADrawnSuiteOfEveryLawComesBackFromItsFile) {
    ASSERT_FALSE(laws_of(operation()).empty());
    for (const std::string& law : laws_of(operation())) {
        SCOPED_TRACE(law);
        SweepRequest request{.draw = 20, .seed = 5, .law = {.law = law}, .max_bytes = 1.5e11};
        if (operation().traits(operation().draw(*std::make_unique<Random>(5), {.law = law})).flops > 0) request.max_flops = 1.5e15;
        const Suite drawn = swept_suite(operation(), request);
        const Suite read = operation().suite(suite_toml(drawn), "s.toml");
        EXPECT_EQ(read.name, drawn.name);
        EXPECT_EQ(read.law, drawn.law);
        EXPECT_EQ(suite_toml(read), suite_toml(drawn));
    }
}

TEST_P(Conformance, ADrawnSuiteComesBackFromItsFile) {
    const Suite drawn = swept_suite(operation(), {.draw = 50, .seed = 5});
    const Suite read = operation().suite(suite_toml(drawn), "s.toml");
    ASSERT_EQ(read.problems.size(), 50u);
    for (std::size_t i = 0; i < read.problems.size(); ++i) {
        EXPECT_EQ(operation().problem_record(read.problems[i].problem),
                  operation().problem_record(drawn.problems[i].problem));
        EXPECT_EQ(read.problems[i].layers, drawn.problems[i].layers);
    }
    EXPECT_EQ(suite_toml(read), suite_toml(drawn));
}

/// A file of suites with the operation's example as its one problem.
std::string suite_of(const Operation& operation) {
    std::string text = "schema = \"rooftile/suite/1\"\nname = \"s\"\nop = \"" + std::string(operation.name())
                       + "\"\n[[problem]]\nname = \"first\"\n";
    const Given given = example_of(operation);
    for (const Field& field : operation.fields()) {
        if (!given.has(field.key)) continue;
        std::string values;
        for (const std::string& value : given.list(field.key)) values += (values.empty() ? "'" : ", '") + value + "'";
        text += field.key + " = " + (field.kind == FieldKind::list ? "[" + values + "]" : values) + "\n";
    }
    return text;
}

TEST_P(Conformance, ASuiteHoldsProblemsByTheirFields) {
    const Suite suite = operation().suite(suite_of(operation()), "s.toml");
    ASSERT_EQ(suite.problems.size(), 1u);
    EXPECT_EQ(operation().problem_record(suite.problems[0].problem), operation().problem_record(problem()));
    EXPECT_EQ(suite.problems[0].layers, (std::vector<SuiteLayer>{{"s", "first"}}));
    EXPECT_THAT(name_of(suite.problems[0]), testing::HasSubstr(operation().short_name(problem())));
    try {
        operation().suite(suite_of(operation()) + "surprise = 1\n", "s.toml");
        FAIL();
    } catch (const RequestError& error) { EXPECT_THAT(error.what(), testing::HasSubstr("problem.surprise: unknown key")); }
}

/// A value that is no list's is given once, not as an array of which one would be taken; a switch is on or off.
TEST_P(Conformance, ASuiteRefusesValuesOfAnotherKind) {
    const std::string head = "schema = \"rooftile/suite/1\"\nname = \"s\"\nop = \"" + std::string(operation().name())
                             + "\"\n[[problem]]\n";
    for (const Field& field : operation().fields()) {
        if (!field.group.starts_with("Problem")) continue;
        const char* wrong = field.kind == FieldKind::on ? "1" : field.kind == FieldKind::list ? "true" : "['1', '2']";
        try {
            operation().suite(head + field.key + " = " + wrong + "\n", "s.toml");
            FAIL() << field.key;
        } catch (const RequestError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("problem." + field.key + ": accepted: "));
        }
    }
}

TEST_P(Conformance, TensorsAreNamedOnceAndHaveAStrideAnExtent) {
    std::set<std::string> names;
    for (const TensorInfo& tensor : operation().tensors(problem())) {
        EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
        EXPECT_EQ(tensor.extents.size(), tensor.strides.size()) << tensor.name;
        EXPECT_GT(tensor.element_bits, 0) << tensor.name;
        for (const Extent& extent : tensor.extents) EXPECT_LE(extent.least, extent.most) << tensor.name;
    }
}

TEST_P(Conformance, APlanIsTheSameEveryTime) {
    EXPECT_EQ(document(derived("h100-sxm")), document(derived("h100-sxm")));
}

TEST_P(Conformance, EveryShippedMachineGetsAPlanOrOneReason) {
    for (const std::string& id : machine_ids()) {
        const PlanSet plans = derived(id.c_str());
        EXPECT_NE(plans.plans.empty(), !plans.refusal.has_value()) << id;
        if (plans.refusal) {
            EXPECT_EQ(plans.refusal->message.find('\n'), std::string::npos) << id;
        }
    }
}

TEST_P(Conformance, KeptAndRejectedAreAlwaysAsMany) {
    const auto candidates = [](const PlanSet& set) { return std::int64_t(set.plans.size()) + set.rejected.count(); };
    EXPECT_EQ(candidates(derived("h100-sxm", 1)), candidates(derived("h100-sxm", 8)));
}

// Rules leave out candidates of a space that does not depend on them, and each is counted under its name.
TEST_P(Conformance, RulesAreCountedAndCanBeSwitchedOff) {
    const auto fields = operation().fields();
    const bool has_rules =
        std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.key == "exhaustive"; });
    Given exhaustive;
    if (has_rules) exhaustive.add("exhaustive", "");
    for (const char* id : {"h100-sxm", "a100-80-sxm"}) {
        const PlanSet some = derived(id);
        const PlanSet all = operation().derive(std::make_shared<const Machine>(machine_by_id(id)), problem(),
                                               operation().request(exhaustive, {}));
        EXPECT_EQ(some.plans.size() + std::size_t(some.rejected.count()),
                  all.plans.size() + std::size_t(all.rejected.count()));
        std::int64_t by_rule = 0;
        std::set<std::string_view> names;
        for (const LeftOutByRule& left : some.rejected.by_rule) {
            by_rule += left.count;
            EXPECT_GT(left.count, 0);
            EXPECT_TRUE(names.insert(left.rule->name).second) << left.rule->name;
            EXPECT_FALSE(left.rule->why.empty()) << left.rule->name;
            EXPECT_EQ(document(some).at("rejected").at("rules").at(std::string(left.rule->name)), left.count);
        }
        EXPECT_EQ(by_rule, some.rejected.reasons[std::size_t(Reason::rule)]);
        EXPECT_EQ(all.rejected.reasons[std::size_t(Reason::rule)], 0);
        EXPECT_TRUE(all.rejected.by_rule.empty());
    }
}

TEST_P(Conformance, PlansAreRankedAndSayWhatTheyLaunch) {
    int rank = 0;
    for (const Plan& plan : derived("h100-sxm").plans) {
        EXPECT_EQ(plan.operation, &operation());
        EXPECT_EQ(plan.rank, ++rank);
        EXPECT_EQ(plan.buildable, plan.why_not.empty());
        EXPECT_FALSE(plan.launches.empty());
        EXPECT_FALSE(plan.derivation.all().empty());
        EXPECT_FALSE(operation().label(plan).empty());
        for (const Plan& part : plan.parts) EXPECT_NE(part.operation, nullptr);
    }
}

// No unit of the machine can do its part in less, so no prediction may say so.
TEST_P(Conformance, NoPlanIsPredictedFasterThanItsDemandAllows) {
    for (const std::string& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        for (const Plan& plan : derived(id.c_str()).plans) {
            const Demand demand = operation().demand(machine, plan);
            std::set<std::string> tensors;
            for (const TensorInfo& tensor : operation().tensors(problem())) tensors.insert(tensor.name);
            for (const TensorTraffic& traffic : demand.tensors) {
                EXPECT_TRUE(tensors.contains(traffic.tensor)) << traffic.tensor;
                if (traffic.dram_bytes) { EXPECT_GE(*traffic.dram_bytes, traffic.footprint_bytes) << traffic.tensor; }
            }
            EXPECT_EQ(demand.launches, int(plan.launches.size()));
            const RoofTime roof = roof_time(demand, machine);
            if (!roof.seconds() || !plan.time_us) continue;
            EXPECT_GE(*plan.time_us, 0.999 * *roof.seconds() * 1e6)
                << id << " " << operation().label(plan) << ", " << name_of(*roof.bound());
        }
    }
}

// Its predictor says again what was planned, and the steps from the roof end there.
TEST_P(Conformance, APlanIsExplainedByItsTime) {
    for (const std::string& id : drawn_few(machine_ids(), 6)) {
        const Machine machine = machine_by_id(id);
        const PlanSet set = derived(id.c_str());
        if (set.plans.empty()) continue;
        const auto runs = operation().predictor(machine, set.plans)(machine);
        const auto explained = explain(machine, set, {Depth::all});
        ASSERT_EQ(runs.size(), set.plans.size());
        ASSERT_EQ(explained.size(), set.plans.size());
        for (std::size_t i = 0; i < runs.size(); ++i) {
            SCOPED_TRACE(id + " " + operation().label(set.plans[i]));
            const auto& steps = explained[i].attainability;
            EXPECT_EQ(std::isnan(runs[i].seconds), !set.plans[i].time_us);
            EXPECT_EQ(steps.empty(), !set.plans[i].time_us);
            if (steps.empty()) continue;
            EXPECT_NEAR(runs[i].seconds * 1e6, *set.plans[i].time_us, 1e-6 * *set.plans[i].time_us);
            EXPECT_EQ(steps.back().time_ns, std::llround(*set.plans[i].time_us * 1000));
            std::int64_t sum = 0;
            for (const RoofStep& step : steps) {
                EXPECT_EQ(step.time_ns, sum += step.cost_ns) << step.name;
                EXPECT_TRUE(&step == &steps.front() || step.name == "measured_roof" || step.cost_ns >= 0) << step.name;
            }
        }
    }
}

/// A row of a table without the columns of those titles; both as printed, in ASCII.
std::string without_columns(std::string row, const std::string& header, std::initializer_list<std::string_view> titles) {
    row.resize(std::max(row.size(), header.size()), ' ');
    for (const std::string_view title : titles) {
        const std::size_t at = header.find(title);
        if (at == header.npos) continue;
        // A number ends where its title does and begins behind two blanks; what is in front may reach further than its own title.
        const std::size_t end = at + title.size();
        std::size_t begin = end;
        while (begin > 1 && (row[begin - 1] != ' ' || row[begin - 2] != ' ')) --begin;
        row.replace(begin, end - begin, end - begin, ' ');
    }
    return row;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Of any plans: no line is wider than the terminal, no two rows are equal but for their times, and what explains them is one page.
TEST_P(Conformance, ThePageTellsPlansApartAndKeepsToItsLines) {
    constexpr int page_lines = 45;
    Random random(test_seed());
    const std::size_t problems = test_count(4, 60);
    const std::vector<std::string> ids = machine_ids();
    for (std::size_t i = 0; i < problems; ++i) {
        const auto machine = std::make_shared<const Machine>(machine_by_id(ids[random.pick(ids.size())]));
        const Problem problem = operation().draw(random, {});
        const PlanSet set = operation().derive(machine, problem, operation().request(Given(), {}));
        if (set.plans.empty()) continue;
        SCOPED_TRACE(machine->id + " " + operation().short_name(problem));
        const std::vector<Explanation> explanations = explain(*machine, set, {Depth::brief});
        for (const int width : {80, 100, 120}) {
            const Terminal terminal{.utf8 = false, .width = width};
            const std::string text = plan_text(set, {Depth::brief}, explanations, terminal);
            const std::vector<std::string> lines = lines_of(text);
            if (width >= 100) { EXPECT_LE(lines.size(), page_lines) << text; }
            for (const std::string& line : lines) EXPECT_LE(columns_of(line), width) << line;
            const auto header = std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("  #"); });
            ASSERT_NE(header, lines.end());
            std::set<std::string> rows;
            for (std::size_t row = 0; row < set.plans.size() && header[std::ptrdiff_t(row) + 1].find_first_not_of(' ') < 4; ++row) {
                if (header[std::ptrdiff_t(row) + 1].starts_with("  (")) break;
                const std::string kept = without_columns(header[std::ptrdiff_t(row) + 1], *header, {"#", "predicted", "TFLOP/s", "GB/s"});
                EXPECT_TRUE(rows.insert(kept).second) << kept << "\n" << text;
            }
        }
    }
}

// A plan wins from the number on that is said to let it win, and not before: plan 1 or another is faster there.
TEST_P(Conformance, APlanWinsBeyondItsThreshold) {
    const Machine machine = machine_by_id("h200-sxm");
    const PlanSet set = derived("h200-sxm");
    const Predictor predictor = operation().predictor(machine, set.plans);
    const WinsIf found = counterfactuals(machine, set.plans);
    ASSERT_EQ(found.size(), set.plans.size());
    EXPECT_FALSE(found.front());
    for (std::size_t plan = 1; plan < found.size(); ++plan)
        for (const Counterfactual& c : found[plan].value_or(std::vector<Counterfactual>())) {
            const auto wins_at = [&](double threshold, double margin) {
                Machine other = machine;
                other.facts.at(c.key).value *= threshold / c.value;
                const auto runs = predictor(other);
                return runs[plan].seconds < runs[0].seconds * (1 - margin)
                       && std::none_of(runs.begin(), runs.end(), [&](const PredictedRun& run) {
                              return run.seconds < runs[plan].seconds * (1 - win_margin * (1 + 1e-6));
                          });
            };
            const bool whole = c.key.starts_with("sm.") || c.unit == "partitions";
            const double beyond = c.threshold < c.value ? -1 : 1, step = whole ? 1 : 1e-4 * c.threshold;
            EXPECT_TRUE(wins_at(c.threshold, win_margin * (1 - 1e-6)))
                << c.key << " " << operation().label(set.plans[plan]);
            EXPECT_FALSE(wins_at(c.threshold - beyond * step, win_margin))
                << c.key << " " << operation().label(set.plans[plan]);
        }
}

// What L2 holds already need not be read; half of the SMs take twice the time, at half the clock too.
TEST_P(Conformance, TimeFollowsFromTheConditionsAndWorkDoesNot) {
    const Machine machine = machine_by_id("h200-sxm");
    const Demand demand = operation().demand(machine, derived("h200-sxm").plans.front());
    const auto of = [&](const Conditions& conditions, Bound bound) {
        for (const UnitTime& unit : roof_time(demand, machine, conditions).units)
            if (unit.bound == bound) return unit.seconds;
        return 0.0;
    };
    std::vector<std::string> all;
    for (const TensorTraffic& traffic : demand.tensors) all.push_back(traffic.tensor);
    EXPECT_GT(of({}, Bound::dram), 0);
    EXPECT_EQ(of({.held_in_l2 = all}, Bound::dram), 0);
    EXPECT_LT(of({.held_in_l2 = {all.front()}}, Bound::dram), of({}, Bound::dram));
    for (const Bound unit : {Bound::tensor, Bound::issue})
        EXPECT_DOUBLE_EQ(of({.sm_share = 0.5}, unit), 2 * of({}, unit));
    EXPECT_EQ(of({.sm_share = 0.5}, Bound::dram), of({}, Bound::dram));
}

TEST_P(Conformance, ADocumentHasTheFrameOfTheContract) {
    const Json d = document(derived("h100-sxm"));
    EXPECT_EQ(d.at("schema"), "rooftile/plan/1");
    EXPECT_EQ(d.at("problem").at("op"), operation().name());
    for (const Json& plan : d.at("plans")) {
        for (const char* key : {"rank", "buildable", "config", "resources", "prediction", "derivation", "unknown"})
            EXPECT_TRUE(plan.contains(key)) << key;
        EXPECT_TRUE(plan.at("config").contains("kernel"));
        EXPECT_TRUE(plan.at("prediction").contains("time_us"));
    }
    for (const char* key : {"rejected", "unknown", "unchecked_constraints", "notes"})
        EXPECT_TRUE(d.contains(key)) << key;
}

TEST_P(Conformance, AnUnknownNumberIsNamedAndNothingThrows) {
    Machine machine = machine_by_id("h100-sxm");
    for (const char* key : {"dram.bandwidth", "dram.sustained_read", "dram.sustained_copy", "sm.count"})
        set_number(machine, std::string(key) + "=unknown");
    const PlanSet plans = operation().derive(std::make_shared<const Machine>(machine), problem(),
                                             operation().request(Given(), {}));
    EXPECT_FALSE(plans.unknown.empty());
}

TEST(ToyOperation, HasWhatTheOthersLack) {
    const Operation& toy = toy_operation();
    const Problem problem = toy.problem(example_of(toy));
    EXPECT_EQ(toy.given(problem).list("group"), (std::vector<std::string>{"3", "5"}));
    const Extent rows = toy.tensors(problem)[1].extents[0];
    EXPECT_FALSE(rows.known());
    EXPECT_EQ(rows.read_from, "row_count");
    const PlanSet plans = toy.derive(std::make_shared<const Machine>(machine_by_id("h100-sxm")), problem,
                                     toy.request(Given(), {}));
    const Plan& plan = plans.plans.front();
    ASSERT_EQ(plan.launches.size(), 2u);
    EXPECT_EQ(plan.launches[0].before, WorkspaceState::zeroed);
    EXPECT_EQ(plan.launches[1].after, WorkspaceState::zeroed);
    EXPECT_EQ(plan.launches[0].workspace_bytes, 8);  // a counter of 4 bytes for each of two groups
    // Parts are another operation's where this build has it.
    EXPECT_EQ(plan.parts.size(), find_operation("fuse") ? 2u : 0u);
}

TEST(Composition, AnOperationThatIsNotThereIsAReason) {
    const PlanSet none = derive_part("nonesuch", std::make_shared<const Machine>(machine_by_id("h100-sxm")), Given());
    ASSERT_TRUE(none.refusal);
    EXPECT_THAT(none.refusal->message, testing::HasSubstr("nonesuch"));
}

}  // namespace
}  // namespace rooftile
