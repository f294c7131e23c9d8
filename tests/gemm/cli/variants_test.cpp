// `--sample`, `--orders` and `--no-time` from outside, and `report sweep --again` of such a run.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/gemm/cli/fake_gpu.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> variants_plan(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "gemm", "--shape", "4096x4096x4096", "--machine", "h200-sxm"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(Variants, APlanAndASampleBesideIt) {
    const Outcome outcome = run(variants_plan({"--sample", "6", "--seed", "5", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
    EXPECT_EQ(document.at("plans").size(), 6u);
    EXPECT_EQ(run(variants_plan({"--sample", "6", "--seed", "5", "--json"})).out, outcome.out);
    const Outcome other = run(variants_plan({"--sample", "6", "--seed", "6", "--json"}));
    EXPECT_EQ(json::parse(other.out).at("plans").at(0).at("config"), document.at("plans").at(0).at("config"));
    EXPECT_NE(json::parse(other.out).at("plans").at(3).at("config"), document.at("plans").at(3).at("config"));
}

TEST(Variants, APlanInOtherOrders) {
    const Outcome outcome = run(variants_plan({"--orders", "row,serpentine:6,hilbert", "--json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
    std::set<std::string> orders;
    for (const json& p : document.at("plans")) orders.insert(p.at("config").at("order"));
    EXPECT_TRUE(orders.count("row") && orders.count("serpentine") && orders.count("hilbert"));
    const Outcome all = run(variants_plan({"--orders", "all", "--json"}));
    EXPECT_GE(json::parse(all.out).at("plans").size(), 24u);
}

TEST(Variants, WhatContradictsIsRefused) {
    expect_refused(variants_plan({"--sample", "1"}), {"--sample", "2 .. 64"});
    expect_refused(variants_plan({"--sample", "4", "--orders", "row"}), {"--sample", "--orders"});
    expect_refused(variants_plan({"--sample", "4", "--top", "2"}), {"--sample", "--top"});
    expect_refused(variants_plan({"--orders", "row", "--order", "row"}), {"--orders", "--order"});
    expect_refused(variants_plan({"--orders", "grouped"}), {"grouped:N"});
    expect_refused(variants_plan({"--orders", "row:2"}), {"row"});
    expect_refused(variants_plan({"--orders", "row,"}), {"--orders"});
    expect_refused(variants_plan({"--orders", "snail"}), {"hilbert"});
    expect_refused(variants_plan({"--seed", "3"}), {"--seed", "--sample"});
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--no-time", "--ablate"},
                   {"--no-time", "--ablate"});
}

class VariantsTest : public FakeGpuTest {
  protected:
    VariantsTest() : FakeGpuTest("variants", "512x512x512") {}
    void SetUp() override {
        FakeGpuTest::SetUp();
        if (IsSkipped()) return;
        std::ofstream(folder_ / "s.toml")
            << "schema = \"rooftile/suite/1\"\nname = \"small\"\n[[model]]\nname = \"square\"\n"
               "source = \"test\"\nsquares = [512]\n";
    }
    Outcome measure(const std::vector<std::string>& more) const {
        std::vector<std::string> words = {"measure", "gemm", "--suite",    (folder_ / "s.toml").string(),
                                          "--out",   out(),  "--baseline", "none"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, environment_);
    }
    std::vector<json> rows() const {
        std::vector<json> all = lines();
        all.erase(all.begin());
        return all;
    }
};

TEST_F(VariantsTest, OrdersAreCountedAndNotTimed) {
    const Outcome outcome = measure({"--orders", "row,column,grouped:2,hilbert", "--counters", "--no-time"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto all = rows();
    ASSERT_GE(all.size(), 4u);
    for (const json& row : all) {
        EXPECT_TRUE(row.at("time_us").is_null());
        EXPECT_EQ(row.at("invalid"), "not timed, as asked");
        EXPECT_TRUE(row.at("verified").at("exact").get<bool>());
        EXPECT_GE(row.at("counters").at("launches"), 8);
    }
}

TEST_F(VariantsTest, ASampleIsTimed) {
    const Outcome outcome = measure({"--sample", "4", "--seed", "9"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto all = rows();
    ASSERT_EQ(all.size(), 4u);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].at("rank"), i + 1);
        EXPECT_GT(all[i].at("time_us"), 0);
    }
    const Outcome report = run({"report", "sweep", out(), "--again"}, environment_);
    EXPECT_EQ(report.code, 0) << report.err;
    EXPECT_THAT(report.out, HasSubstr("predicted anew"));
    EXPECT_EQ(run({"report", "sweep", out(), "--set", "nothing=1"}, environment_).code, 2);
}

// 2 x 2016^3 = 16.4 GFLOP in cuBLASLt's 20.5 us are 799 TFLOP/s. At 1.98 GHz 132 SMs have 673 by mma.sync and 1071 by
// wgmma: the library may be that fast, a kernel of mma.sync may not.
TEST_F(VariantsTest, CublasLtIsHeldAgainstWgmmaBesideAKernelOfMmaSync) {
    const Outcome outcome =
        run({"measure", "gemm", "--shape", "2016x2016x2016", "--kernel", "sm80_gemm", "--rounds", "1", "--json"},
            environment_);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json row = json::parse(outcome.out).at("rows").at(0);
    EXPECT_EQ(row.at("config").at("kernel"), "sm80_gemm");
    EXPECT_TRUE(row.at("verified").at("exact").get<bool>());
    EXPECT_NEAR(row.at("baselines").at("cublaslt_best_us").get<double>(), 20.5, 1e-4);
    EXPECT_THAT(row.at("invalid").get<std::string>(), HasSubstr("of 673.3 at the boost clock"));
}

}  // namespace
}  // namespace rooftile
