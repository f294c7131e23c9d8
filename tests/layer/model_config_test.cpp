// Published configurations as numbers, and what is refused of them.
#include "rooftile/layer/model_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rooftile/error.hpp"
#include "rooftile/layer/parts.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// All weights of a model, from the parts of its layers and ends, in 16 bits each.
double parameters(ModelConfig model) {
    model.quantization.reset();
    double bytes = 0;
    for (const LayerKind& kind : model.layers) bytes += layer_weight_bytes(model, kind);
    const double embeddings = double(model.vocab * model.hidden);
    return bytes / 2 + embeddings * (model.tied_embeddings ? 1 : 2) + double(model.hidden);
}

TEST(ModelConfig, PublicModelsHaveTheParametersTheyAreSaidToHave) {
    const auto models = public_models();
    ASSERT_GE(models.size(), 50u);
    for (const PublicModel& each : models) {
        const ModelConfig model = model_config(each.config, each.name);
        EXPECT_NEAR(parameters(model) / 1e9 / each.billions, 1, 0.004) << each.name << " " << parameters(model) / 1e9;
    }
}

TEST(ModelConfig, Llama3OfEightBillions) {
    const ModelConfig m = public_model("Meta-Llama-3-8B");
    EXPECT_EQ(m.type, "bf16");
    EXPECT_EQ(m.head_dim, 128);
    EXPECT_EQ(m.layers.size(), 32u);
    EXPECT_EQ(m.usual_layer(), 0);
    EXPECT_EQ(m.layers_alike({}), 32);
    // 2 (4096 (4096 + 2 1024) + 4096 4096 + 3 4096 14336) of matrices and 2 2 4096 of norms.
    EXPECT_EQ(layer_weight_bytes(m, {}), 436207616.0 + 16384);
    EXPECT_EQ(cache_bytes_per_token(m), 4096);
}

TEST(ModelConfig, WhatFamiliesSayWithoutAField) {
    EXPECT_TRUE(public_model("Qwen2.5-7B").qkv_bias);
    EXPECT_EQ(public_model("Qwen2.5-7B").layers[27].window, 0) << "use_sliding_window is false";
    EXPECT_TRUE(public_model("Qwen3-8B").query_key_norms);
    EXPECT_EQ(public_model("Qwen3-0.6B").head_dim, 128) << "not 1024 / 16";
    EXPECT_EQ(public_model("Mistral-7B-v0.1").layers[0].window, 4096);
    EXPECT_EQ(public_model("Mistral-7B-v0.3").layers[0].window, 0);
    const ModelConfig gemma = public_model("gemma-2b");
    EXPECT_TRUE(gemma.unit_offset_norms);
    EXPECT_TRUE(gemma.tied_embeddings);
    EXPECT_EQ(gemma.activation, "gelu_tanh");
}

TEST(ModelConfig, LayersThatDiffer) {
    // Every second layer of Gemma 2 sees all keys, every sixth of Gemma 3.
    const ModelConfig two = public_model("gemma-2-27b-it");
    EXPECT_EQ(two.layers_alike({.window = 4096, .experts = false}), 23);
    EXPECT_EQ(two.layers[0].window, 4096);
    EXPECT_EQ(two.layers[1].window, 0);
    EXPECT_DOUBLE_EQ(two.query_scale, 1 / 12.0);
    EXPECT_EQ(two.score_cap, 50);
    const ModelConfig three = public_model("gemma-3-4b-it");  // its file leaves out heads, vocabulary and head_dim
    EXPECT_EQ(three.heads, 8);
    EXPECT_EQ(three.head_dim, 256);
    EXPECT_EQ(three.layers_alike({}), 5);
    EXPECT_EQ(three.usual_layer(), 0);
    EXPECT_EQ(three.layers[5].window, 0);
    // DeepSeek-V3's first three layers have no experts.
    const ModelConfig deep = public_model("DeepSeek-V3");
    EXPECT_EQ(deep.layers_alike({.window = 0, .experts = true}), 58);
    EXPECT_EQ(deep.usual_layer(), 3);
    EXPECT_EQ(deep.experts->shared_intermediate, 2048);
    EXPECT_EQ(cache_bytes_per_token(deep), 2 * (512 + 64));
    ASSERT_TRUE(deep.quantization);
    EXPECT_EQ(deep.quantization->group, 128);
    // A layer_types of one's own goes before a pattern.
    Json config = Json::parse(public_config("gemma-3-1b-it"));
    config["num_hidden_layers"] = 2;
    config["layer_types"] = {"full_attention", "sliding_attention"};
    const ModelConfig own = model_config(config.dump(), "own");
    EXPECT_EQ(own.layers[0].window, 0);
    EXPECT_EQ(own.layers[1].window, 512);
}

