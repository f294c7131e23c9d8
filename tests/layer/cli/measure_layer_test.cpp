// `measure layer` from outside, without a GPU: every request that it cannot run ends in one line.
#include <fstream>

#include <gmock/gmock.h>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

class MeasureLayerVerb : public testing::Test {
  protected:
    /// A config.json with `more` in it.
    std::string config(const std::string& more = "") {
        const std::filesystem::path file = folder_.path() / "config.json";
        std::ofstream(file) << R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
                                   "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000, "hidden_act": "silu",
                                   "rms_norm_eps": 1e-5, "rope_theta": 10000, "torch_dtype": "bfloat16")"
                            << more << "}";
        return file.string();
    }
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
    expect_refused({"--config", config(), "--context", "8", "--prefill", "8"}, "needs --context N");
    expect_refused({"--config", config(), "--context", "0"}, "--context 0: nothing to do");
    expect_refused({"--config", config(), "--context", "9", "--batch", "many"}, "--batch many");
    expect_refused({"--config", config(), "--context", "9", "--rounds", "0"}, "--rounds 0");
    expect_refused({"--config", config(), "--context", "9", "--baseline", "jax"}, "--baseline jax");
    expect_refused({"--config", config(), "--context", "9", "--layer", "2"}, "--layer 2");
    expect_refused({"--config", "/nowhere/config.json", "--context", "9"}, "/nowhere/config.json: no such file");
}

TEST_F(MeasureLayerVerb, NamesWhatIsPlannedOnly) {
    expect_refused(
        {"--config",
         config(R"(, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})"),
         "--context", "9"},
        "quantised weights is planned, not yet run");
}

TEST_F(MeasureLayerVerb, NeedsAGpu) { expect_refused({"--config", config(), "--context", "128"}, "no NVIDIA", 4); }

}  // namespace
}  // namespace rooftile
