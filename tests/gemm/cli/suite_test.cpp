// A suite from outside, on a driver without a GPU (tests/fake/): rows, going on, stopping, failing,
// reporting.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/gemm/cli/fake_gpu.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SuiteTest : public FakeGpuTest {
  protected:
    SuiteTest() : FakeGpuTest("suite", "64x256x128") {}
    void SetUp() override {
        FakeGpuTest::SetUp();
        if (IsSkipped()) return;
        std::ofstream(folder_ / "s.toml")
            << "schema = \"rooftile/suite/1\"\nname = \"small\"\nm = [64, 128]\n[[model]]\nname = \"A\"\n"
               "source = \"test\"\nlayers = [{name = \"one\", n = 256, k = 128}]\n[[model]]\nname = "
               "\"square\"\n"
               "source = \"test\"\nsquares = [128]\n";
    }
    Outcome measure(const std::vector<std::string>& more = {}, const Environment& environment = {}) const {
        std::vector<std::string> words = {"measure", "gemm", "--suite", (folder_ / "s.toml").string(),
                                          "--top",   "3",    "--out",   out()};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, with(environment));
    }
};

TEST_F(SuiteTest, EveryPlanIsARowThatStandsAlone) {
    const Outcome outcome = measure({"--seed", "5"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error_lines(), 3) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("3/3 square square 128x128x128: "));
    const auto all = lines();
    ASSERT_EQ(all.size(), 10u);  // the context, 3 problems x 3 plans
    EXPECT_EQ(all[0].at("suite"), "small");
    EXPECT_EQ(all[0].at("context").at("seed"), 5);
    EXPECT_EQ(all[0].at("context").at("gpu"), "NVIDIA H200");
    for (std::size_t i = 1; i < all.size(); ++i) {
        const json& row = all[i];
        EXPECT_EQ(row.at("machine").at("id"), "h200-sxm");
        EXPECT_EQ(row.at("rank"), int(i - 1) % 3 + 1);
        EXPECT_EQ(row.at("plans"), 3);
        EXPECT_EQ(row.at("verified").at("exact"), true);
        EXPECT_TRUE(row.at("invalid").is_null()) << row.at("invalid");
        EXPECT_GT(row.at("time_us"), 0);
        // The fake algorithms take 21, none, 22, 20.5, ... us.
        EXPECT_NEAR(row.at("baselines").at("cublaslt_top1_us").get<double>(), 21, 1e-3);
        EXPECT_NEAR(row.at("baselines").at("cublaslt_best_us").get<double>(), 20.5, 1e-3);
        EXPECT_NEAR(row.at("baselines").at("cublaslt_ratio").get<double>(),
                    20.5 / row.at("time_us").get<double>(), 1e-3);
    }
    json document = all[0];
    document["rows"] = json::array();
    for (std::size_t i = 1; i < all.size(); ++i) {
        document["rows"].push_back(all[i]);
        document["rows"].back().erase("machine");
    }
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
}

