// Requests for convolutions from outside: what is refused, and documents that follow their schema.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(ConvRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "conv"}, {"missing --channels"});
    expect_refused({"plan", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3x3"}, {"--kernel-size"});
    expect_refused({"plan", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3", "--layout", "cnhw"}, {"--layout", "nchw"});
    expect_refused({"simulate", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3", "--layout", "nchw"}, {"--layout", "packing"});
    expect_refused({"simulate", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3", "--gradient", "data"}, {"--gradient", "leave"});
}

TEST(ConvRequests, PlansOfGradientsFollowTheirSchema) {
    for (const char* gradient : {"data", "weights"}) {
        const Outcome outcome = run({"plan", "conv", "--batch", "4", "--channels", "64", "--height", "28", "--width", "28", "--filters", "128", "--kernel-size", "3", "--padding", "1", "--gradient",
                                     gradient, "--machine", "h100-sxm", "--json", "--explain"});
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        const auto document = nlohmann::json::parse(outcome.out);
        EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
        EXPECT_EQ(document.at("problem").at("gradient"), gradient);
    }
    const Outcome swept = run({"sweep", "conv", "--law", "weights", "--draw", "3", "--plan-only", "--machine", "h100-sxm"});
    EXPECT_EQ(swept.code, 0) << swept.err;
}

TEST(ConvRequests, SimulationsFollowTheirSchema) {
    const std::vector<std::string> line = {"simulate", "conv", "--batch", "4", "--channels", "64", "--height", "28", "--width", "28", "--filters", "128",
                                           "--kernel-size", "3", "--padding", "1", "--machine", "h100-sxm"};
    const Outcome outcome = run(with(line, {"--orders", "all", "--tiles", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("simulation-1.json").faults(document), "");
    EXPECT_EQ(document.at("problem").at("op"), "conv");
    EXPECT_GE(document.at("rows").size(), 20u);
    EXPECT_EQ(document.at("l2_sizes").size(), 6u);
    const auto tile = document.at("config").at("tile_pixels").get<int>(), across = document.at("config").at("tile_filters").get<int>();
    EXPECT_EQ(document.at("tiles").at("row").size(), std::size_t((4 * 28 * 28 + tile - 1) / tile * ((128 + across - 1) / across)));
    const Outcome text = run(line);
    EXPECT_NE(text.out.find("compulsory"), std::string::npos) << text.out << text.err;
    expect_refused({"simulate", "conv", "--channels", "64", "--height", "9", "--width", "9", "--filters", "64", "--kernel-size", "3", "--groups", "64"}, {"not simulated"});
}

}  // namespace
}  // namespace rooftile
