// `plan layer` from outside: what it writes, and one line for every wrong request.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

class PlanLayer : public testing::Test {
  protected:
    void SetUp() override {
        config_ = (folder_.path() / "config.json").string();
        std::ofstream(config_) << public_config("Meta-Llama-3-8B");
        for (const char* operation : {"gemm", "fuse", "attention"})
            if (run({"plan", operation, "--help"}).code != 0) GTEST_SKIP() << "skipped: this build has no operation " << operation;
    }
    Outcome layer(std::vector<std::string> more) const {
        std::vector<std::string> arguments = {"plan", "layer", "--config", config_, "--machine", "h200-sxm"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments, without_gpu());
    }
    Folder folder_;
    std::string config_;
};

TEST_F(PlanLayer, WritesDocumentAndPage) {
    const std::string page = (folder_.path() / "layer.html").string(), svg = (folder_.path() / "layer.svg").string();
    const Outcome got = layer({"--batch", "1,16", "--context", "2k..8k", "--json", "--html", page, "--svg", svg});
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_EQ(JsonSchema("layer-1.json").faults(document), "");
    EXPECT_EQ(document.at("cells").size(), 6u);
    EXPECT_EQ(document.at("cells").at(5).at("context"), 8192);
    EXPECT_TRUE(std::filesystem::exists(page));
    EXPECT_TRUE(std::filesystem::exists(svg));
    // The document itself can be drawn later.
    const std::string file = (folder_.path() / "layer.json").string();
    std::ofstream(file) << got.out;
    EXPECT_EQ(run({"report", "pictures", file, "--picture", "layer_cache", "--svg", svg}).code, 0);
}

TEST_F(PlanLayer, EveryCombinationOfNumbersOfAMachine) {
    const Outcome got = layer({"--hardware", "l2.size=25MB..100MB", "--hardware", "dram.bandwidth=2.4,4.8 TB/s", "--json"});
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(nlohmann::json::parse(got.out).at("cells").size(), 6u);
}

TEST_F(PlanLayer, WhatIsGivenTwiceIsPlannedOnce) {
    const Outcome got = layer({"--prefill", "0,0.5,0", "--batch", "2,2", "--hardware", "l2.size=25MB,25MB,50MB", "--json"});
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(nlohmann::json::parse(got.out).at("cells").size(), 4u);
    EXPECT_EQ(layer({"--prefill", "0,0"}).code, 0);
}

// 32 cells that prefill 1024 tokens and more; and as many that decode, where no product is large.
TEST_F(PlanLayer, ALargeGridSaysWhatItDidNotFollow) {
    const auto grid = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--batch", "1..4..1", "--context", "1k..8k..1k"});
        const Outcome got = layer(more);
        EXPECT_EQ(got.code, 0) << got.err;
        return got.out;
    };
    const auto prefill = nlohmann::json::parse(grid({"--prefill", "1", "--json"})), decode = nlohmann::json::parse(grid({"--json"}));
    EXPECT_EQ(JsonSchema("layer-1.json").faults(prefill), "");
    EXPECT_EQ(prefill.at("cells").size(), 32u);
    EXPECT_EQ(prefill.at("closed_form_above_elements"), 1 << 26);
    EXPECT_TRUE(decode.at("closed_form_above_elements").is_null());
    const char* said = "of more than 67108864 elements: DRAM bytes by a closed form";
    EXPECT_NE(grid({"--prefill", "1"}).find(said), std::string::npos);
    EXPECT_EQ(grid({}).find(said), std::string::npos);
}

TEST_F(PlanLayer, ANumberThatDoesNotExistIsNamedAsItWasGiven) {
    EXPECT_EQ(layer({"--hardware", "nokey=1"}).err.rfind("rooftile: --hardware nokey", 0), 0u);
}

TEST_F(PlanLayer, WrongRequestsEndInOneLine) {
    const std::vector<std::vector<std::string>> requests = {{"--batch", "0"},
                                                            {"--batch", "x"},
                                                            {"--context", "8..4"},
                                                            {"--prefill", "1.5"},
                                                            {"--prefill", "0,,1"},
                                                            {"--prefill", "0.5 us"},
                                                            {"--tp", "3"},
                                                            {"--tp", "16"},
                                                            {"--layer", "32"},
                                                            {"--layer", "-1"},
                                                            {"--hardware", "l2.size"},
                                                            {"--hardware", "l2.size=1..2MB", "--hardware", "l2.size=4MB"},
                                                            {"--hardware", "x=1,2"},
                                                            {"--hardware", "l2.size=1s,2s"},
                                                            {"--batch", "1..4096..20", "--context", "1k..100k..500"},
                                                            {"--batch", "64k", "--context", "16M", "--prefill", "1"}};
    for (const auto& request : requests) {
        const Outcome got = layer(request);
        EXPECT_EQ(got.code, 2) << request[0] << " " << request[1];
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_EQ(got.out, "");
    }
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"plan", "layer"},
                                                      {"plan", "layer", "--config", "/nowhere/config.json"},
                                                      {"plan", "layer", "--config", folder_.path().string()}}) {
        const Outcome got = run(arguments, without_gpu());
        EXPECT_EQ(got.code, 2);
        EXPECT_EQ(got.error_lines(), 1) << got.err;
    }
}

}  // namespace
}  // namespace rooftile
