#include "rooftile/core/interval.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include <fmt/core.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/sweep_report.hpp"

namespace rooftile {
namespace {

constexpr std::string_view laws[] = {"draw",  "any",   "fp8",     "fp8_blocks", "epilogue",
                                     "batch", "group", "experts", "columns"};

// The interval that is looked up is that of the law which draws the problem.
TEST(Interval, KindsAreThoseOfTheLaws) {
    Random random(51);
    std::map<std::string, int> named;
    for (const Operation* operation : operations())
        for (const std::string_view law : laws) {
            const DrawRequest request{.law = std::string(law)};
            try {
                if (operation->law(request).name != law) continue;
            } catch (const RequestError&) { continue; }
            for (int i = 0; i < 40; ++i) {
                const std::string_view found = operation->traits(operation->draw(random, request)).law;
                const std::string kind = std::string(operation->name()) + " " + std::string(law);
                // A whole reduction or a layout that nobody measured has no kind; a drawn layout may happen to be dense.
                if (found == law) ++named[kind];
                else { EXPECT_TRUE(found.empty() || law == "any") << kind << " is read as " << found; }
            }
        }
    EXPECT_GE(named.size(), 10u);
    for (const auto& [kind, count] : named) EXPECT_GE(count, kind == "fuse draw" ? 20 : 35) << kind;
}

SuiteRecord record_of(const std::string& name) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/bench/results/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return read_suite_record(text.str(), name);
}

// What the calibration states as coverage, on draws that its fit did not see. Of 90 % each within 400 problems 85 to 95 % would be
// three standard deviations; a short fit adds its own.
TEST(Interval, HoldsNineOfTenTimesThatTheFitDidNotSee) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    int within = 0, all = 0;
    for (const char* law : {"gemm-draw", "gemm-batch", "gemm-epilogue", "gemm-fp8", "gemm-fp8_blocks",
                            "gemm-group", "fuse-draw"}) {
        const SweepReport report =
            sweep_report({record_of(std::string("current/h100-sxm-") + law + "-9995615.jsonl")}, machine);
        int of_law = 0;
        for (const SweepPoint& point : report.points) {
            if (!point.interval) continue;
            ++of_law, ++all;
            within += *point.time_us >= point.interval->low_us && *point.time_us <= point.interval->high_us;
        }
        EXPECT_GE(of_law, 35) << law;
    }
    EXPECT_GE(within, 0.85 * all) << within << " of " << all;
    EXPECT_LE(within, 0.97 * all) << within << " of " << all;
}

TEST(Interval, IsOfEveryPlanThatHasATimeWhereRunsAreRecorded) {
    Machine machine = machine_by_id("h100-sxm");
    const Operation* operation = operations().front();
    Random random(7);
    for (int i = 0; i < 5; ++i) {
        const Problem problem = operation->draw(random, {});
        const Own request = operation->request(operation->given(problem), {.top = 4});
        const PlanSet plans = operation->derive(std::make_shared<const Machine>(machine), problem, request);
        for (const Plan& plan : plans.plans) {
            ASSERT_TRUE(plan.interval);
            EXPECT_LE(plan.interval->low_us, *plan.time_us);
            EXPECT_GE(plan.interval->high_us, *plan.time_us);
            EXPECT_EQ(plan.interval->machine, "h100-sxm");
        }
        Machine unrecorded = machine;
        std::erase_if(unrecorded.facts, [](const auto& fact) { return fact.first.starts_with("interval."); });
        for (const Plan& plan :
             operation->derive(std::make_shared<const Machine>(unrecorded), problem, request).plans)
            EXPECT_FALSE(plan.interval);
    }
}

// Of a machine that nobody measured there is none, and the page says which number makes it another; the interval's own numbers do not.
TEST(Interval, IsNotOfAChangedMachine) {
    const Operation* operation = operations().front();
    Random random(7);
    const Problem problem = operation->draw(random, {});
    const Own request = operation->request(operation->given(problem), {.top = 2});
    const auto planned = [&](const std::vector<std::string>& set) {
        Machine machine = machine_by_id("h100-sxm");
        set_numbers(machine, set);
        return operation->derive(std::make_shared<const Machine>(machine), problem, request);
    };
    const std::string same = "l2.size=" + machine_by_id("h100-sxm").find("l2.size")->text;
    const std::string law(operation->traits(problem).law);
    for (const std::string& set : {same, fmt::format("interval.{}-{}-long.high=1.5", operation->name(), law)}) {
        const PlanSet plans = planned({set});
        EXPECT_TRUE(plans.plans.at(0).interval) << set;
        EXPECT_EQ(plans.why_no_interval, "") << set;
    }
    const std::vector<std::pair<std::vector<std::string>, std::string>> changes = {
        {{"l2.size=100 MiB"}, "l2.size is changed"},
        {{"dram.bandwidth=2 TB/s", "l2.size=100 MiB"}, "dram.bandwidth, l2.size are changed"},
        {{"l2.latency=unknown"}, "l2.latency is changed"},
        {{"features.wgmma=false"}, "features.wgmma is changed"}};
    for (const auto& [set, words] : changes) {
        const PlanSet plans = planned(set);
        for (const Plan& plan : plans.plans) EXPECT_FALSE(plan.interval) << set[0];
        const std::string page = plan_text(plans, {}, {}, Terminal{.width = 200});
        EXPECT_NE(page.find("no interval: runs are recorded for h100-sxm as it is, and " + words), page.npos) << page;
        EXPECT_EQ(page.find("90 % of drawn"), page.npos) << page;
    }
}

}  // namespace
}  // namespace rooftile
