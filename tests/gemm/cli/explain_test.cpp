// plan --explain and --energy, measure --explain, --energy and --ablate from outside.
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

const std::vector<std::string> plan = {"plan", "gemm", "--shape", "4096x14336x4096", "--machine", "h200-sxm"};

TEST(ExplainProgram, StepsAddUpToThePredictionInTheDocument) {
    const Outcome outcome = run(with(plan, {"--explain", "--energy", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto document = nlohmann::json::parse(outcome.out);
    for (const auto& one : document.at("plans")) {
        std::int64_t sum = 0;
        for (const auto& step : one.at("attainability")) sum += step.at("cost_ns").get<std::int64_t>();
        EXPECT_EQ(sum, std::llround(one.at("prediction").at("time_us").get<double>() * 1000));
        EXPECT_GT(one.at("energy").at("total_j").get<double>(), 0);
        EXPECT_EQ(one.contains("counterfactuals"), one.at("rank") != 1);
    }
}

TEST(ExplainProgram, WithoutTheFlagsTheDocumentIsAsEver) {
    const Outcome outcome = run(with(plan, {"--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* key : {"attainability", "energy", "counterfactuals"})
        EXPECT_FALSE(nlohmann::json::parse(outcome.out).at("plans")[0].contains(key)) << key;
}

TEST(ExplainProgram, TheTextEndsWithThePrediction) {
    const Outcome outcome = run(with(plan, {"--explain"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* words : {"datasheet roof", "prediction", "Why not the others", "wins if"})
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words;
}

TEST(ExplainProgram, UnknownEnergiesAreNamed) {
    const Outcome outcome = run({"plan", "gemm", "--shape", "512x512x512", "--machine", "h20", "--energy"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("total unknown: energy."), std::string::npos) << outcome.out;
}

TEST(ExplainProgram, ASuiteTakesNoneOfThem) {
    for (const char* flag : {"--explain", "--energy", "--ablate"})
        expect_refused({"measure", "gemm", "--suite", "some.toml", flag}, {flag, "--suite"});
}

}  // namespace
}  // namespace rooftile
