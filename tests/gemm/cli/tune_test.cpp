// `tune` from outside, on a driver without a GPU (tests/fake/): who is chosen, that it is timed once, and who uses it.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/gemm/cli/fake_gpu.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TuneTest : public FakeGpuTest {
  protected:
    TuneTest() : FakeGpuTest("tune", "64x256x128") {}
    void SetUp() override {
        FakeGpuTest::SetUp();
        if (IsSkipped()) return;
        // Choices of this test alone, and the kernels that others have compiled.
        const std::filesystem::path own = folder_ / "cache";
        std::filesystem::create_directories(own);
        for (const auto& file : std::filesystem::directory_iterator(environment_["ROOFTILE_CACHE_DIR"]))
            if (file.path().extension() == ".cubin") std::filesystem::create_hard_link(file.path(), own / file.path().filename());
        environment_["ROOFTILE_CACHE_DIR"] = own.string();
    }
    /// The environment in which plan 1 of that shape is the slowest.
    Environment with_slow_first(const std::string& shape) const {
        const json plan = json::parse(run({"plan", "gemm", shape, "--json", "--top", "1"}, environment_).out).at("plans").at(0);
        const auto number = [&](const char* key) { return std::to_string(plan.at("config").at(key).get<int>()) + "x"; };
        return with({{"FAKE_SLOW_TILE", number("tile_m") + number("tile_n")}});
    }
    json tuned(const std::string& shape, const Environment& environment) const {
        const Outcome got = run({"tune", "gemm", shape, "--json"}, environment);
        EXPECT_EQ(got.code, 0) << got.err;
        const json document = json::parse(got.out);
        EXPECT_EQ(JsonSchema("tuned-1.json").faults(document), "");
        EXPECT_EQ(document.at("rows").size(), 1u);
        return document.at("rows").at(0);
    }
    std::filesystem::path store() const { return folder_ / "cache" / "tuned.jsonl"; }
};

TEST_F(TuneTest, TheFasterPlanIsKeptAndMeasuredFirst) {
    const Environment slow = with_slow_first("128x256x128");
    const json row = tuned("128x256x128", slow);
    EXPECT_GT(row.at("rank"), 1);
    EXPECT_GT(row.at("ratio").at("low"), 1);
    EXPECT_EQ(row.at("candidates").size(), 4u);
    EXPECT_EQ(row.at("candidates").at(0).at("rank"), 1);
    EXPECT_EQ(row.at("gpu"), "NVIDIA H200");
    EXPECT_LT(row.at("time_us").get<double>(), row.at("first_us").get<double>());
    // Timed once: plan 1 is no longer slow, and the choice stays.
    EXPECT_EQ(tuned("128x256x128", environment_), row);

    const Outcome measured = run({"measure", "gemm", "128x256x128", "--tuned", "--baseline", "none", "--json"}, environment_);
    ASSERT_EQ(measured.code, 0) << measured.err;
    const json document = json::parse(measured.out);
    ASSERT_EQ(document.at("rows").size(), 1u);
    EXPECT_EQ(document.at("rows").at(0).at("config"), row.at("config"));
    EXPECT_EQ(document.at("rows").at(0).at("rank"), 1);
    EXPECT_THAT(document.at("notes").dump(), HasSubstr("the planner's plan " + row.at("rank").dump()));
    const Outcome plain = run({"measure", "gemm", "128x256x128", "--baseline", "none", "--json"}, environment_);
    EXPECT_EQ(json::parse(plain.out).at("rows").at(0).at("config"), row.at("first_config"));
    // Another problem, and a request that fixes something, have no choice.
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"128x256x192"}, {"128x256x128", "--stages", "2"}}) {
        std::vector<std::string> words = {"measure", "gemm", "--tuned", "--baseline", "none", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome other = run(words, environment_);
        ASSERT_EQ(other.code, 0) << other.err;
        EXPECT_THAT(json::parse(other.out).at("notes").dump(), HasSubstr("no choice is kept"));
    }
}

TEST_F(TuneTest, PlanOneStaysWhereNobodyIsFaster) {
    // Whatever plan is the fastest: all other tiles cannot be slowed at once, so plan 1 alone is asked for.
    const Outcome got = run({"tune", "gemm", "128x256x128", "--top", "1", "--json"}, environment_);
    ASSERT_EQ(got.code, 0) << got.err;
    const json row = json::parse(got.out).at("rows").at(0);
    EXPECT_EQ(row.at("rank"), 1);
    EXPECT_TRUE(row.at("ratio").is_null());
    EXPECT_EQ(row.at("config"), row.at("first_config"));
    EXPECT_EQ(row.at("candidates").size(), 1u);
}

