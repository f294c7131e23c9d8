#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;

const std::vector<std::string> small = {"simulate",  "gemm",     "--shape", "2048x2048x2048",
                                        "--machine", "h200-sxm", "--set",   "l2.size=8 MiB"};

TEST(SimulateVerb, EveryOrderOfThePlanRankedFirst) {
    const Outcome outcome = run(with(small, {"--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("simulation-1.json").faults(document), "");
    const json& rows = document.at("rows");
    EXPECT_GE(rows.size(), 20u);
    int planned = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        planned += rows[i].at("planned").get<bool>();
        EXPECT_GE(rows[i].at("dram_bytes"), document.at("bounds").at("dram_lower_bound_bytes"));
        EXPECT_GE(rows[i].at("dram_bytes"), rows[i > 0 ? i - 1 : 0].at("dram_bytes"));
    }
    EXPECT_EQ(planned, 1);
}

// Orders differ in the bytes of DRAM alone, and so do their joules.
TEST(SimulateVerb, EnergyOfEachOrder) {
    const std::vector<std::string> large = {"simulate", "gemm", "--shape", "4096x4096x4096", "--machine", "h200-sxm", "--set", "l2.size=8 MiB"};
    const Outcome outcome = run(with(large, {"--energy", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("simulation-1.json").faults(document), "");
    const json &rows = document.at("rows"), &first = rows[0], &last = rows[rows.size() - 1];
    const double bytes = last.at("dram_bytes").get<double>() - first.at("dram_bytes").get<double>();
    const double joules = last.at("energy_j").get<double>() - first.at("energy_j").get<double>();
    ASSERT_GT(bytes, 0);
    EXPECT_GT(joules, bytes * 45e-12 * 0.99);  // at the sustained clock or above
    EXPECT_LT(joules, bytes * 45e-12 * 2);
    const Outcome text = run(with(large, {"--energy"}));
    EXPECT_NE(text.out.find("joules"), std::string::npos) << text.out;
    const Outcome unknown = run({"simulate", "gemm", "--shape", "2048x2048x2048", "--machine", "h20", "--energy"});
    EXPECT_NE(unknown.out.find("joules unknown: energy."), std::string::npos) << unknown.out << unknown.err;
    EXPECT_FALSE(json::parse(run(with(large, {"--json"})).out).at("rows")[0].contains("energy_j"));
}

TEST(SimulateVerb, AFixedOrderAlone) {
    const Outcome outcome = run(with(small, {"--order", "hilbert", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json rows = json::parse(outcome.out).at("rows");
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].at("order"), "hilbert");
    EXPECT_TRUE(rows[0].at("model_dram_bytes").is_null());
}

TEST(SimulateVerb, OptIsNeverAboveLru) {
    const auto dram = [](const char* policy) {
        const Outcome outcome = run(with(small, {"--orders", "plan", "--policy", policy, "--json"}));
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return json::parse(outcome.out).at("rows").at(0).at("dram_bytes").get<std::int64_t>();
    };
    EXPECT_LE(dram("opt"), dram("lru"));
}

TEST(SimulateVerb, TwoHalvesAreFollowed) {
    const Outcome outcome = run(with(small, {"--orders", "plan", "--l2", "halves", "--jsonl"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(json::parse(line).at("l2").at("layout"), "halves");
    std::getline(lines, line);
    EXPECT_GT(json::parse(line).at("fabric_bytes"), 0);
}

TEST(SimulateVerb, DrawsTheSchedule) {
    const std::string path = testing::TempDir() + "tile_schedule.svg";
    std::filesystem::remove(path);
    const Outcome outcome = run(with(small, {"--svg", path}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("planned"), std::string::npos);
    std::ostringstream svg;
    svg << std::ifstream(path).rdbuf();
    EXPECT_EQ(svg.str().rfind("<svg ", 0), 0u);
    EXPECT_NE(svg.str().find("</svg>"), std::string::npos);
    std::filesystem::remove(path);
}

TEST(SimulateVerb, RefusesInOneLine) {
    const auto refused = [](const std::vector<std::string>& words, const std::string& text) {
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 2) << outcome.out;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
        EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    };
    refused({"simulate"}, "simulate what?");
    refused(with(small, {"--policy", "fifo"}), "--policy fifo");
    refused(with(small, {"--l2", "quarter"}), "--l2 quarter");
    refused(with(small, {"--orders", "some"}), "--orders some");
    refused(with(small, {"--orders", "all", "--order", "row"}), "exclude each other");
    refused(with(small, {"--policy", "opt", "--l2", "halves"}), "opt over two halves");
    refused(with(small, {"--l2", "halves", "--set", "l2.partitions=1"}), "no two halves");
    refused(with(small, {"--svg", "/tmp/x.svg", "--policy", "opt"}), "--svg");
    refused(with(small, {"--set", "l2.size=unknown"}), "l2.size");
    refused(with(small, {"--svg", "/nonexistent/x.svg"}), "--svg /nonexistent/x.svg");
}

}  // namespace
}  // namespace rooftile
