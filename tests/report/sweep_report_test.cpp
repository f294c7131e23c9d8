// A made-up run of drawn problems in, figures and pictures out; of the first operation, whichever that is.
#include "rooftile/report/sweep_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

const Operation& first_operation() { return *operations().front(); }

struct Made {
    std::optional<double> ratio;
    double time_us = 100, predicted_us = 110;
    double other_us = 0;  ///< launched in another way; 0: it was not
};

std::string record_of(const std::vector<Made>& all, const Suite& suite) {
    const Json context = {
        {"version", "0.1.0"}, {"gpu", "a GPU"}, {"driver", "1"}, {"date", "2026-11-24T00:00:00Z"}};
    const Json machine = {{"id", "m"}, {"name", "M"}};
    Json first = {{"schema", "rooftile/measurement/1"}, {"context", context}, {"machine", machine}};
    first["suite"] = suite.name;
    first["law"] = suite.law;
    std::string text = json_text(first, -1);
    for (std::size_t i = 0; i < all.size(); ++i) {
        Json row = {{"problem", problem_json(suite.problems[i].problem)},
                    {"layers", Json::array()},
                    {"rank", 1},
                    {"plans", 1},
                    {"mode", "sustained"},
                    {"time_us", all[i].time_us},
                    {"predicted_time_us", all[i].predicted_us},
                    {"label", "a plan"},
                    {"verified", {{"random", true}}}};
        row["baselines"] = Json::object();
        row["baselines"][std::string(first_operation().baseline()) + "_ratio"] = json_number(all[i].ratio);
        if (all[i].other_us > 0)
            row["variants"] = {{"so",
                                {{"name", "launched so"},
                                 {"time_us", all[i].other_us},
                                 {"predicted_time_us", all[i].other_us + 1},
                                 {"ratio", json_number(*all[i].ratio * all[i].time_us / all[i].other_us)}}}};
        text += json_text(row, -1);
    }
    return text;
}

Suite drawn(std::size_t count) { return swept_suite(first_operation(), {.draw = int(count), .seed = 7}); }

SweepReport report_of(const std::vector<Made>& all) {
    return sweep_report({read_suite_record(record_of(all, drawn(all.size())), "x.jsonl")});
}

// (1.1 x 0.9 x 0.8 x 0.6)^(1/4) = 0.4752^(1/4) = 0.83027.
TEST(SweepReport, FiguresOfAll) {
    const SweepReport r = report_of({{1.1}, {0.9}, {0.8}, {0.6, 200, 180}});
    const SweepFigures& all = r.all.front();
    EXPECT_EQ(all.name, "all");
    EXPECT_EQ(all.problems, 4);
    EXPECT_NEAR(*all.ratio, 0.83027, 1e-5);
    EXPECT_NEAR(*all.least, 0.6, 1e-12);
    EXPECT_EQ(all.below[0], 0.75);
    EXPECT_EQ(all.below[1], 0.5);
    EXPECT_EQ(all.below[2], 0.25);
    EXPECT_NEAR(*all.error_mean, 0.1, 1e-12);
    EXPECT_LE(*all.low, *all.ratio);
    EXPECT_GE(*all.high, *all.ratio);
    EXPECT_GE(*all.low, 0.6);
    EXPECT_LE(*all.high, 1.1);
}

// 400 ratios of e^+-0.1: the mean logarithm has a standard deviation of 0.1 / 20, so the interval is +-1.96 x 0.005.
TEST(SweepReport, TheIntervalIsThatOfTheMean) {
    std::vector<Made> all;
    for (int i = 0; i < 400; ++i) all.push_back({std::exp(i % 2 ? 0.1 : -0.1)});
    const SweepReport r = report_of(all);
    EXPECT_NEAR(std::log(*r.all.front().low), -0.0098, 0.0010);
    EXPECT_NEAR(std::log(*r.all.front().high), 0.0098, 0.0010);
    EXPECT_EQ(sweep_text(r, {}), sweep_text(report_of(all), {}));
}

