// `measure units` from outside, on a driver without a GPU: every point is verified, timed and counted, and what is wrong is said.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

class MeasureUnits : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(ROOFTILE_FAKE_CUDA "/libcuda.so.1")) GTEST_SKIP() << "skipped: no fake driver";
        environment_ = plain_environment();
        environment_["CUDA_HOME"] = ROOFTILE_TEST_CUDA;
        environment_["ROOFTILE_CACHE_DIR"] =
            (std::filesystem::temp_directory_path() / ("rooftile-suite-cache-" + std::to_string(getuid()))).string();
        environment_["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    }
    Outcome measured(std::vector<std::string> more, const Environment& also = {}) const {
        std::vector<std::string> arguments = {"measure", "units", "--most", "4096"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        Environment all = environment_;
        for (const auto& [name, value] : also) all[name] = value;
        return run(arguments, all);
    }
    Environment environment_;
};

TEST_F(MeasureUnits, EveryKernelAtEverySizeFromBothPlaces) {
    for (const char* type : {"bf16", "fp32"}) {
        const Outcome got = measured({"--type", type, "--json"});
        ASSERT_EQ(got.code, 0) << got.err;
        const auto document = nlohmann::json::parse(got.out);
        EXPECT_EQ(JsonSchema("units-1.json").faults(document), "");
        EXPECT_EQ(document.at("type"), type);
        EXPECT_EQ(document.at("kernels").size(), 7u);
        int cold = 0, held = 0, counted = 0;
        for (const auto& point : document.at("points")) {
            (point.at("place") == "dram" ? cold : held)++;
            EXPECT_TRUE(point.at("right").get<bool>());
            EXPECT_GT(point.at("time_us").get<double>(), 0);
            EXPECT_GT(point.at("predicted_us").get<double>(), 0);
            EXPECT_EQ(point.at("launches").get<int>() % point.at("sets").get<int>(), 0);
            // What rotates is more than the device's L2 of 1 MiB, twice.
            if (point.at("place") == "dram") { EXPECT_GE(point.at("sets").get<double>() * point.at("x_bytes").get<double>(), 2 << 20); }
            counted += point.at("counters").is_object();
        }
        EXPECT_EQ(cold, 5 * 7);  // 16, 64, 256, 1024 and 4096 KiB
        // Half of 1 MiB holds 16 and 64 KiB of each, and 256 KiB of all but the product.
        EXPECT_EQ(held, 2 * 7 + 6);
        EXPECT_EQ(counted, 3 * 7);
        EXPECT_EQ(document.at("chip"), "GH100");
    }
}

TEST_F(MeasureUnits, AWrongResultIsNotTimedAndFails) {
    const Outcome got = measured({"--json"}, {{"FAKE_WRONG_UNIT", "5"}});
    EXPECT_EQ(got.code, 3);
    EXPECT_NE(got.err.find("rms_norm: the result is wrong"), std::string::npos) << got.err;
    for (const auto& point : nlohmann::json::parse(got.out).at("points")) {
        EXPECT_EQ(point.at("right").get<bool>(), point.at("kernel") != "rms_norm");
        EXPECT_EQ(point.at("time_us").is_null(), point.at("kernel") == "rms_norm");
    }
    const Outcome text = measured({}, {{"FAKE_WRONG_UNIT", "5"}});
    EXPECT_NE(text.out.find("wrong"), std::string::npos) << text.out;
}

TEST_F(MeasureUnits, WithoutCountersItSaysWhy) {
    const Outcome got = measured({"--json"}, {{"FAKE_COUNTERS_DENIED", "1"}});
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_TRUE(document.at("chip").is_null());
    ASSERT_EQ(document.at("notes").size(), 1u);
    EXPECT_NE(document.at("notes")[0].get<std::string>().find("no counters"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::parse(measured({"--json", "--no-counters"}).out).at("notes").empty());
}

TEST_F(MeasureUnits, DrawsItsPage) {
    const Folder folder;
    const std::string page = (folder.path() / "units.html").string();
    const Outcome got = measured({"--html", page});
    ASSERT_EQ(got.code, 0) << got.err;
    for (const char* words : {"Short kernels", "from DRAM", "in L2", "SiLU fast /", "instructions"})
        EXPECT_NE(got.out.find(words), std::string::npos) << words << "\n" << got.out;
    std::ifstream file(page);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const char* words : {"RMSNorm", "What warps wait for", "</svg>"}) EXPECT_NE(text.find(words), std::string::npos) << words;
}

// 512 MiB in 100 us are 5369 GB/s; the driver here knows no clock of its memory, so there is no peak.
TEST_F(MeasureUnits, TheProbeOfDeviceMemoryAsksEveryQuestion) {
    const Folder folder;
    const std::string data = (folder.path() / "dram.json").string();
    const Outcome got = run({"machine", "probe", "--only", "dram_ceilings", "--data", data}, environment_);
    ASSERT_EQ(got.code, 0) << got.err << got.out;
    const auto document = nlohmann::json::parse(std::ifstream(data));
    EXPECT_EQ(JsonSchema("probe-1.json").faults(document), "");
    std::map<std::string, double> mixes;
    int blocks = 0;
    for (const auto& point : document.at("points")) {
        EXPECT_TRUE(point.contains("counted_read_bytes")) << point;
        if (point.at("series") == "dram.mix") mixes[point.at("label")] = point.at("read_share");
        blocks += point.at("series") == "dram.blocks";
        const bool apart = point.contains("stride_bytes") && point.at("stride_bytes") != point.at("block_bytes");
        EXPECT_NEAR(point.at("gbps").get<double>(), point.at("asked_bytes").get<double>() / (apart ? 200e3 : 100e3), 1e-3) << point;
        EXPECT_NEAR(point.at("asked_bytes").get<double>(), 512 << 20, 24 << 10) << point;
    }
    const std::map<std::string, double> expected = {{"1:0", 1},      {"3:1", 0.75}, {"2:1", 2 / 3.}, {"1:1", 0.5},
                                                    {"1:2", 1 / 3.}, {"1:3", 0.25}, {"0:1", 0},      {"1:1 by CTA", 0.5}};
    ASSERT_EQ(mixes.size(), expected.size());
    for (const auto& [label, share] : expected) EXPECT_NEAR(mixes.at(label), share, 1e-5) << label;
    EXPECT_EQ(blocks, 1 + 7 + 6);
}

TEST(MeasureUnitsRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"measure", "units", "--type", "fp16"}, {"--type", "bf16", "fp32"});
    expect_refused({"measure", "units", "--most", "8"}, {"--most", "16"});
    expect_refused({"measure", "units", "--least", "24"}, {"--least", "multiples of 16"});
    expect_refused({"measure", "units", "--least", "64", "--most", "16"}, {"--most", "64 KiB"});
}

}  // namespace
}  // namespace rooftile
