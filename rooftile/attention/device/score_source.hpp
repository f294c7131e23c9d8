// A score's expression as kernels' text: what the kernel applies, and what its reference holds it against.
#pragma once

#include <string>

#include "rooftile/attention/score.hpp"

namespace rooftile {

/// The class `rooftile::score::Score`, in fp32.
std::string score_text(const AttentionScore& score);
/// The class `rooftile::score::JudgedScore`: the same in fp64 with error bounds.
std::string judged_score_text(const AttentionScore& score);

}  // namespace rooftile