TEST_F(SuiteTest, TheFastestBehindPlanOneIsConfirmed) {
    const auto plans = [&](const std::vector<std::string>& more, const Environment& environment) {
        std::filesystem::remove(out());
        std::vector<std::string> words = {"measure",  "gemm",  "--suite", (folder_ / "s.toml").string(),
                                          "--top",    "6",     "--out",   out(),
                                          "--filter", "square"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome outcome = run(words, with(environment));
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        auto all = lines();
        if (!all.empty()) all.erase(all.begin());
        return all;
    };
    const auto before = plans({"--confirm", "0"}, {});
    ASSERT_EQ(before.size(), 6u);
    for (const json& row : before) EXPECT_TRUE(row.at("confirmation").is_null());
    const json config = before[0].at("config");
    const auto number = [&](const char* key) { return std::to_string(config.at(key).get<int>()) + "x"; };
    const Environment slow = {{"FAKE_SLOW_TILE", number("tile_m") + number("tile_n")}};

    int confirmations = 0, fastest = 0;
    double most = 1.01;  // what a paired re-measurement needs
    const auto rows = plans({"--confirm", "5"}, slow);
    ASSERT_EQ(rows.size(), 6u);
    EXPECT_TRUE(rows[0].at("rank1_ratio").is_null());
    for (const json& row : rows) {
        if (row.at("rank") == 1) continue;
        const double ratio = row.at("rank1_ratio");
        if (ratio > most) most = ratio, fastest = row.at("rank");
        if (row.at("confirmation").is_null()) continue;
        ++confirmations;
        // No block scatters on the fake device, so the least of rounds is enough.
        EXPECT_EQ(row.at("confirmation").at("samples"), 4);
        EXPECT_NEAR(row.at("confirmation").at("ratio").get<double>(), ratio, 1e-12);
        EXPECT_NEAR(row.at("confirmation").at("first_ratio").get<double>(), ratio, 1e-3);
    }
    ASSERT_GT(fastest, 1) << "all plans have the first one's tile";
    EXPECT_EQ(confirmations, 1);
    EXPECT_TRUE(rows[std::size_t(fastest - 1)].at("confirmation").is_object());
    const Outcome report = run({"report", "suite", out(), "--markdown"}, environment_);
    EXPECT_THAT(report.out, HasSubstr("1 by a paired re-measurement"));
    const Outcome cold = measure({"--confirm", "4", "--mode", "cold"});
    EXPECT_EQ(cold.code, 2);
    EXPECT_THAT(cold.err, HasSubstr("--confirm is of --mode sustained and burst"));
}

/// The counted launches are those of the row's kernel and of cuBLASLt's best: the fake device's clock tells.
void expect_counted(const json& row) {
    const json &counters = row.at("counters"), &theirs = row.at("baselines").at("cublaslt_best_counters");
    EXPECT_EQ(counters.at("chip"), "GH100");
    EXPECT_GE(counters.at("launches"), 8);
    EXPECT_NEAR(counters.at("time_us").get<double>(), row.at("time_us").get<double>(), 1e-3);
    EXPECT_EQ(theirs.at("launches"), counters.at("launches"));
    EXPECT_NEAR(theirs.at("time_us").get<double>(), 20.5, 1e-3);
}

TEST_F(SuiteTest, CountersStandInEveryRow) {
    const Outcome outcome = measure({"--counters", "--timings"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("3/3 "));
    const auto all = lines();
    ASSERT_EQ(all.size(), 10u);
    for (std::size_t i = 1; i < all.size(); ++i) expect_counted(all[i]);
}

TEST_F(SuiteTest, CountersOfOneProblem) {
    const std::vector<std::string> words = {"measure", "gemm", "--shape", "64x256x128", "--counters"};
    auto with = [&](const char* more) {
        auto all = words;
        all.push_back(more);
        return all;
    };
    const Outcome document = run(with("--json"), environment_);
    ASSERT_EQ(document.code, 0) << document.err;
    const json parsed = json::parse(document.out);
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(parsed), "");
    expect_counted(parsed.at("rows").at(0));
    const Outcome text = run(with("--timings"), environment_);
    EXPECT_THAT(text.out, HasSubstr("counted, of one launch"));
    EXPECT_THAT(text.out, HasSubstr("cuBLASLt best of 7"));  // one of its eight does not run
    EXPECT_THAT(text.out, HasSubstr("\ncount "));

    const Outcome alone = run({"measure", "gemm", "--shape", "64x256x128", "--counters", "--baseline", "none",
                               "--mode", "cold", "--json"},
                              environment_);
    ASSERT_EQ(alone.code, 0) << alone.err;
    const json row = json::parse(alone.out).at("rows").at(0);
    EXPECT_EQ(row.at("counters").at("chip"), "GH100");
    EXPECT_TRUE(row.at("baselines").at("cublaslt_best_counters").empty());
}

TEST_F(SuiteTest, DeniedCountersEndWith7) {
    const Environment denied = with({{"FAKE_COUNTERS_DENIED", "1"}});
    const Outcome one = run({"measure", "gemm", "--shape", "64x256x128", "--counters"}, denied);
    EXPECT_EQ(one.code, 7) << one.err;
    EXPECT_EQ(one.out, "");
    EXPECT_LE(one.error_lines(), 3);
    EXPECT_THAT(one.err, HasSubstr("hardware counters are not permitted here"));
    EXPECT_EQ(measure({"--counters"}, {{"FAKE_COUNTERS_DENIED", "1"}}).code, 7);
    EXPECT_EQ(measure({}, {{"FAKE_COUNTERS_DENIED", "1"}}).code, 0);  // nobody asked
}

TEST_F(SuiteTest, GoesOnWhereItStopped) {
    const Outcome first = measure({"--max-seconds", "1"});
    EXPECT_EQ(first.code, 0) << first.err;
    EXPECT_THAT(first.err, HasSubstr("2 of 3 problems remain"));
    const auto begun = lines();
    ASSERT_EQ(begun.size(), 4u);
    {  // as if it had been killed while writing the next problem
        std::ofstream file(out(), std::ios::app);
        json row = begun[1];
        row["problem"]["m"] = 128;
        file << row << "\n{\"machine\":{\"id\"";
    }
    const Outcome second = measure();
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_THAT(second.err, HasSubstr("going on: 1 of 3 problems"));
    const auto all = lines();
    ASSERT_EQ(all.size(), 10u);
    for (std::size_t i = 0; i < begun.size(); ++i) EXPECT_EQ(all[i], begun[i]);
    const Outcome third = measure();
    EXPECT_EQ(third.code, 0);
    EXPECT_THAT(third.err, HasSubstr("nothing left to do"));
    EXPECT_EQ(lines(), all);
}

TEST_F(SuiteTest, AnotherRunIsRefused) {
    ASSERT_EQ(measure({"--filter", "square", "--seed", "1"}).code, 0);
    const auto refused = [&](const std::vector<std::string>& more, const char* what) {
        const Outcome outcome = measure(more);
        EXPECT_EQ(outcome.code, 2) << what;
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(what));
    };
    refused({"--mode", "cold"}, "another mode (sustained, now cold)");
    refused({"--seed", "2"}, "another seed (1, now 2)");
    refused({"--set", "dram.bandwidth=1 TB/s"}, "another machine");
    auto all = lines();
    all[0]["context"]["program_hash"] = "0";
    std::ofstream file(out());
    for (const json& line : all) file << line << "\n";
    file.close();
    refused({}, "another program (0, now ");
}