TEST(SweepReport, EveryProblemIsInOneBandAndInItsFeatures) {
    const SweepReport r = report_of(std::vector<Made>(100, Made{1.0}));
    ASSERT_GT(r.bands, 1u);
    int in_bands = 0;
    for (std::size_t i = 1; i <= r.bands; ++i) in_bands += r.all[i].problems;
    EXPECT_EQ(in_bands, 100);
    ASSERT_GT(r.all.size(), r.bands + 1);
    for (std::size_t i = r.bands + 1; i < r.all.size(); ++i) {
        int having = 0;
        for (const SweepPoint& p : r.points)
            for (const auto& [name, has] : p.traits.features) having += has && name == r.all[i].name;
        EXPECT_EQ(r.all[i].problems, having) << r.all[i].name;
    }
}

// 4 us beside 4.8 us; 4.9 us beside 6 us is judged, 5.5 us beside 4.4 us is not.
TEST(SweepReport, ShortProblemsStandApart) {
    const SweepReport r = report_of({{1.2, 4, 5}, {6 / 4.9, 4.9, 4.9}, {0.8, 5.5, 5}});
    EXPECT_EQ(r.all.front().problems, 1);
    EXPECT_THAT(sweep_text(r, {}),
                HasSubstr("Under 5 us: 2 problems. Ours less theirs: mean +0.15 us, most +1.10 us. "
                          "Predicted off by +0.25 us\nmean, 0.75 us absolute, 1.00 us at worst."));
}

// The baseline takes 4 us beside 3 and 3.5 us, so 1 and 0.5 us more; predicted 0.5 and 1 us off.
TEST(SweepReport, BothWaysOfLaunchingStandBesideEachOther) {
    const SweepReport r = report_of({{4 / 3.0, 3, 3.5, 3.5}, {1.5, 100, 110, 120}, {1.5, 100, 110}});
    ASSERT_EQ(r.launches.size(), 2u);
    EXPECT_TRUE(r.launches[0].in_us);
    EXPECT_NEAR(*r.launches[0].planned, -1, 1e-12);
    EXPECT_NEAR(*r.launches[0].other, -0.5, 1e-12);
    EXPECT_NEAR(r.launches[0].planned_error.value().mean, 0.5, 1e-12);
    EXPECT_NEAR(r.launches[0].other_error.value().mean, 1, 1e-12);
    EXPECT_EQ(r.launches[1].problems, 1);
    EXPECT_NEAR(*r.launches[1].planned, 1.5, 1e-12);
    EXPECT_NEAR(*r.launches[1].other, 1.25, 1e-12);
    EXPECT_EQ(launch_text(r.launches[0]),
              "under 5 us, 1 problem launched in two ways in the same rounds: ours less theirs -1.00 us as planned, -0.50 us "
              "launched so; predicted off by +0.50 us mean, 0.50 us absolute as planned and +1.00 us mean, 1.00 us absolute launched so.");
    EXPECT_EQ(sweep_document(r).at("launches")[1].at("so").at("ratio"), 1.25);
    EXPECT_THAT(sweep_text(r, {}), HasSubstr("launched so"));
    EXPECT_TRUE(report_of({{1.5}}).launches.empty());
}

TEST(SweepReport, TheTenWorstComeFirst) {
    std::vector<Made> all;
    for (int i = 0; i < 12; ++i) all.push_back({1.0 - 0.01 * i});
    const SweepReport r = report_of(all);
    ASSERT_EQ(r.worst.size(), 10u);
    EXPECT_EQ(r.worst.front(), 11u);
    EXPECT_EQ(r.worst.back(), 2u);
}

TEST(SweepReport, WithoutABaselineThePredictionStands) {
    const SweepReport r = report_of({{std::nullopt}, {std::nullopt}});
    EXPECT_FALSE(r.all.front().ratio);
    EXPECT_NEAR(*r.all.front().error_mean, 0.1, 1e-12);
    EXPECT_TRUE(r.worst.empty());
}

TEST(SweepReport, SaysLawSeedAndWhatHasNoResult) {
    const Suite suite = drawn(2);
    std::string text = record_of({{1.0}, {1.0}}, suite);
    text.replace(text.rfind("\"time_us\":100.0"), 15, "\"time_us\":null,\"invalid\":\"it is wrong\"");
    const SweepReport r = sweep_report({read_suite_record(text, "x.jsonl")});
    const std::string shown = sweep_text(r, {});
    EXPECT_THAT(shown, HasSubstr("draw-7"));
    EXPECT_THAT(shown, HasSubstr("No result: " + first_operation().short_name(suite.problems[1].problem)
                                 + ": it is wrong"));
    EXPECT_THAT(sweep_markdown(r),
                testing::AllOf(HasSubstr("| problems with |"), HasSubstr("(" + suite.law + ")")));
}

