// `sweep` from outside, of every operation: what it refuses, saves and plans.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/core/operation.hpp"
#include "tests/cli/program.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SweepOf : public testing::TestWithParam<const Operation*> {
  protected:
    std::vector<std::string> sweep(const std::vector<std::string>& more) const {
        std::vector<std::string> words = {"sweep", std::string(GetParam()->name())};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
};

INSTANTIATE_TEST_SUITE_P(Operations, SweepOf, testing::ValuesIn(operations().begin(), operations().end()),
                         name_of_operation);

TEST_P(SweepOf, RefusesWhatItCannotDo) {
    expect_refused(sweep({"--draw", "3"}), {"--out FILE", "--plan-only", "--save"});
    expect_refused(sweep({"--plan-only"}), {"needs --draw N"});
    expect_refused(sweep({"--draw", "0", "--plan-only"}), {"--draw 0", "1 .. 10000"});
    expect_refused(sweep({"--draw", "3", "--seed", "x", "--plan-only"}), {"--seed x"});
    expect_refused(sweep({"--draw", "3", "--plan-only", "--max-bytes", "many"}), {"--max-bytes many"});
    expect_refused(sweep({"--draw", "3", "--plan-only", "--mode", "cold"}), {"--mode", "--plan-only"});
    expect_refused(sweep({"--draw", "3", "--plan-only", "--json"}), {"JSON lines"});
    expect_refused(sweep({"--draw", "3", "--save", "/nowhere/s.toml"}),
                   {"--save /nowhere/s.toml", "cannot write"});
}

TEST_P(SweepOf, TheSameSeedSavesTheSameBytes) {
    const auto file = std::filesystem::temp_directory_path() / ("rooftile-sweep-" + std::to_string(getpid()));
    const auto saved = [&](const char* seed) {
        const Outcome outcome = run(sweep({"--draw", "20", "--seed", seed, "--save", file.string()}));
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_EQ(outcome.out + outcome.err, "");
        std::stringstream text;
        text << std::ifstream(file).rdbuf();
        std::filesystem::remove(file);
        return text.str();
    };
    const std::string first = saved("7");
    EXPECT_EQ(saved("7"), first);
    EXPECT_NE(saved("8"), first);
    EXPECT_EQ(GetParam()->suite(first, "s.toml").problems.size(), 20u);
    EXPECT_EQ(first.find("rooftile-sweep"), first.npos);  // neither path nor command
}

TEST_P(SweepOf, PlansWithoutAGpu) {
    const Outcome outcome =
        run(sweep({"--draw", "4", "--seed", "7", "--plan-only", "--machine", "h200-sxm"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 0) << outcome.err;  // progress is for terminals
    std::istringstream text(outcome.out);
    std::vector<json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(lines[0].at("suite"), "draw-7");
    EXPECT_FALSE(lines[0].at("law").get<std::string>().empty());
    for (std::size_t i = 1; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i].at("problem").at("op"), GetParam()->name());
        EXPECT_EQ(lines[i].at("rank"), 1);
        EXPECT_GT(lines[i].at("prediction").at("time_us"), 0);
        EXPECT_FALSE(lines[i].contains("derivation"));  // nobody asked for it
    }
}

TEST_P(SweepOf, PlansAsCsvHaveOneHeaderForAll) {
    const Outcome outcome = run(sweep({"--draw", "4", "--seed", "7", "--plan-only", "--machine", "h200-sxm", "--csv"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream text(outcome.out);
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    ASSERT_EQ(lines.size(), 5u) << outcome.out;
    EXPECT_TRUE(lines[0].starts_with("machine,")) << lines[0];
    for (const char* column : {",op,", ",time_us,", ",rank,"}) EXPECT_NE(lines[0].find(column), std::string::npos) << column;
    for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_TRUE(lines[i].starts_with("h200-sxm,")) << lines[i];
}

}  // namespace
}  // namespace rooftile