TEST_F(SuiteTest, WhatFailsIsARowAndTheExitCodeSaysSo) {
    const Outcome wrong = measure({"--tile", "64x32x64"}, {{"FAKE_WRONG_TILE", "64x32x64"}});
    EXPECT_EQ(wrong.code, 3) << wrong.err;
    EXPECT_THAT(wrong.err, HasSubstr("results are wrong"));
    for (const json& row : lines()) {
        if (!row.contains("rank")) continue;
        EXPECT_TRUE(row.at("time_us").is_null());
        EXPECT_THAT(row.at("invalid").get<std::string>(), HasSubstr("elements of C are wrong"));
    }
    std::filesystem::remove(out());
    // 99 stages of 49152 B are more than any SM has.
    const Outcome infeasible = measure({"--tile", "128x256x64", "--stages", "99"});
    EXPECT_EQ(infeasible.code, 10) << infeasible.err;
    ASSERT_EQ(lines().size(), 4u);
    EXPECT_EQ(lines()[1].at("plans"), 0);
    EXPECT_THAT(lines()[1].at("invalid").get<std::string>(), HasSubstr("no plan fits"));
    std::filesystem::remove(out());
    const Outcome small = measure({}, {{"FAKE_MEMORY", "400000"}});
    EXPECT_EQ(small.code, 6) << small.err;
    EXPECT_THAT(small.err, HasSubstr("could not be run"));
    ASSERT_EQ(lines().size(), 10u);
    EXPECT_THAT(lines()[1].at("invalid").get<std::string>(), HasSubstr("are free on the GPU"));
    EXPECT_THAT(small.err, testing::Not(HasSubstr("results are wrong")));
    EXPECT_EQ(measure({}, {{"FAKE_MEMORY", "400000"}}).code, 6);  // nothing is left to do, and it says the same
}

// Some four launches of each plan are looked at before any is timed.
TEST_F(SuiteTest, AKernelThatIsRightUntilItIsTimedIsWrong) {
    const Outcome wrong = measure({"--filter", "square"}, {{"FAKE_WRONG_FROM", "60"}});
    EXPECT_EQ(wrong.code, 3) << wrong.err;
    int rows = 0;
    for (const json& row : lines()) {
        if (!row.contains("rank")) continue;
        ++rows;
        EXPECT_EQ(row.at("verified").at("exact"), true);
        EXPECT_EQ(row.at("verified").at("random"), true);
        EXPECT_EQ(row.at("verified").at("timed"), false);
        EXPECT_TRUE(row.at("time_us").is_null());
    }
    EXPECT_EQ(rows, 3);
}

TEST_F(SuiteTest, WhatNobodyWantedToTimeIsNoFailureWhenItIsGoneOnWith) {
    for (const char* run : {"first", "second"}) {
        const Outcome outcome = measure({"--no-time"});
        EXPECT_EQ(outcome.code, 0) << run << ": " << outcome.err;
    }
}

