// Which problems a sweep goes over, with the toy operation.
#include "rooftile/core/sweep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "tests/core/toy_operation.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweepRequest asked(std::initializer_list<std::pair<const char*, const char*>> values,
                   std::optional<int> draw = {}) {
    SweepRequest request{.draw = draw};
    for (const auto& [key, text] : values) request.given.add(key, text);
    return request;
}

std::vector<std::string> columns_of(const Suite& suite) {
    std::vector<std::string> out;
    for (const SuiteProblem& p : suite.problems)
        out.push_back(toy_operation().given(p.problem).text("columns"));
    return out;
}

std::string refusal(const SweepRequest& request) {
    try {
        swept_suite(toy_operation(), request);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(Sweep, GoesOverAListInItsOrder) {
    const Suite suite =
        swept_suite(toy_operation(), asked({{"group", "3"}, {"group", "5"}, {"columns", "64,32,128"}}));
    EXPECT_THAT(columns_of(suite), ElementsAre("64", "32", "128"));
    EXPECT_EQ(suite.name, "lists");
    EXPECT_EQ(suite.law, "columns = 64,32,128");
    EXPECT_EQ(toy_operation().given(suite.problems[1].problem).list("group"),
              (std::vector<std::string>{"3", "5"}));
    EXPECT_EQ(suite.problems[1].layers, (std::vector<SuiteLayer>{{"lists", "2"}}));
}

TEST(Sweep, DrawsFromRangesAndLists) {
    const Suite suite = swept_suite(toy_operation(), asked({{"group", "3"}, {"columns", "1..1000"}}, 200));
    EXPECT_EQ(suite.name, "ranges-1");
    ASSERT_EQ(suite.problems.size(), 200u);
    int below = 0;  // half of the draws lie under 32, so that nearly all of those are drawn once
    for (const std::string& columns : columns_of(suite)) {
        EXPECT_GE(std::stoi(columns), 1);
        EXPECT_LE(std::stoi(columns), 1000);
        below += std::stoi(columns) < 32;
    }
    EXPECT_GE(below, 25);
    const Suite listed = swept_suite(toy_operation(), asked({{"group", "3"}, {"columns", "7,9"}}, 2));
    EXPECT_THAT(columns_of(listed), testing::UnorderedElementsAre("7", "9"));
}

// ROWS stands in a text that takes no list by itself; a word that only holds it is another.
TEST(Sweep, AWordStandsForAList) {
    SweepRequest request = asked({{"group", "ROWS"}, {"columns", "64,32"}});
    request.lets = {"ROWS=3,5"};
    const Suite suite = swept_suite(toy_operation(), request);
    EXPECT_THAT(columns_of(suite), ElementsAre("64", "64", "32", "32"));
    EXPECT_EQ(toy_operation().given(suite.problems[1].problem).text("group"), "5");
    EXPECT_EQ(suite.law, "columns = 64,32; ROWS = 3,5");
    request.lets = {"ROW=3"};
    EXPECT_THAT(refusal(request), HasSubstr("no text of the problem has ROW"));
    for (const char* wrong : {"ROWS", "=3", "RO WS=3"}) {
        request.lets = {wrong};
        EXPECT_THAT(refusal(request), HasSubstr("accepted is NAME=A,B,...")) << wrong;
    }
    request.lets = {"ROWS=3..5"};
    EXPECT_THAT(refusal(request), HasSubstr("--let ROWS 3..5: a range needs --draw N"));
    request.draw = 6;
    EXPECT_EQ(swept_suite(toy_operation(), request).problems.size(), 6u);
}

TEST(Sweep, FewerAreTheFirstOfMore) {
    auto few = columns_of(swept_suite(toy_operation(), asked({}, 10)));
    auto many = columns_of(swept_suite(toy_operation(), asked({}, 30)));
    many.resize(10);
    EXPECT_EQ(few, many);
    SweepRequest other = asked({}, 10);
    other.seed = 2;
    EXPECT_NE(columns_of(swept_suite(toy_operation(), other)), few);
}

// A group of 3 rows and its sum, fp32, and a count: 16 columns + 4 B.
TEST(Sweep, KeepsWithinItsLimits) {
    SweepRequest request = asked({{"group", "3"}, {"columns", "64,32,128"}});
    request.max_bytes = 16 * 64 + 4;
    EXPECT_THAT(columns_of(swept_suite(toy_operation(), request)), ElementsAre("64", "32"));
    request.max_bytes = 10;
    EXPECT_THAT(refusal(request), HasSubstr("no problem is within"));
    request.draw = 2;
    EXPECT_THAT(refusal(request), HasSubstr("only 0 problems"));
    request.max_flops = 1;
    EXPECT_THAT(refusal(request), HasSubstr("--max-flop: toy does not count"));
}

TEST(Sweep, RefusesInOneLine) {
    EXPECT_THAT(refusal(asked({})), HasSubstr("needs --draw N"));
    EXPECT_THAT(refusal(asked({{"group", "3"}, {"columns", "1..9"}})),
                HasSubstr("--columns 1..9: a range needs --draw"));
    EXPECT_THAT(refusal(asked({{"group", "3"}, {"columns", "9..1"}}, 1)), HasSubstr("out of range"));
    EXPECT_THAT(refusal(asked({{"group", "3"}, {"columns", "1,,2"}})),
                HasSubstr("accepted is a value, a list"));
    EXPECT_THAT(refusal(asked({{"group", "3"}, {"columns", "1..3"}}, 4)),
                HasSubstr("only 3 problems that differ"));
    EXPECT_THAT(refusal(asked({{"group", "3"}, {"columns", "x"}})), HasSubstr("not a whole number"));
    EXPECT_THAT(refusal(asked({{"columns", "3"}})), HasSubstr("missing --group"));
    SweepRequest off = asked({}, 1);
    off.law.law = "any";
    EXPECT_THAT(refusal(off), HasSubstr("plain problems alone"));
    off.given.add("columns", "3");
    EXPECT_THAT(refusal(off), HasSubstr("the law any draws whole problems"));
}

}  // namespace
}  // namespace rooftile
