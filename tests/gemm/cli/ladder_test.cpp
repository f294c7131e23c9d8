// measure gemm --ladder from outside.
#include <filesystem>
#include <fstream>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

TEST(LadderProgram, NeedsAGpu) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"measure", "gemm", "--ladder"},
             {"measure", "gemm", "--ladder", "--shape", "512x512x512", "--json"},
             {"measure", "gemm", "--ladder", "--machine", "h200-sxm", "--csv"}}) {
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 4) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
    }
}

TEST(LadderProgram, WrongRequestsAreRefusedBeforeAnyGpuIsAsked) {
    const std::vector<std::string> ladder = {"measure", "gemm", "--ladder"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), ladder.begin(), ladder.end());
        return more;
    };
    expect_refused(with({"--suite", "some.toml"}), {"--ladder", "--suite", "exclude"});
    expect_refused(with({"--shape", "64x64"}), {"--shape", "MxNxK"});
    expect_refused(with({"--m", "64"}), {"missing --n, --k"});
    expect_refused(with({"--shape", "64x64x64", "--a-major", "m"}), {"--a-major k"});
    expect_refused(with({"--shape", "64x64x64", "--ldc", "72"}), {"ldc"});
    for (const char* flag : {"--filter", "--max-seconds", "--top"})
        expect_refused(with({flag, "2"}), {flag, "--ladder"});
    expect_refused(with({"--counters"}), {"--counters"});
    expect_refused(with({"--mode", "warm"}), {"--mode warm", "cold"});
    expect_refused(with({"--json", "--csv"}), {"--json", "--csv"});
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
    const Outcome help = run({"measure", "gemm", "-h"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("--ladder"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
