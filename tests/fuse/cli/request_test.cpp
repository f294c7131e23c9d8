// Requests for fused expressions that are refused, and the help that names them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

TEST(FuseRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "fuse", "y = gelux(x)", "--tensor", "x:bf16[8]"}, {"column 5", "did you mean gelu?"});
    expect_refused({"plan", "fuse"}, {"missing the expression"});
    expect_refused({"measure", "fuse", "y = x", "--tensor", "x:bf16[8]", "--baseline", "cudnn"},
                   {"--baseline cudnn", "copy, none"});
    expect_refused({"measure", "fuse", "y = x", "--suite", "some.toml"}, {"--suite", "an expression"});
    expect_refused({"build", "suite", "some.toml"}, {"--into FOLDER"});
    expect_refused({"build", "suite", "--into", "/tmp/x"}, {"a suite's file"});
}

// 16384^2 of bf16 in and out: 1.07 GB of DRAM at energy.dram; an expression takes more by its instructions than a copy does.
TEST(FuseRequests, EnergyOfAPlan) {
    const auto energy_of = [](const std::string& expression) {
        const Outcome plan = run({"plan", "fuse", expression, "--tensor", "x:bf16[16384,16384]", "--machine", "h200-sxm", "--set",
                                  "power.sustained=2000 W", "--energy", "--json"});
        EXPECT_EQ(plan.code, 0) << plan.err;
        return nlohmann::json::parse(plan.out).at("plans").at(0).at("energy");
    };
    const auto copy = energy_of("y = x"), gelu = energy_of("y = gelu(x)");
    const double clock = std::pow(1.98 / 1.33, 1.5);
    EXPECT_NEAR(copy.at("dram_j").get<double>(), 2 * 16384. * 16384 * 2 * 45e-12 * clock, 1e-4);
    EXPECT_NEAR(copy.at("fill_j").get<double>(), 2 * 16384. * 16384 * 2 * 17e-12 * clock, 1e-4);
    EXPECT_EQ(copy.at("matrix_j"), 0);
    EXPECT_TRUE(copy.at("joules_per_tflop").is_null());
    EXPECT_DOUBLE_EQ(gelu.at("dram_j").get<double>(), copy.at("dram_j").get<double>());
    EXPECT_GT(gelu.at("instruction_j").get<double>(), 2 * copy.at("instruction_j").get<double>());
    const Outcome text = run({"plan", "fuse", "y = gelu(x)", "--tensor", "x:bf16[16384,16384]", "--machine", "h200-sxm", "--energy"});
    for (const char* words : {"Energy of one launch", "instructions", "L2 to SMs", "plans kept"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
    EXPECT_EQ(text.out.find("products"), std::string::npos) << text.out;
}

TEST(FuseRequests, HelpNamesTheFields) {
    const Outcome help = run({"plan", "fuse", "--help"});
    EXPECT_EQ(help.code, 0);
    for (const char* word : {"--tensor", "--alignment", "--threads-per-row", "--explain"})
        EXPECT_NE(help.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace rooftile
