// A layer's kernels against counts by hand, and against what each operation says of the request.
#include "rooftile/layer/parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<LayerPart>& parts) {
    std::vector<std::string> out;
    for (const LayerPart& part : parts) out.push_back(part.name);
    return out;
}

std::vector<LayerPart> parts_of(const std::string& model, const LayerStep& step) {
    const ModelConfig config = public_model(model);
    return layer_parts(config, config.layers[std::size_t(config.usual_layer())], step);
}

const LayerPart& named(const std::vector<LayerPart>& parts, const std::string& name) {
    for (const LayerPart& part : parts)
        if (part.name == name) return part;
    throw std::runtime_error("no part " + name);
}

// A row of the table comes once from DRAM at least, however many tokens ask for it.
TEST(LayerParts, NoMoreOfATableIsReadThanItHas) {
    const ModelConfig model = public_model("Meta-Llama-3-8B");
    EXPECT_EQ(named(end_parts(model, {.decode = 0, .prefill = 64, .context = 131072}), "embedding").bytes(TensorKind::weights), 128256.0 * 4096 * 2);
    EXPECT_EQ(named(end_parts(model, {.decode = 64, .prefill = 0, .context = 2048}), "embedding").bytes(TensorKind::weights), 64.0 * 4096 * 2);
}

TEST(LayerParts, ADenseLayerIsEightKernels) {
    const auto parts = parts_of("Meta-Llama-3-8B", {.decode = 64, .prefill = 0, .context = 2048});
    EXPECT_THAT(names_of(parts), ElementsAre("norm_attention", "qkv", "rotary_append", "attention", "o", "norm_mlp", "gate_up", "down"));
    EXPECT_EQ(named(parts, "qkv").request.text("n"), "6144");
    EXPECT_EQ(named(parts, "gate_up").request.text("n"), "28672");
    EXPECT_EQ(named(parts, "gate_up").request.text("pairs"), "interleaved");
    EXPECT_EQ(named(parts, "down").request.text("epilogue"), "d = acc + r");
    // 64 sequences x 2048 keys x 8 heads x 128 elements x 2 bytes, keys and values.
    EXPECT_EQ(named(parts, "attention").bytes(TensorKind::cache), 64.0 * 2048 * 4096);
    // One new token a sequence.
    EXPECT_EQ(named(parts, "rotary_append").bytes(TensorKind::cache), 64.0 * 4096);
    // 32 heads x 2048 keys x (128 + 128) x 2.
    EXPECT_EQ(named(parts, "attention").flops, 64.0 * 32 * 2048 * 256 * 2);
    EXPECT_EQ(named(parts, "gate_up").flops, 2.0 * 64 * 28672 * 4096);
    EXPECT_EQ(named(parts, "o").reads.back().name, "x");
    EXPECT_EQ(named(parts, "down").reads.back().name, "x_attention");
}

TEST(LayerParts, PrefillAndMixedSteps) {
    const auto prefill = parts_of("Meta-Llama-3-8B", {.decode = 0, .prefill = 8, .context = 1024});
    EXPECT_EQ(named(prefill, "qkv").request.text("m"), "8192");
    EXPECT_EQ(named(prefill, "attention").request.text("mask"), "causal");
    EXPECT_EQ(named(prefill, "attention").request.text("q"), "1024");
    // Pairs below the diagonal and on it: 1024 1025 / 2.
    EXPECT_EQ(named(prefill, "attention").flops, 8.0 * 32 * (1024.0 * 1025 / 2) * 256 * 2);
    const auto mixed = parts_of("Meta-Llama-3-8B", {.decode = 3, .prefill = 1, .context = 1024});
    EXPECT_EQ(named(mixed, "qkv").request.text("m"), "1027");
    EXPECT_EQ(named(mixed, "attention").request.text("batch"), "3");
    const LayerPart& second = named(mixed, "attention_prefill");
    EXPECT_EQ(second.reads[0].offset_bytes, 3 * 4096 * 2.0);
    EXPECT_EQ(second.reads[1].name, "k_cache");
    EXPECT_EQ(second.reads[1].offset_bytes, 3 * 1024 * 1024 * 2.0);
}

