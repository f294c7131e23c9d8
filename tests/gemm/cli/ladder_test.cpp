// measure ladder from outside.
#include <filesystem>
#include <fstream>

#include "tests/cli/program.hpp"

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
    for (const char* flag : {"--suite", "--filter", "--max-seconds", "--top", "--sample", "--orders"})
        expect_refused(with({flag, "2"}), {flag});
    for (const char* flag : {"--counters", "--explain", "--energy", "--blame"}) expect_refused(with({flag}), {flag});
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
    const Outcome help = run({"measure", "-h"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("ladder"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
