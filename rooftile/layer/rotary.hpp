// The angles of a model's rotary embedding, scaled as its configuration says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/layer/model_config.hpp"

namespace rooftile {

/// Of a head; pairs are half of them apart.
std::int64_t rotated_elements(const ModelConfig& model);

/// Why no angles can be had, in a few words: a kind that is only planned, or a number that the configuration lacks. Empty: they can.
std::string rotary_refusal(const ModelConfig& model);

/// The angle that one position adds to each pair of a head, in sequences of `context` tokens: only the kind "dynamic" depends on them. Of a
/// model that is not refused.
std::vector<double> rotary_frequencies(const ModelConfig& model, std::int64_t context);

}  // namespace rooftile