TEST_F(TuneTest, ASuiteGoesOnWhereItWasCut) {
    const std::string suite = (folder_ / "s.toml").string();
    std::ofstream(suite) << "schema = \"rooftile/suite/1\"\nname = \"small\"\nm = [64, 128]\n[[model]]\nname = \"A\"\n"
                            "source = \"test\"\nlayers = [{name = \"one\", n = 256, k = 128}]\n";
    tuned("128x256x128", environment_);
    const Outcome got = run({"tune", "gemm", "--suite", suite}, environment_);
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.error_lines(), 2) << got.err;
    EXPECT_THAT(got.err, HasSubstr("1/2 64x256x128: plan "));
    EXPECT_THAT(got.err, HasSubstr("2/2 128x256x128: plan "));
    EXPECT_THAT(got.err, HasSubstr("kept since 20"));
    EXPECT_THAT(got.out, HasSubstr("gemm 64x256x128"));
    const Outcome rows = run({"measure", "gemm", "--suite", suite, "--tuned", "--top", "2", "--out", out()}, environment_);
    ASSERT_EQ(rows.code, 0) << rows.err;
    const auto all = lines();
    ASSERT_EQ(all.size(), 5u);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].at("rank"), int(i - 1) % 2 + 1);
    EXPECT_EQ(run({"report", "suite", out()}, environment_).code, 0);
}

TEST_F(TuneTest, ListsExportsAndDrops) {
    EXPECT_EQ(run({"tune", "list"}, environment_).out, "no choices are kept\n");
    const json row = tuned("64x256x128", environment_);
    EXPECT_THAT(run({"tune", "list"}, environment_).out, HasSubstr("gemm 64x256x128"));
    const std::string file = (folder_ / "choices.json").string();
    ASSERT_EQ(run({"tune", "list", "--json", "--out", file}, environment_).code, 0);
    const json exported = json::parse(std::ifstream(file));
    EXPECT_EQ(JsonSchema("tuned-1.json").faults(exported), "");
    EXPECT_EQ(exported.at("rows"), json::array({row}));
    EXPECT_EQ(run({"cache", "clear"}, environment_).code, 0);
    EXPECT_TRUE(std::filesystem::exists(store())) << "kernels are compiled again, choices would be timed again";
    EXPECT_EQ(run({"tune", "drop"}, environment_).out, "dropped 1 choice\n");
    EXPECT_EQ(run({"tune", "drop"}, environment_).out, "dropped 0 choices\n");
    EXPECT_EQ(run({"tune", "list"}, environment_).out, "no choices are kept\n");
}

TEST_F(TuneTest, AWrongPlanIsNeverChosen) {
    Environment wrong = with_slow_first("128x256x128");
    wrong["FAKE_WRONG_TILE"] = wrong["FAKE_SLOW_TILE"];
    const Outcome got = run({"tune", "gemm", "128x256x128", "--json"}, wrong);
    EXPECT_EQ(got.code, 3);
    EXPECT_THAT(got.err, HasSubstr("wrong"));
    const json row = json::parse(got.out).at("rows").at(0);
    EXPECT_NE(row.at("config"), row.at("first_config"));
}

TEST_F(TuneTest, RefusesInOneLine) {
    const auto refused = [&](const std::vector<std::string>& words, const std::string& says, const Environment& more = {}, int code = 2) {
        const Outcome got = run(words, with(more));
        EXPECT_EQ(got.code, code) << got.err;
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_EQ(got.out, "");
        EXPECT_THAT(got.err, HasSubstr(says));
    };
    refused({"tune", "gemm", "64x256x128", "--plans", "1"}, "--plans 1");
    refused({"tune", "gemm", "64x256x128", "--plans", "many"}, "--plans many");
    refused({"tune", "gemm", "64x256x128", "--filter", "x"}, "--filter needs --suite FILE");
    refused({"tune", "gemm", "--suite", "/nonexistent.toml"}, "/nonexistent.toml");
    refused({"tune", "gemm", "64x256x128", "--suite", "s.toml"}, "exclude each other");
    refused({"tune"}, "tune what?");
    refused({"tune", "gemm", "64x256x128"}, "ROOFTILE_CACHE is off", {{"ROOFTILE_CACHE", "off"}});
    refused({"tune", "gemm", "64x256x128"}, "ROOFTILE_CACHE is ro", {{"ROOFTILE_CACHE", "ro"}});
    refused({"tune", "drop"}, "ROOFTILE_CACHE is off", {{"ROOFTILE_CACHE", "off"}});
    refused({"tune", "gemm", "64x256x128"}, "", {{"ROOFTILE_CUDA_PATH", "/nowhere"}, {"CUDA_VISIBLE_DEVICES", ""}}, 4);
}

}  // namespace
}  // namespace rooftile
