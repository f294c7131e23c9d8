#include "rooftile/report/comparison.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

/// A recorded draw whose times were `factor` of what they are.
SuiteRecord run_with(const std::function<double(std::size_t)>& factor) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/bench/results/current/h100-sxm-gemm-draw-9995615.jsonl");
    std::string text;
    std::size_t row = 0;
    for (std::string line; std::getline(file, line); ++row) {
        Json json = Json::parse(line);
        for (const char* key : {"time_us", "time_us_low", "time_us_high"})
            if (json.contains(key) && json[key].is_number())
                json[key] = json[key].get<double>() * factor(row);
        text += json_text(json, -1);
    }
    return read_suite_record(text, "run.jsonl");
}

// Times of a problem differ by a known factor; the interval is that of the run, a per cent or so.
TEST(Comparison, FindsWhatChangedAndInWhichDirection) {
    Random random(51);
    std::vector<double> factors(1000);
    for (double& f : factors) f = random.one_in(3) ? 1 : random.uniform(0.5, 2);
    const SuiteRecord before = run_with([](std::size_t) { return 1.0; }),
                      after = run_with([&](std::size_t i) { return factors[i]; });
    constexpr double within = 0.02;
    const Comparison there = compared(before, after, within), back = compared(after, before, within);
    ASSERT_GE(there.problems.size(), 50u);
    EXPECT_EQ(there.in_one_only, 0);
    for (const ComparedProblem& p : there.problems) {
        EXPECT_LE(p.low, p.ratio);
        EXPECT_GE(p.high, p.ratio);
        EXPECT_NEAR(p.ratio, p.first_us / p.second_us, 1e-9);
        if (p.change == Change::faster) { EXPECT_GT(p.low, 1 + within); }
        if (p.change == Change::slower) { EXPECT_LT(p.high, 1 - within / 2); }
        if (p.ratio > 1.2) { EXPECT_EQ(p.change, Change::faster) << p.name; }
        if (p.ratio < 0.8) { EXPECT_EQ(p.change, Change::slower) << p.name; }
        EXPECT_TRUE(p.same_plan);
    }
    EXPECT_EQ(there.count(Change::faster), back.count(Change::slower));
    EXPECT_EQ(there.count(Change::slower), back.count(Change::faster));
    EXPECT_EQ(there.count(Change::same), back.count(Change::same));
    EXPECT_GT(there.count(Change::faster), 0);
    EXPECT_GT(there.count(Change::slower), 0);
    EXPECT_GT(there.count(Change::same), 0);
    EXPECT_EQ(there.problems.front().change, Change::slower);  // what needs a look is first
}

TEST(Comparison, OfARunWithItselfNothingIsFasterOrSlower) {
    const SuiteRecord run = run_with([](std::size_t) { return 1.0; });
    const Comparison c = compared(run, run, 0.02);
    EXPECT_EQ(c.count(Change::faster) + c.count(Change::slower), 0);
    const std::string text = comparison_text(c, Terminal{.width = 80});
    EXPECT_NE(text.find("0 faster, 0 slower"), std::string::npos) << text;
}

TEST(Comparison, OfOtherProblemsIsRefused) {
    const SuiteRecord run = run_with([](std::size_t) { return 1.0; });
    SuiteRecord none = run;
    none.shapes.clear();
    EXPECT_THROW(compared(run, none, 0.02), RequestError);
}

}  // namespace
}  // namespace rooftile