TEST(LayerParts, AWindowIsWhatADecodedTokenReads) {
    const LayerPart part = named(parts_of("Mistral-7B-v0.1", {.decode = 2, .prefill = 0, .context = 16384}), "attention");
    EXPECT_EQ(part.request.text("mask"), "window:4096");
    EXPECT_EQ(part.bytes(TensorKind::cache), 2.0 * 4096 * 4096);
    EXPECT_FALSE(named(parts_of("Mistral-7B-v0.1", {.decode = 2, .prefill = 0, .context = 4096}), "attention").request.has("mask"));
    // Of 8 queries and a window of 3 keys: 1 + 2 + 3 6 pairs.
    ModelConfig model = public_model("Mistral-7B-v0.1");
    const auto parts = layer_parts(model, {.window = 3, .experts = false}, {.decode = 0, .prefill = 1, .context = 8});
    EXPECT_EQ(named(parts, "attention").flops, 32.0 * 21 * 256 * 2);
}

TEST(LayerParts, Experts) {
    const auto parts = parts_of("Mixtral-8x7B-v0.1", {.decode = 1, .prefill = 0, .context = 100});
    EXPECT_THAT(names_of(parts), ElementsAre("norm_attention", "qkv", "rotary_append", "attention", "o", "norm_mlp", "router", "route",
                                             "gather", "experts_gate_up", "experts_down", "combine"));
    EXPECT_EQ(named(parts, "experts_gate_up").request.text("groups"), "2x1,6x0");
    EXPECT_EQ(named(parts, "experts_gate_up").bytes(TensorKind::weights), 2.0 * 28672 * 4096 * 2);
    // 64 tokens miss an expert with probability 0.75^64: all eight have 16 rows.
    EXPECT_EQ(named(parts_of("Mixtral-8x7B-v0.1", {.decode = 64, .prefill = 0, .context = 100}), "experts_down").request.text("groups"),
              "8x16");
    // 8 of 128 for each of 16 tokens: 128 (1 - (15/16)^16) = 82.4 experts share 128 rows.
    EXPECT_EQ(named(parts_of("Qwen3-30B-A3B", {.decode = 16, .prefill = 0, .context = 100}), "experts_down").request.text("groups"),
              "46x2,36x1,46x0");
    const auto shared = parts_of("Qwen1.5-MoE-A2.7B", {.decode = 16, .prefill = 0, .context = 100});
    EXPECT_EQ(named(shared, "router").request.text("n"), "64") << "60 experts and the shared one's gate, by eights";
    EXPECT_EQ(named(shared, "shared_down").request.text("epilogue"), "d = acc * sigmoid(g) + r");
    EXPECT_EQ(named(shared, "combine").reads.back().name, "shared_out");
}

TEST(LayerParts, LatentAttention) {
    const auto decode = parts_of("DeepSeek-V2", {.decode = 4, .prefill = 0, .context = 1000});
    EXPECT_EQ(named(decode, "latent_down").request.text("n"), "2112");  // 1536 + 512 + 64
    EXPECT_EQ(named(decode, "attention").request.text("dim"), "576");
    EXPECT_EQ(named(decode, "attention").request.text("latent"), "on");
    EXPECT_EQ(named(decode, "attention").request.text("scale"), "0.0721688");  // 1 / sqrt(128 + 64)
    EXPECT_EQ(named(decode, "attention").bytes(TensorKind::cache), 4.0 * 1000 * 576 * 2);
    EXPECT_EQ(named(decode, "v_up").reads[1].offset_bytes, 128 * 512 * 2.0);
    const auto prefill = parts_of("DeepSeek-V2", {.decode = 0, .prefill = 1, .context = 1000});
    EXPECT_EQ(named(prefill, "kv_up").request.text("n"), "32768");  // 128 heads x (128 + 128)
    EXPECT_EQ(named(prefill, "attention").request.text("dim"), "192");
    EXPECT_EQ(named(parts_of("DeepSeek-V2-Lite", {.decode = 1, .prefill = 0, .context = 10}), "latent_down").request.text("n"),
              "3648");  // 16 192 + 576
}

