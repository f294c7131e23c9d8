// Pictures and pages from outside: every operation draws, files appear whole, wrong requests say what there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "rooftile/core/operation.hpp"
#include "tests/cli/program.hpp"
#include "tests/from_environment.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string file_text(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
}

/// The words of an operation's example, with a machine.
std::vector<std::string> example_of(const std::string& verb, const Operation& operation, std::vector<std::string> more) {
    std::vector<std::string> words = {verb, std::string(operation.name())};
    std::string word;
    bool quoted = false;
    for (const char c : std::string(operation.example()) + " ") {
        if (c == '"') quoted = !quoted;
        else if (c == ' ' && !quoted) {
            if (!word.empty()) words.push_back(word);
            word.clear();
        } else word += c;
    }
    words.insert(words.end(), {"--machine", "h100-sxm"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

class PicturesVerb : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::path(testing::TempDir()) / ("pictures" + std::to_string(getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string in(const std::string& name) const { return (folder_ / name).string(); }
    Outcome ran(const std::vector<std::string>& words) const { return run(words, without_gpu()); }
    fs::path folder_;
};

TEST_F(PicturesVerb, EveryOperationDrawsAndHasAPage) {
    for (const Operation* operation : drawn_few(std::vector<const Operation*>(operations().begin(), operations().end()), 3)) {
        SCOPED_TRACE(operation->name());
        const std::string svg = in("a.svg"), html = in("a.html"), document = in("a.json");
        std::vector<std::string> words = {"--svg", svg, "--html", html, "--explain=all", "--json", "-o", document};
        if (!operation->map_keys()[0].empty()) words.push_back("--map");
        const Outcome drawn = ran(example_of("plan", *operation, words));
        ASSERT_EQ(drawn.code, 0) << drawn.err;
        EXPECT_THAT(file_text(svg), testing::StartsWith("<svg "));
        EXPECT_THAT(file_text(html), testing::StartsWith("<!DOCTYPE html>"));
        const json plan = json::parse(file_text(document));
        EXPECT_EQ(JsonSchema("plan-1.json").faults(plan), "");
        const Outcome pictures = ran({"report", "pictures", document, "--json"});
        ASSERT_EQ(pictures.code, 0) << pictures.err;
        const json listed = json::parse(pictures.out);
        EXPECT_EQ(JsonSchema("pictures-1.json").faults(listed), "");
        const std::vector<std::string> drawn_at_once = [&] {
            std::vector<std::string> ids;
            for (const json& p : listed.at("pictures")) ids.push_back(p.at("id"));
            return ids;
        }();
        EXPECT_EQ(drawn_at_once.front(), "waterfall");
        // The waterfall ends at the predicted time, the map has it in the plan's place.
        const double us = plan.at("plans")[0].at("prediction").at("time_us");
        const json& bars = listed.at("pictures")[0].at("data").at("marks");
        EXPECT_NEAR(bars.back().at("points")[1][0].get<double>(), us, 1e-3 + 1e-5 * us);
        if (operation->map_keys()[0].empty()) continue;
        const std::string x(operation->map_keys()[0]), y(operation->map_keys()[1]);
        double best = 1e300;
        for (const json& cell : plan.at("map").at("cells")) {
            EXPECT_NE(cell.at("time_us").is_null(), cell.at("wall").is_null()) << cell;
            if (!cell.at("time_us").is_null()) best = std::min(best, cell.at("time_us").get<double>());
            const json& config = plan.at("plans")[0].at("config");
            if (cell.at(x) == config.at(x) && cell.at(y) == config.at(y)) { EXPECT_DOUBLE_EQ(cell.at("time_us").get<double>(), us); }
        }
        EXPECT_GE(best, us * (1 - 1e-9)) << "no tile of the map is faster than the plan";
    }
}

TEST_F(PicturesVerb, APageHasTheNumbersOfItsFiles) {
    const Operation& first = *operations().front();
    for (const char* machine : {"h100-sxm", "h200-sxm"}) {
        std::vector<std::string> words = example_of("plan", first, {"--explain=all", "--json", "-o", in(machine)});
        std::replace(words.begin(), words.end(), std::string("h100-sxm"), std::string(machine));
        ASSERT_EQ(ran(words).code, 0);
    }
    const std::string lines = in("plans.jsonl");
    ASSERT_EQ(
        ran({"sweep", std::string(first.name()), "--draw", "4", "--seed", "3", "--plan-only", "--machine", "h100-sxm", "--out", lines})
            .code,
        0);
    const Outcome made = ran({"report", "page", in("h100-sxm"), in("h200-sxm"), lines, "-o", in("page.html")});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    const std::string page = file_text(in("page.html"));
    const json documents[] = {json::parse(file_text(in("h100-sxm"))), json::parse(file_text(in("h200-sxm")))};
    static const std::regex element(R"re(<data value="([^"]*)" data-at="d([12])(/[^"]*)">)re");
    std::size_t n = 0;
    for (std::sregex_iterator i(page.begin(), page.end(), element), end; i != end; ++i, ++n)
        EXPECT_EQ(documents[std::stoul((*i)[2]) - 1].at(json::json_pointer((*i)[3].str())), json::parse((*i)[1].str())) << (*i)[3];
    EXPECT_GT(n, 200u);
    EXPECT_THAT(page, HasSubstr("Side by side"));
    EXPECT_THAT(page, HasSubstr("time_"));
}

TEST_F(PicturesVerb, ATraceIsWholeAndInOrder) {
    for (const Operation* operation : operations()) {
        const Outcome outcome = ran(example_of("plan", *operation, {"--trace", in("t.json")}));
        if (outcome.code == 2) {
            EXPECT_THAT(outcome.err, HasSubstr("--trace")) << operation->name();
            continue;
        }
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        const json trace = json::parse(file_text(in("t.json")));
        EXPECT_GT(trace.at("traceEvents").size(), 10u);
        EXPECT_THAT(trace.at("otherData").at("command").get<std::string>(), HasSubstr("--trace"));
    }
}

TEST_F(PicturesVerb, RefusesInOneLine) {
    const Operation& first = *operations().front();
    const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
        const Outcome outcome = ran(words);
        EXPECT_EQ(outcome.code, 2) << outcome.out;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(text));
    };
    refused(example_of("plan", first, {"--svg", in("x.svg"), "--picture", "map"}), "there are waterfall");
    refused(example_of("plan", first, {"--picture", "waterfall"}), "--svg");
    refused(example_of("plan", first, {"--svg", "/nonexistent/x.svg"}), "/nonexistent/x.svg");
    refused(example_of("plan", first, {"--map"}), "--json");
    EXPECT_FALSE(fs::exists(in("x.svg")));
    refused({"report", "page", "-o", in("p.html")}, "needs a file");
    refused({"report", "page", in("none.json"), "-o", in("p.html")}, "none.json");
    refused({"report", "page", in("none.json")}, "-o page.html");
    std::ofstream(in("bad.json")) << "{\"schema\": \"rooftile/plan/1\", \"plans\": [{}]}";
    refused({"report", "page", in("bad.json"), "-o", in("p.html")}, "schema promises");
    std::ofstream(in("text.json")) << "hello\n";
    refused({"report", "page", in("text.json"), "-o", in("p.html")}, "text.json");
    refused({"report", "pictures", in("text.json")}, "text.json");
    EXPECT_FALSE(fs::exists(in("p.html")));
}

}  // namespace
}  // namespace rooftile
