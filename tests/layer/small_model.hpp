// A model small enough for tests, of a public configuration's form.
#pragma once

#include <string>

#include "rooftile/layer/model_config.hpp"

namespace rooftile {

/// `normed`: with a bias of the product that makes queries, keys and values, and norms of the heads of the first two.
inline ModelConfig small_model(bool normed) {
    ModelConfig model = model_config(
        R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64,
            "num_hidden_layers": 2, "vocab_size": 1000, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000,
            "torch_dtype": "bfloat16", "max_position_embeddings": 4096, "tie_word_embeddings": false})",
        "config.json");
    model.qkv_bias = model.query_key_norms = normed;
    return model;
}

}  // namespace rooftile