TEST(SweepReport, PoolsRunsThatAreAlike) {
    Suite other = drawn(3);
    other.name = "draw-8";
    const SuiteRecord first = read_suite_record(record_of({{1.1}, {0.9}}, drawn(2)), "x.jsonl");
    SuiteRecord second = read_suite_record(record_of({{1.1}, {0.9}, {1.0}}, other), "y.jsonl");
    const SweepReport r = sweep_report({first, second});
    EXPECT_EQ(r.points.size(), 5u);
    EXPECT_THAT(sweep_text(r, {}), HasSubstr("suite draw-7, draw-8, sustained"));
    second.gpu = "another";
    EXPECT_THROW(sweep_report({first, second}), RequestError);
}

TEST(SweepReport, RefusesAProblemThatIsNone) {
    EXPECT_THROW(sweep_report({read_suite_record(
                     "{\"schema\":\"rooftile/measurement/1\",\"context\":{},\"machine\":{}}\n"
                     "{\"problem\":{\"op\":\""
                         + std::string(first_operation().name())
                         + "\"},\"layers\":[],\"rank\":1,\"plans\":1,\"mode\":\"cold\"}\n",
                     "x.jsonl")}),
                 RequestError);
    std::string text = record_of({{1.0}}, drawn(1));
    text.replace(text.find("\"time_us\":100.0"), 15, "\"time_us\":0");
    EXPECT_THROW(sweep_report({read_suite_record(text, "x.jsonl")}), RequestError);
}

// Whatever a row says of its problem is what the problem is, or the row is refused: a size that is none must not become the default.
TEST(SweepReport, RefusesAProblemThatIsNotReadAsItStands) {
    const Suite suite = drawn(1);
    const std::string text = record_of({{1.0}}, suite);
    const std::size_t second = text.find('\n') + 1;
    const Json recorded = problem_json(suite.problems[0].problem);
    for (const auto& [key, value] : recorded.items()) {
        for (const Json& other : {Json(-5), Json(1e300), Json::array(), Json("x")}) {
            Json row = Json::parse(text.substr(second));
            row["problem"][key] = other;
            EXPECT_THROW(sweep_report({read_suite_record(text.substr(0, second) + json_text(row, -1), "x.jsonl")}), RequestError)
                << key << " " << other;
        }
    }
}

std::vector<std::string> ids_of(const std::vector<Picture>& pictures) {
    std::vector<std::string> out;
    for (const Picture& picture : pictures) out.push_back(picture.id);
    return out;
}

TEST(SweepPictures, HeatMapsOverBothAxes) {
    const std::vector<Picture> pictures = pictures_of(sweep_document(report_of({{1.1}, {0.9}, {0.8}, {0.6}})));
    EXPECT_THAT(ids_of(pictures), testing::ElementsAre("ratio_map", "error_map", "accuracy"));
    EXPECT_THAT(pictures[0].title, HasSubstr("time of " + std::string(first_operation().baseline()) + " over ours"));
}

// The points of one problem have one place: a curve.
TEST(SweepPictures, ACurveWhereOneAxisVaries) {
    SweepReport r = report_of({{1.1}, {0.9}, {0.8}});
    for (SweepPoint& p : r.points) p.traits.y.value = 64;
    const std::vector<Picture> pictures = pictures_of(sweep_document(r));
    EXPECT_THAT(ids_of(pictures), testing::ElementsAre("time_curve", "ratio_curve", "accuracy"));
    const auto lines = std::count_if(pictures[0].marks.begin(), pictures[0].marks.end(), [](const PictureMark& m) { return m.shape == MarkShape::line; });
    EXPECT_EQ(lines, 3);  // measured, baseline, predicted
    for (SweepPoint& p : r.points) p.traits.y.value = 64 * p.traits.x.value;  // both grow with one size
    EXPECT_EQ(ids_of(pictures_of(sweep_document(r))).front(), "time_curve");
}

}  // namespace
}  // namespace rooftile