TEST(ModelConfig, RotaryEmbeddingsOfOlderAndNewerFiles) {
    EXPECT_EQ(public_model("Meta-Llama-3-8B").rope_theta, 500000);
    EXPECT_EQ(public_model("Meta-Llama-3-8B").rope_scaling.kind, "");
    EXPECT_EQ(public_model("Llama-3.1-8B").rope_scaling.kind, "llama3");
    EXPECT_EQ(public_model("DeepSeek-V3").rope_scaling.kind, "yarn");
    EXPECT_EQ(public_model("Phi-4-mini-instruct").rotary_share, 0.75);
    Json config = Json::parse(public_config("Meta-Llama-3-8B"));
    config.erase("rope_theta"), config.erase("rope_scaling");
    EXPECT_EQ(model_config(config.dump(), "own").rope_theta, 10000);
    config["rope_parameters"] = {{"rope_theta", 1e6}, {"rope_type", "yarn"}, {"partial_rotary_factor", 0.5}};
    const ModelConfig newer = model_config(config.dump(), "own");
    EXPECT_EQ(newer.rope_theta, 1e6);
    EXPECT_EQ(newer.rope_scaling.kind, "yarn");
    EXPECT_EQ(newer.rope_scaling.factor, 0) << "nothing says it: planned, not run";
    EXPECT_EQ(newer.rotary_share, 0.5);
    config["rope_parameters"] = {{"full_attention", {{"rope_theta", 2e6}, {"rope_type", "default"}}},
                                 {"sliding_attention", {{"rope_theta", 1e4}}}};
    EXPECT_EQ(model_config(config.dump(), "own").rope_theta, 2e6);
}

TEST(ModelConfig, Quantisation) {
    const ModelConfig awq = public_model("Meta-Llama-3.1-8B-Instruct-AWQ-INT4");
    ASSERT_TRUE(awq.quantization);
    EXPECT_EQ(awq.quantization->bits, 4);
    EXPECT_TRUE(awq.quantization->zero_points);
    // 218103808 weights of half a byte; for each 128 of them a scale of 2 bytes and a zero point of half a byte; norms of 16 bits.
    EXPECT_DOUBLE_EQ(layer_weight_bytes(awq, {}), 218103808 / 2.0 + 218103808 / 128.0 * 2.5 + 16384);
    EXPECT_FALSE(public_model("Llama-2-7B-GPTQ").quantization->zero_points);
}

TEST(ModelConfig, WhateverAFieldSaysItIsReadOrRefused) {
    const Json values[] = {nullptr, true,           -1,           0, 1, 3, 7, std::uint64_t{1} << 63, 1e300, 0.5, "", "x", Json::array(),
                           {1, 2},  Json::object(), {{"type", 3}}};
    const std::set<std::string> tried_once = {"Meta-Llama-3-8B", "Qwen1.5-MoE-A2.7B", "gemma-2-9b-it",
                                              "gemma-3-27b-it",  "DeepSeek-V3",       "Llama-2-7B-GPTQ"};
    int read = 0, refused = 0;
    for (const PublicModel& each : public_models()) {
        if (!tried_once.contains(each.name)) continue;
        const Json config = Json::parse(each.config);
        for (const auto& [key, value] : config.items())
            for (const Json& other : values) {
                Json changed = config;
                changed[key] = other;
                try {
                    const ModelConfig model = model_config(changed.dump(), "config.json");
                    for (const LayerStep& step :
                         {LayerStep{.decode = 2, .prefill = 1, .context = 64}, LayerStep{.decode = 1 << 16, .context = 1 << 24}})
                        for (const LayerKind& kind : {model.layers.front(), model.layers.back()})
                            for (const LayerPart& part : layer_parts(model, kind, step)) EXPECT_GT(part.bytes(), 0) << part.name;
                    ++read;
                } catch (const RequestError& error) {
                    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
                    ++refused;
                }
            }
    }
    EXPECT_GT(read, 300);
    EXPECT_GT(refused, 300);
}

