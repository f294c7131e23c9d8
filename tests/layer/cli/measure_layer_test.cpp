// `measure layer` from outside: every request that it cannot run ends in one line; on a driver without a GPU (tests/fake/) all of its
// document, whose kernels compute nothing.
#include <fstream>

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/gemm/cli/fake_gpu.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

/// A config.json in `folder` with `more` in it.
std::string small_config(const std::filesystem::path& folder, const std::string& more = "") {
    const std::filesystem::path file = folder / "config.json";
    std::ofstream(file)
        << R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
                                   "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000, "hidden_act": "silu",
                                   "rms_norm_eps": 1e-5, "rope_theta": 10000, "torch_dtype": "bfloat16")"
        << more << "}";
    return file.string();
}

class MeasureLayerVerb : public testing::Test {
  protected:
    std::string config(const std::string& more = "") const { return small_config(folder_.path(), more); }
    static void expect_refused(const std::vector<std::string>& flags, const char* says, int code = 2) {
        std::vector<std::string> arguments = {"measure", "layer"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        Environment environment = without_gpu();
        environment.erase("ROOFTILE_CUDA_PATH");  // another test's stand-in for the driver has a GPU
        const Outcome got = run(arguments, environment);
        EXPECT_EQ(got.code, code) << got.err;
        EXPECT_THAT(got.err, HasSubstr(says));
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_EQ(got.out, "");
    }
    Folder folder_;
};

TEST_F(MeasureLayerVerb, RefusesInOneLine) {
    expect_refused({}, "needs --config FILE");
    expect_refused({"--config", config()}, "needs --context N");
    expect_refused({"--config", config(), "--context", "0"}, "--context 0: nothing to do");
    expect_refused({"--config", config(), "--context", "9", "--batch", "many"}, "--batch many");
    expect_refused({"--config", config(), "--context", "9", "--rounds", "0"}, "--rounds 0");
    expect_refused({"--config", config(), "--context", "9", "--baseline", "jax"}, "--baseline jax");
    expect_refused({"--config", config(), "--context", "9", "--layer", "2"}, "--layer 2");
    expect_refused({"--config", "/nowhere/config.json", "--context", "9"}, "/nowhere/config.json: no such file");
}

TEST_F(MeasureLayerVerb, NamesWhatIsPlannedOnly) {
    expect_refused({"--config", config(), "--context", "8", "--prefill", "8"},
                   "--context with --prefill: a step that prefills some sequences and decodes others is "
                   "planned, not yet run");
    expect_refused({"--config", config(), "--context", "8", "--tp", "2"},
                   "--tp 2: a layer that several GPUs share is planned, not yet run; rooftile plan layer "
                   "--tp 2 says what it takes");
    expect_refused({"--config", config(), "--context", "8", "--tp", "9"}, "--tp 9");
    expect_refused({"--config", config(R"(, "rope_scaling": {"type": "su"})"), "--context", "9"},
                   "angles scaled by su is planned, not yet run");
    expect_refused(
        {"--config", config(R"(, "rope_scaling": {"type": "yarn", "factor": 4})"), "--context", "9"},
        "angles scaled by yarn, whose original_max_position_embeddings is missing, is planned, not yet run");
    expect_refused(
        {"--config",
         config(R"(, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})"),
         "--context", "9"},
        "quantised weights is planned, not yet run");
}

class CountedLayer : public FakeGpuTest {
  protected:
    CountedLayer() : FakeGpuTest("layer", "64x256x128") {}
    Outcome measure(const std::vector<std::string>& more, const Environment& environment = {}) const {
        std::vector<std::string> words = {"measure",    "layer", "--config", small_config(folder_),
                                          "--context",  "64",    "--batch",  "2",
                                          "--baseline", "none",  "--rounds", "1",
                                          "--counters"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, with(environment));
    }
};

TEST_F(CountedLayer, EveryKernelAndTheLayer) {
    const Outcome got = measure({"--json"});
    ASSERT_EQ(got.code, 0) << got.err;
    const nlohmann::json document = nlohmann::json::parse(got.out), &cell = document.at("cells").at(0),
                         &measured = cell.at("measured");
    EXPECT_EQ(JsonSchema("layer-1.json").faults(document), "");
    ASSERT_EQ(cell.at("kernels").size(), 8u);
    for (const auto& kernel : cell.at("kernels")) {
        EXPECT_EQ(kernel.at("counters").at("chip"), "GH100") << kernel.at("name");
        EXPECT_GE(kernel.at("counters").at("launches"), 8);
        EXPECT_GT(kernel.at("counters").at("time_us"), 0);
        EXPECT_GT(kernel.at("measured_us").at("median"), 0);
    }
    // Of a layer's launches together: as long as its kernels one by one.
    double sum = 0;
    for (const auto& kernel : cell.at("kernels")) sum += kernel.at("counters").at("time_us").get<double>();
    EXPECT_NEAR(measured.at("counters").at("time_us").get<double>() / sum, 1, 0.2);
    // This chip counts the same of every range, so that nothing is left of DRAM's without what reading all of L2 takes.
    EXPECT_EQ(measured.at("kernels_dram_bytes"), 0);
    EXPECT_EQ(measured.at("same_bits"), true);
}

TEST_F(CountedLayer, WhoMayNotCountHearsIt) {
    const Outcome got = measure({"--no-time"}, {{"FAKE_COUNTERS_DENIED", "1"}});
    EXPECT_EQ(got.code, 7) << got.err;
    EXPECT_EQ(got.out, "");
    EXPECT_THAT(got.err, HasSubstr("hardware counters are not permitted here"));
}

TEST_F(MeasureLayerVerb, NeedsAGpu) { expect_refused({"--config", config(), "--context", "128"}, "no NVIDIA", 4); }

}  // namespace
}  // namespace rooftile
