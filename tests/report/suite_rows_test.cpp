// Lines of a run that nobody should believe.
#include "rooftile/report/suite_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string context_line = R"({"schema":"rooftile/measurement/1","context":{},"machine":{},"suite":"made"})" "\n";
/// A row of rank 1 of one plan; `more` stands behind a comma.
std::string row(const std::string& time, const std::string& verified, const std::string& more = "") {
    return R"({"problem":{"op":"none","m":1},"layers":[],"rank":1,"plans":1,"mode":"cold","time_us":)" + time
           + R"(,"verified":)" + verified + (more.empty() ? "" : "," + more) + "}\n";
}
const std::string right = R"({"random":true,"timed":true,"failure":null})";

SuiteRecord read(const std::string& rows) { return read_suite_record(context_line + rows, "x.jsonl"); }

/// What is said of a file that is refused; one line.
std::string refusal(const std::string& rows) {
    try {
        read(rows);
    } catch (const RequestError& error) {
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        return error.what();
    }
    return "accepted";
}

TEST(SuiteRows, ARowIsReadAndAKilledOneIsNot) {
    const SuiteRecord record = read(row("2.5", right) + "{\"problem\":{\"op\":");
    ASSERT_EQ(record.shapes.size(), 1u);
    EXPECT_EQ(record.shapes[0].first().time_us, 2.5);
    EXPECT_FALSE(record.shapes[0].first().wrong);
}

TEST(SuiteRows, ATimeNeedsAVerifiedResult) {
    for (const char* verified : {"null", "-5", "{}", R"({"exact":null,"random":null,"failure":null})",
                                 R"({"exact":true,"random":false,"failure":null})",
                                 R"({"failure":"not compared: memory"})"})
        EXPECT_THAT(refusal(row("2.5", verified)), HasSubstr("x.jsonl:2: no line of a suite's run: it has a time, and no"))
            << verified;
    // Without a time it stands, as wrong where it was compared or could not be.
    EXPECT_FALSE(read(row("null", "{}")).shapes[0].first().wrong);
    EXPECT_TRUE(read(row("null", R"({"random":false,"failure":null})")).shapes[0].first().wrong);
    EXPECT_TRUE(read(row("null", R"({"failure":"not compared: memory"})")).shapes[0].first().wrong);
}

TEST(SuiteRows, TimesAreThoseOfALaunch) {
    for (const char* time : {"0", "-3", "1e300", "1e15"}) EXPECT_THAT(refusal(row(time, right)), HasSubstr("must be above 0"));
    EXPECT_THAT(refusal(row("NaN", right)), HasSubstr("parse error"));
}

TEST(SuiteRows, NoKeyStandsTwice) {
    EXPECT_THAT(refusal(row("1", right, R"("time_us":2)")), HasSubstr("x.jsonl:2: no line of a suite's run: the key time_us"));
    EXPECT_THAT(refusal(row("1", right, R"("more":{"a":1,"b":{"a":1},"a":2})")), HasSubstr("the key a is there twice"));
    EXPECT_EQ(refusal(row("1", right, R"("more":[{"a":1},{"a":{"a":1}}])")), "accepted");  // in objects of their own
}

TEST(SuiteRows, NoRowStandsTwice) {
    EXPECT_THAT(refusal(row("1", right) + row("2", right)), HasSubstr("x.jsonl:3: no line of a suite's run: 2 rows of one"));
}

TEST(SuiteRows, CountsAreWholeNumbers) {
    for (const char* plans : {"-1", "0.5", "1e300"}) {
        std::string text = row("1", right);
        text.replace(text.find("\"plans\":1"), 9, std::string("\"plans\":") + plans);
        EXPECT_THAT(refusal(text), HasSubstr("plans is ")) << plans;
    }
}

}  // namespace
}  // namespace rooftile