/// What the one line says of a configuration of Llama with another value under `key`; null: without it.
std::string refusal_of(const char* model, const char* key, const Json& value) {
    Json config = Json::parse(public_config(model));
    if (value.is_null()) config.erase(key);
    else config[key] = value;
    try {
        model_config(config.dump(), "config.json");
    } catch (const RequestError& error) { return error.what(); }
    return "taken";
}

TEST(ModelConfig, RefusalsNameTheFieldAndItsValue) {
    const char* llama = "Meta-Llama-3-8B";
    EXPECT_THAT(refusal_of(llama, "model_type", "mamba"),
                AllOf(HasSubstr("model_type is \"mamba\"; accepted: llama, mistral"), HasSubstr("deepseek_v3")));
    EXPECT_EQ(refusal_of(llama, "hidden_size", nullptr), "config.json: hidden_size is missing; it is needed of a model of this type");
    EXPECT_EQ(refusal_of(llama, "hidden_size", -4), "config.json: hidden_size is -4; accepted: a whole number from 1 to 1048576");
    EXPECT_THAT(refusal_of(llama, "hidden_size", "4096"), HasSubstr("hidden_size is \"4096\""));
    EXPECT_THAT(refusal_of(llama, "hidden_size", 4097),
                HasSubstr("hidden_size is 4097; accepted: a multiple of num_attention_heads, 32"));
    EXPECT_THAT(refusal_of(llama, "num_key_value_heads", 5),
                HasSubstr("num_key_value_heads is 5; accepted: a divisor of num_attention_heads, 32"));
    EXPECT_THAT(refusal_of(llama, "torch_dtype", "float32"), HasSubstr("torch_dtype is \"float32\"; accepted: bfloat16 or float16"));
    EXPECT_THAT(refusal_of(llama, "torch_dtype", nullptr), HasSubstr("torch_dtype is missing"));
    EXPECT_THAT(refusal_of(llama, "hidden_act", "swish7"), HasSubstr("hidden_act is \"swish7\""));
    EXPECT_THAT(refusal_of(llama, "mlp_bias", true), HasSubstr("mlp_bias is true; accepted: false"));
    EXPECT_THAT(refusal_of(llama, "rms_norm_eps", "x"), HasSubstr("rms_norm_eps is \"x\""));
    EXPECT_THAT(refusal_of(llama, "rope_scaling", {{"rope_type", "spiral"}}),
                HasSubstr("config.json: rope_scaling: rope_type is \"spiral\""));
    EXPECT_THAT(refusal_of(llama, "rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}}),
                HasSubstr("rope_scaling: factor is 0.5; accepted: a number from 1 on"));
    EXPECT_THAT(refusal_of(llama, "rope_scaling",
                           {{"rope_type", "llama3"}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
                HasSubstr("high_freq_factor is 4; accepted: a number above low_freq_factor, 4"));
    EXPECT_THAT(refusal_of(llama, "rope_scaling", {{"rope_type", "yarn"}, {"beta_fast", 1}}),
                HasSubstr("beta_fast is 1; accepted: a number above beta_slow, 1"));
    EXPECT_THAT(refusal_of(llama, "quantization_config", {{"quant_method", "exl2"}}),
                HasSubstr("quantization_config: quant_method is \"exl2\""));
    EXPECT_THAT(refusal_of("DeepSeek-V3", "kv_lora_rank", nullptr), HasSubstr("kv_lora_rank is missing"));
    EXPECT_THAT(refusal_of("Mixtral-8x7B-v0.1", "num_experts_per_tok", 9),
                HasSubstr("num_experts_per_tok is 9; accepted: a whole number from 1 to 8"));
    EXPECT_THAT(refusal_of("gemma-3-1b-it", "layer_types", {"full_attention"}),
                HasSubstr("layer_types is [\"full_attention\"]; accepted: a list of 26"));
    for (const char* text : {"", "{", "[1]", "7", "{\"model_type\": 3}", "{\"text_config\": 3}"}) {
        try {
            model_config(text, "config.json");
            ADD_FAILURE() << text;
        } catch (const RequestError& error) { EXPECT_THAT(error.what(), AllOf(HasSubstr("config.json"), Not(HasSubstr("\n")))) << text; }
    }
    // What a file says at great length is cut.
    EXPECT_LT(refusal_of(llama, "model_type", std::string(5000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace rooftile
