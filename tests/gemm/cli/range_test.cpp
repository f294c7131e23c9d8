// `plan` with a range in the place of a number, from outside.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

std::vector<std::string> range_plan(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "gemm", "--n", "1024", "--k", "1024"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(RangeProgram, TheDocumentIsAsTheSchemaSays) {
    const Outcome outcome = run(range_plan({"--m", "1..300", "--within", "5", "--json"}));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("range-1.json").faults(document), "");
    EXPECT_EQ(document.at("within"), 0.05);
    EXPECT_LE(document.at("ratio"), 1.05);
    EXPECT_NE(document.at("notes").dump().find("h100-sxm"), std::string::npos) << "no machine was named";
}

TEST(RangeProgram, WhatAPartFixesIsARequest) {
    const auto document =
        nlohmann::json::parse(run(range_plan({"--machine", "h100-sxm", "--m", "100..400", "--json"})).out);
    for (const auto& part : document.at("plans")) {
        std::vector<std::string> words = {
            "--machine", "h100-sxm", "--json", "--top", "1", "--m", std::to_string(int(part.at("from")))};
        for (const auto& [key, text] : part.at("fields").items()) {
            std::string flag = "--" + key;
            std::ranges::replace(flag, '_', '-');
            words.insert(words.end(), {flag, text});
        }
        const auto alone = nlohmann::json::parse(run(range_plan(words)).out);
        EXPECT_EQ(alone.at("plans").at(0).at("config"), part.at("config"));
    }
}

TEST(RangeProgram, TextSaysTheBoundAndWhatWasLookedAt) {
    const Outcome outcome = run(range_plan({"--machine", "h100-sxm", "--m", "7..7"}));
    EXPECT_NE(outcome.out.find("m from 7 to 7: 1 kernel in 1 part\n"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("asked for is 1.030; 1 value"), std::string::npos) << outcome.out;
}

TEST(RangeProgram, WhatIsNoRangeIsRefused) {
    for (const char* text : {"5..1", "0..4", "1..x"})
        expect_refused(range_plan({"--m", text}), {"--m " + std::string(text), "A..B"});
    for (const char* text : {"0", "-1", "nan", "3%", "1e9"})
        expect_refused(range_plan({"--m", "1..8", "--within", text}), {"--within", "above 0"});
    expect_refused(range_plan({"--m", "8", "--within", "3"}), {"--within", "A..B"});
    expect_refused(range_plan({"--m", "1..8", "--lda", "1..8"}), {"--m", "--lda", "one field"});
    for (const auto& beside : std::vector<std::vector<std::string>>{{"--top", "3"},
                                                                    {"--explain"},
                                                                    {"--energy"},
                                                                    {"--sample", "3"},
                                                                    {"--orders", "all"},
                                                                    {"--seed", "3"}}) {
        std::vector<std::string> words = {"--m", "1..8"};
        words.insert(words.end(), beside.begin(), beside.end());
        expect_refused(range_plan(words), {beside[0], "give one value"});
    }
    expect_refused({"plan", "gemm", "--m", "64", "--n", "1..64", "--k", "64"}, {"--n 1..64", "ldc"});
    for (const char* verb : {"build", "measure", "simulate"})
        expect_refused({verb, "gemm", "--shape", "8x8x8", "--stages", "1..8"}, {"--stages"});
}

}  // namespace
}  // namespace rooftile
