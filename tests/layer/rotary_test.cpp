// Angles of the rotary embedding, scaled as configurations say: each kind's arithmetic in its comment.
#include "rooftile/layer/rotary.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// Llama-3-8B with so many elements a head, that base, and that scaling.
ModelConfig scaled(std::int64_t dim, double theta, const Json& scaling, std::int64_t positions = 4096) {
    Json config = Json::parse(public_config("Meta-Llama-3-8B"));
    config["head_dim"] = dim, config["rope_theta"] = theta, config["rope_scaling"] = scaling,
    config["max_position_embeddings"] = positions;
    return model_config(config.dump(), "config.json");
}

TEST(RotaryAngles, WithoutScaling) {
    // 10000^(-2 i / 8)
    EXPECT_THAT(rotary_frequencies(scaled(8, 1e4, nullptr), 1 << 20),
                ElementsAre(1, DoubleNear(0.1, 1e-15), DoubleNear(0.01, 1e-15), DoubleNear(0.001, 1e-15)));
    ModelConfig half = scaled(8, 1e4, nullptr);
    half.rotary_share = 0.5;
    EXPECT_THAT(rotary_frequencies(half, 1), ElementsAre(1, DoubleNear(0.01, 1e-15)));
    EXPECT_EQ(half.rope_scaling.amplitude, 1);
}

TEST(RotaryAngles, LinearDividesAll) {
    const ModelConfig model = scaled(4, 1e4, {{"type", "linear"}, {"factor", 8.0}});
    EXPECT_THAT(rotary_frequencies(model, 1 << 20), ElementsAre(0.125, DoubleNear(0.00125, 1e-15)));
}

TEST(RotaryAngles, DynamicChangesTheBaseBeyondTheModelsPositions) {
    const ModelConfig model = scaled(4, 1e4, {{"rope_type", "dynamic"}, {"factor", 2.0}}, 1000);
    EXPECT_THAT(rotary_frequencies(model, 1000), ElementsAre(1, DoubleNear(0.01, 1e-15)));
    // 10000 (2 x 2000 / 1000 - 1)^(4 / 2) = 90000, and its root is 300.
    EXPECT_THAT(rotary_frequencies(model, 2000), ElementsAre(1, DoubleNear(1 / 300.0, 1e-15)));
}

// Llama-3.1-8B: angles that make more than 4 turns over 8192 positions stay, those of less than one are divided by 8.
TEST(RotaryAngles, Llama3KeepsWhatTurnsOften) {
    const std::vector<double> angles = rotary_frequencies(public_model("Llama-3.1-8B"), 1);
    ASSERT_EQ(angles.size(), 64u);
    EXPECT_EQ(angles[0], 1);
    // Pair 32 adds 1 / sqrt(500000): 1.84384 turns, which is 0.281283 of the way from 1 to 4.
    const double plain = 1 / std::sqrt(5e5), kept = (8192 * plain / (2 * 3.14159265358979323846) - 1) / 3;
    EXPECT_NEAR(kept, 0.281283, 1e-6);
    EXPECT_NEAR(angles[32] / plain, kept + (1 - kept) / 8, 1e-12);
    EXPECT_NEAR(angles[63], std::pow(5e5, -63 / 64.0) / 8, 1e-18);
    // Pair 28 makes 4.19 turns.
    EXPECT_NEAR(angles[28], std::pow(5e5, -28 / 64.0), 1e-15);
}

// 64 elements over 4096 positions: 32 turns are made at pair 64 ln(4096 / 64 pi) / (2 ln 10000) = 10.47, one at 22.51. Whole pairs are 10 and 23.
TEST(RotaryAngles, YarnGoesFromKeptToDividedBetweenTwoPairs) {
    Json scaling = {{"rope_type", "yarn"}, {"factor", 40}, {"original_max_position_embeddings", 4096}};
    const ModelConfig model = scaled(64, 1e4, scaling, 163840);
    const std::vector<double> angles = rotary_frequencies(model, 1);
    const auto plain = [](int pair) { return std::pow(1e4, -pair / 32.0); };
    EXPECT_NEAR(angles[10] / plain(10), 1, 1e-12);
    EXPECT_NEAR(angles[16] / plain(16), 7.0 / 13 + 6.0 / 13 / 40, 1e-12);
    EXPECT_NEAR(angles[23] / plain(23), 1.0 / 40, 1e-12);
    EXPECT_NEAR(angles[31] / plain(31), 1.0 / 40, 1e-12);
    // Sines and cosines grow by 0.1 ln 40 + 1, unless the file says by how much.
    EXPECT_NEAR(model.rope_scaling.amplitude, 1.368887945, 1e-9);
    scaling["attention_factor"] = 1.25;
    EXPECT_EQ(scaled(64, 1e4, scaling).rope_scaling.amplitude, 1.25);
    EXPECT_EQ(public_model("DeepSeek-V3").rope_scaling.amplitude, 1)
        << "mscale and mscale_all_dim are the same";
    scaling.erase("attention_factor");
    scaling["mscale"] = 0.707, scaling["mscale_all_dim"] = 1.0;  // (0.0707 ln 40 + 1) / (0.1 ln 40 + 1)
    EXPECT_NEAR(scaled(64, 1e4, scaling).rope_scaling.amplitude, 0.921042, 1e-6);
    // Between pairs: from 10.472 to 22.512.
    scaling["truncate"] = false;
    EXPECT_NEAR(rotary_frequencies(scaled(64, 1e4, scaling), 1)[16] / plain(16),
                1 - (1 - 1.0 / 40) * (16 - 10.4723) / (22.5136 - 10.4723), 1e-4);
    // The model's own positions, where nothing else is said: 32 turns of 163840 at pair 23.29, one at 35.3, past the head's end.
    scaling.erase("truncate"), scaling.erase("original_max_position_embeddings");
    EXPECT_NEAR(rotary_frequencies(scaled(64, 1e4, scaling, 163840), 1)[31] / plain(31),
                1 - (1 - 1.0 / 40) * 8 / 13, 1e-12);
}

TEST(RotaryAngles, WhatCannotBeHadIsNamed) {
    const auto refusal = [](const Json& scaling, std::int64_t positions = 4096) {
        return rotary_refusal(scaled(64, 1e4, scaling, positions));
    };
    EXPECT_EQ(refusal(nullptr), "");
    EXPECT_EQ(refusal({{"type", "linear"}, {"factor", 2}}, 0), "");
    EXPECT_EQ(refusal({{"type", "linear"}}), "angles scaled by linear, whose factor is missing,");
    EXPECT_EQ(refusal({{"rope_type", "longrope"}, {"short_factor", {1, 2}}}), "angles scaled by longrope");
    EXPECT_EQ(refusal({{"type", "su"}}), "angles scaled by su");
    EXPECT_EQ(refusal({{"type", "dynamic"}, {"factor", 2}}, 0),
              "angles scaled by dynamic, whose max_position_embeddings is missing,");
    EXPECT_EQ(refusal({{"rope_type", "llama3"}, {"factor", 8}}),
              "angles scaled by llama3, whose original_max_position_embeddings is missing,");
    EXPECT_EQ(refusal({{"rope_type", "yarn"}, {"factor", 8}}), "");
    EXPECT_EQ(refusal({{"rope_type", "yarn"}, {"factor", 8}}, 0),
              "angles scaled by yarn, whose original_max_position_embeddings is missing,");
}

}  // namespace
}  // namespace rooftile
