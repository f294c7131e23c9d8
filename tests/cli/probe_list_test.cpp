// What needs no GPU of `machine probe` and `machine compare`, from outside.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(ProbeList, AsTextAndAsADocument) {
    EXPECT_THAT(run({"machine", "probe", "--list"}).out, HasSubstr("tma.latency_dram"));
    const Outcome outcome = run({"machine", "probe", "--list", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document.at("schema"), "rooftile/probes/1");
    EXPECT_GE(document.at("probes").size(), 8u);
    for (const json& probe : document.at("probes")) {
        EXPECT_EQ(probe.at("keys").size(), probe.at("units").size());
        EXPECT_GT(probe.at("seconds"), 0);
    }
}

class CompareTest : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("rooftile-compare-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    /// A probe's document as far as it is compared.
    std::string file(const char* name, double value) const {
        const json document = {{"schema", "rooftile/probe/1"},
                               {"context", {{"gpu", "NVIDIA Made-up"}}},
                               {"values",
                                {{{"probe", "tma"},
                                  {"name", "l2.port"},
                                  {"key", "l2.port"},
                                  {"value", value},
                                  {"unit", "GB/s/SM"},
                                  {"spread", 0.5},
                                  {"samples", 9},
                                  {"note", ""}}}}};
        const std::string path = (folder_ / name).string();
        std::ofstream(path) << document.dump();
        return path;
    }
    std::filesystem::path folder_;
};

TEST_F(CompareTest, EndsWith8WhereTheyAreApart) {
    const Outcome same = run({"machine", "compare", file("a.json", 100), file("b.json", 100.9)});
    EXPECT_EQ(same.code, 0) << same.err;
    EXPECT_THAT(same.out, HasSubstr("1 of 1 numbers"));
    const Outcome apart = run({"machine", "compare", file("a.json", 100), file("b.json", 102)});
    EXPECT_EQ(apart.code, 8);
    EXPECT_THAT(apart.err, HasSubstr("l2.port"));
    EXPECT_EQ(run({"machine", "compare", file("a.json", 100), "/nowhere.json"}).code, 2);
}

}  // namespace
}  // namespace rooftile