TEST_F(SuiteTest, AnInterruptionKeepsWhatIsDone) {
    // Long enough to be met in the middle: the second problem takes 3 s of rounds at least.
    std::thread interrupter([&] {
        for (int i = 0; i < 600; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            std::ifstream file(out());
            std::string text((std::istreambuf_iterator<char>(file)), {});
            if (std::count(text.begin(), text.end(), '\n') < 4) continue;
            std::ifstream id(folder_ / "pid");
            pid_t pid = 0;
            id >> pid;
            if (pid > 0) kill(pid, SIGINT);
            return;
        }
    });
    const std::string command = "echo $$ >" + (folder_ / "pid").string() + "; exec " + program()
                                + " measure gemm --top 3 --rounds 1000 --suite "
                                + (folder_ / "s.toml").string() + " --out " + out() + " 2>"
                                + (folder_ / "err").string();
    for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
    const int status = std::system(("exec sh -c '" + command + "'").c_str());
    interrupter.join();
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_GE(lines().size(), 4u);
    EXPECT_LT(lines().size(), 10u);
}

TEST_F(SuiteTest, TheReportReadsIt) {
    ASSERT_EQ(measure().code, 0);
    const Outcome text = run({"report", "suite", out()}, environment_);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("3 problems of suite small"));
    const Outcome required = run({"report", "suite", out(), "--require", "--markdown"}, environment_);
    EXPECT_EQ(required.code, 8);
    EXPECT_THAT(required.out, HasSubstr("| A |"));
    EXPECT_THAT(required.err, HasSubstr("missed: 4096x4096x4096: no ratio"));
}

// Four problems; the first run stops after one, the second goes on; figures and picture come from the rows.
TEST_F(SuiteTest, ASweepIsMeasuredAsASuiteIs) {
    const std::string svg = (folder_ / "s.svg").string();
    const auto sweep = [&](std::vector<std::string> more) {
        std::vector<std::string> words = {"sweep", "gemm", "--m", "64,128,192,256", "--n", "256", "--k", "128",
                                          "--top", "2", "--out", out()};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, environment_);
    };
    const Outcome first = sweep({"--max-seconds", "1"});
    ASSERT_EQ(first.code, 0) << first.err;
    const std::size_t before = lines().size();
    EXPECT_GE(before, 3u);
    const Outcome second = sweep({"--svg", svg});
    ASSERT_EQ(second.code, 0) << second.err;
    if (before < 9) { EXPECT_THAT(second.err, HasSubstr("going on: ")); }
    const auto all = lines();
    ASSERT_EQ(all.size(), 9u);  // the context, 4 problems x 2 plans
    EXPECT_EQ(all[0].at("suite"), "lists");
    EXPECT_EQ(all[0].at("law"), "m = 64,128,192,256; n = 256; k = 128");
    EXPECT_EQ(all[0].at("context").at("seed"), 1);
    EXPECT_THAT(second.out, HasSubstr("4 problems of gemm, suite lists, sustained"));
    std::stringstream picture;
    picture << std::ifstream(svg).rdbuf();
    EXPECT_THAT(picture.str(), HasSubstr("<polyline"));
    const Outcome report = run({"report", "sweep", out()});
    EXPECT_EQ(report.code, 0) << report.err;
    EXPECT_EQ(report.out, second.out);
    const Outcome other = run({"sweep", "gemm", "--m", "64", "--n", "256", "--k", "128", "--out", out()}, environment_);
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, HasSubstr("another command"));
}

// What was measured and what was predicted in one picture and on one page; neither asks for --explain.
TEST_F(SuiteTest, AMeasuredRowHasItsPicturesAndItsPage) {
    const std::string svg = (folder_ / "run.svg").string(), html = (folder_ / "run.html").string();
    const Outcome outcome = run({"measure", "gemm", "256x256x128", "--json", "--svg", svg, "--html", html}, environment_);
    const json document = json::parse(outcome.out);
    const json& row = document.at("rows")[0];
    const auto text = [](const std::string& path) {
        std::stringstream out;
        out << std::ifstream(path).rdbuf();
        return out.str();
    };
    EXPECT_EQ(row.at("attainability").back().at("step"), row.at("time_us").is_null() ? "launch" : "measured");
    const std::string page = text(html);
    EXPECT_NE(text(svg).find("from the roof to the"), std::string::npos);
    EXPECT_NE(page.find("data-at=\"d1/rows/0/predicted_time_us\""), page.npos);
    EXPECT_NE(page.find("<summary><b>stages</b>"), page.npos) << "the row's derivation unfolds";
}

}  // namespace
}  // namespace rooftile
