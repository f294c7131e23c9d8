// A model's published config.json as numbers: what its layers are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// How weights are stored, where that is not as they are computed with.
struct ModelQuantization {
    std::string method;  ///< "fp8", "awq", "gptq"
    int bits = 8;
    std::int64_t group = 0;    ///< weights along K that share a scale; 0: a tensor has one
    std::int64_t group_n = 1;  ///< columns of B that share it too
    bool zero_points = false;
    bool is_fp8() const { return method == "fp8"; }
};

/// Products that only some of a layer's tokens take.
struct ModelExperts {
    std::int64_t count = 0, per_token = 0, intermediate = 0;
    std::int64_t shared_intermediate = 0;  ///< of what every token takes beside; 0: nothing
    bool shared_gate = false;              ///< that one is multiplied by a sigmoid, one a token
    bool renormalized = false;             ///< the weights of a token's experts sum up to 1
};

/// Keys and values in one short row that all heads share, multi-head latent attention.
struct ModelLatent {
    std::int64_t q_rank = 0;  ///< 0: queries come from the hidden state at once
    std::int64_t kv_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
};

/// What differs from layer to layer.
struct LayerKind {
    std::int64_t window = 0;  ///< keys that a query sees at most; 0: all
    bool experts = false;
    friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// How angles of the rotary embedding are changed so that contexts may be longer than those a model was trained on.
struct ModelRotaryScaling {
    std::string kind;      ///< `rope_type`; empty: they are not
    double factor = 0;     ///< 0: nothing says it
    double positions = 0;  ///< of the contexts of that training; 0: nothing says it
    double
        low = 1,
        high =
            4;  ///< llama3: turns over those positions below which an angle is divided, above which it stays
    double slow = 1, fast = 32;  ///< yarn: the same
    bool whole_pairs = true;     ///< yarn: the two limits are pairs of a head, not places between them
    double amplitude = 1;        ///< yarn: of sines and cosines
};

struct ModelConfig {
    std::string family;  ///< `model_type`
    std::string type;    ///< of weights, cache and activations: "bf16" or "fp16"
    std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
    std::string activation;  ///< of the gate, as expressions name it: "silu"
    double norm_eps = 0;
    bool unit_offset_norms = false;  ///< a norm multiplies by 1 + its weight
    bool post_norms = false;         ///< attention's and the MLP's results are normed before they are added, too
    bool query_key_norms = false;    ///< heads of queries and keys are normed before they are rotated
    bool qkv_bias = false, tied_embeddings = false;
    double query_scale = 0;                   ///< of scores, in the place of 1 / sqrt(head_dim); 0: that one
    double score_cap = 0;                     ///< c of c tanh(s / c), what scores are bounded by; 0: not bounded
    double rope_theta = 0, rotary_share = 1;  ///< share of a head's elements that is rotated
    ModelRotaryScaling rope_scaling;
    std::optional<ModelExperts> experts;
    std::optional<ModelLatent> latent;
    std::optional<ModelQuantization> quantization;
    std::vector<LayerKind> layers;  ///< one a layer

    /// The first layer of the kind that most layers are of.
    std::int64_t usual_layer() const;
    std::int64_t layers_alike(const LayerKind& kind) const;
};

/// Of `text`, which `file` holds. Throws RequestError, one line that names field and value, where one is missing or not supported.
ModelConfig model_config(std::string_view text, std::string_view file);

/// What `model_type` may be.
std::vector<std::string_view> model_families();

}  // namespace rooftile
