// measure ladder from outside.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(LadderProgram, NeedsAGpu) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"measure", "ladder"},
             {"measure", "ladder", "--shape", "512x512x512", "--json"},
             {"measure", "ladder", "--machine", "h200-sxm", "--csv"}}) {
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 4) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
    }
}

TEST(LadderProgram, WrongRequestsAreRefusedBeforeAnyGpuIsAsked) {
    const std::vector<std::string> ladder = {"measure", "ladder"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), ladder.begin(), ladder.end());
        return more;
    };
    expect_refused(with({"--shape", "64x64"}), {"--shape", "MxNxK"});
    expect_refused(with({"--m", "64"}), {"missing --n, --k"});
    expect_refused(with({"--shape", "64x64x64", "--a-major", "m"}), {"--a-major k"});
    expect_refused(with({"--shape", "64x64x64", "--ldc", "72"}), {"ldc"});
    // It has its own kernels, and one problem.
    for (const char* flag : {"--suite", "--filter", "--max-seconds", "--top", "--sample", "--orders", "--confirm"})
        expect_refused(with({flag, "2"}), {flag});
    for (const char* flag : {"--counters", "--explain", "--energy", "--ablate"})
        expect_refused(with({flag}), {flag});
    expect_refused(with({"--mode", "warm"}), {"--mode warm", "cold"});
    expect_refused(with({"--json", "--csv"}), {"--json", "--csv"});
}

// On a driver without a GPU: what every kernel computes is right, and the slowest takes 22 us.
TEST(LadderProgram, EveryRungIsVerifiedAndTimedBesideThePlan) {
    if (!std::filesystem::exists(ROOFTILE_FAKE_CUDA "/libcuda.so.1")) GTEST_SKIP() << "skipped: no fake driver";
    Environment environment = plain_environment();
    environment["CUDA_HOME"] = ROOFTILE_TEST_CUDA;
    environment["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    const auto measured = [&](const char* shape) {
        return run({"measure", "ladder", "--shape", shape, "--seed", "5", "--json"}, environment);
    };
    const Outcome outcome = measured("256x256x128");
    if (outcome.code == 5 && outcome.err.find("libnvrtc") != std::string::npos) GTEST_SKIP() << "skipped: no NVRTC";
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("ladder-1.json").faults(document), "");
    ASSERT_EQ(document.at("rows").size(), 7u);
    for (const auto& row : document.at("rows")) {
        EXPECT_TRUE(row.at("invalid").is_null()) << row;
        EXPECT_TRUE(row.at("verified").at("random") == true && row.at("verified").at("timed") == true) << row;
        EXPECT_GE(row.at("time_us"), 20) << row;
        EXPECT_LE(row.at("time_us"), 22) << row;
        EXPECT_GE(row.at("samples"), 6) << row;
        EXPECT_GT(row.at("registers"), 0) << row;
        EXPECT_TRUE(row.at("cublaslt_share").is_number()) << row;
    }
    const auto odd = nlohmann::json::parse(measured("256x131x128").out).at("rows");
    ASSERT_EQ(odd.size(), 7u);
    for (std::size_t i = 0; i < odd.size(); ++i) {
        const bool refused = i == 4 || i == 5;
        EXPECT_EQ(odd[i].at("invalid").is_string(), refused) << odd[i];
        EXPECT_EQ(odd[i].at("verified").is_null(), refused) << odd[i];
        EXPECT_EQ(odd[i].at("time_us").is_null(), refused) << odd[i];
    }
}

TEST(LadderProgram, ReportRefusesWhatIsNoLadder) {
    const auto directory =
        std::filesystem::temp_directory_path() / ("rooftile_ladder_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    const auto file = [&](const char* name, const char* text) {
        std::ofstream(directory / name) << text;
        return (directory / name).string();
    };
    expect_refused({"report", "ladder"}, {"report ladder FILE"});
    expect_refused({"report", "ladder", "/no/such/file"}, {"/no/such/file"});
    expect_refused({"report", "ladder", file("broken.json", "{")}, {"broken.json", "not JSON"});
    expect_refused({"report", "ladder", file("plan.json", "{\"schema\": \"rooftile/plan/1\"}")},
                   {"rooftile/ladder/1"});
    std::filesystem::remove_all(directory);
}

TEST(LadderProgram, HelpNamesIt) {
    const Outcome help = run({"measure", "-h"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("ladder"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
