// How two products back to back lie in shared memory and registers, in words: the head of an emitted file.
#pragma once

#include <string>
#include <vector>

#include "kernels/matrix/back_to_back_shape.hpp"

namespace rooftile {

/// What the operation calls the tile's first operand, what comes block by block, and the result.
struct BackToBackNames {
    const char *a, *b, *e, *d;
};
std::vector<std::string> back_to_back_story(const BackToBackShape& shape, const BackToBackNames& names);

/// Of a warpgroup's sums of a wgmma: which thread has which.
std::string wgmma_fragment(const std::string& sums);

}  // namespace rooftile