TEST(LayerParts, SeveralGpusShareALayer) {
    const auto one = parts_of("Meta-Llama-3-8B", {.decode = 16, .prefill = 0, .context = 2048});
    const auto eight = parts_of("Meta-Llama-3-8B", {.decode = 16, .prefill = 0, .context = 2048, .tp = 8});
    EXPECT_THAT(names_of(eight), ElementsAre("norm_attention", "qkv", "rotary_append", "attention", "o", "all_reduce_attention",
                                             "norm_mlp", "gate_up", "down", "all_reduce_mlp"));
    EXPECT_EQ(named(eight, "all_reduce_mlp").exchanged_bytes, 16 * 4096 * 2.0);
    for (const char* name : {"qkv", "o", "gate_up", "down"})
        EXPECT_EQ(named(eight, name).bytes(TensorKind::weights) * 8, named(one, name).bytes(TensorKind::weights)) << name;
    EXPECT_EQ(named(eight, "attention").bytes(TensorKind::cache) * 8, named(one, "attention").bytes(TensorKind::cache));
    // One head of keys is fewer than two GPUs: both have it.
    EXPECT_EQ(named(parts_of("gemma-2b", {.decode = 1, .prefill = 0, .context = 100, .tp = 2}), "attention").request.text("kv_heads"),
              "1");
    EXPECT_THROW(parts_of("Qwen2.5-7B", {.decode = 1, .prefill = 0, .context = 100, .tp = 8}), RequestError) << "28 heads";
    ModelConfig six = public_model("Meta-Llama-3-8B");
    six.heads = 24, six.kv_heads = 6;
    EXPECT_THROW(layer_parts(six, six.layers[0], {.decode = 1, .prefill = 0, .context = 100, .tp = 4}), RequestError) << "6 heads of keys";
}

/// Every request is one that its operation takes, and every tensor of the part is one of the operation's, of as many bytes.
TEST(LayerParts, AgreeWithTheirOperations) {
    const LayerStep steps[] = {{.decode = 16, .prefill = 0, .context = 256},
                               {.decode = 0, .prefill = 2, .context = 512},
                               {.decode = 3, .prefill = 1, .context = 256},
                               {.decode = 4, .prefill = 0, .context = 128, .tp = 2}};
    std::set<std::string> refused;
    int compared = 0;
    for (const PublicModel& each : public_models()) {
        const ModelConfig model = model_config(each.config, each.name);
        if (model.heads % 2 != 0) continue;
        for (const LayerStep& step : steps) {
            auto parts = layer_parts(model, model.layers[std::size_t(model.usual_layer())], step);
            for (LayerPart& part : end_parts(model, step)) parts.push_back(std::move(part));
            for (const LayerPart& part : parts) {
                if (part.operation.empty() || !part.why_not.empty()) continue;
                const Operation* operation = find_operation(part.operation);
                if (!operation) continue;  // taken out
                std::vector<TensorInfo> tensors;
                try {
                    tensors = operation->tensors(operation->problem(part.request));
                } catch (const RequestError& error) {
                    refused.insert(part.name + ": " + error.what());
                    continue;
                }
                const bool eight_bits = part.request.has("types");  // scales are tensors of their own there
                if (eight_bits || part.request.has("mask") || part.request.has("lda") || part.request.has("groups")) continue;
                std::vector<double> bytes, expected;
                for (const TensorInfo& tensor : tensors) {
                    double size = tensor.element_bits / 8.0;
                    for (const Extent& extent : tensor.extents) size *= double(extent.most);
                    bytes.push_back(size);
                }
                for (const PartTensor& tensor : part.reads) expected.push_back(tensor.bytes);
                for (const PartTensor& tensor : part.writes) expected.push_back(tensor.bytes);
                EXPECT_EQ(bytes, expected) << each.name << " " << part.name;
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, find_operation("gemm") ? 1000 : 0);
    EXPECT_THAT(refused, testing::IsEmpty());
}

TEST(LayerParts, ProducersComeBeforeTheirReaders) {
    for (const PublicModel& each : public_models()) {
        const ModelConfig model = model_config(each.config, each.name);
        for (const LayerKind& kind : {model.layers.front(), model.layers.back()}) {
            std::set<std::string> made = {"x"};
            for (const LayerPart& part : layer_parts(model, kind, {.decode = 2, .prefill = 1, .context = 64})) {
                for (const PartTensor& tensor : part.reads) {
                    const bool there = tensor.kind != TensorKind::activations || made.contains(tensor.name);
                    EXPECT_TRUE(there) << each.name << " " << part.name << " " << tensor.name;
                }
                for (const PartTensor& tensor : part.writes) made.insert(tensor.name);
            }
            EXPECT_TRUE(made.contains("x_out")) << each.name;
        }
    }
}

TEST(LayerParts, RefusesStepsOfNothing) {
    EXPECT_THROW(parts_of("Meta-Llama-3-8B", {.decode = 0, .prefill = 0, .context = 64}), RequestError);
    EXPECT_THROW(parts_of("Meta-Llama-3-8B", {.decode = 1, .prefill = 0, .context = 0}), RequestError);
    EXPECT_THROW(parts_of("Meta-Llama-3-8B", {.decode = 0, .prefill = 1 << 20, .context = 1 << 20}), RequestError);
}

}  // namespace
}  // namespace rooftile
