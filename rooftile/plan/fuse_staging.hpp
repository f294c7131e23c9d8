// Where the rows of a fused kernel lie in shared memory: what its search, its source and its launch all read.
#pragma once

#include <cstdint>
#include <vector>

#include "rooftile/plan/fuse_plan.hpp"

namespace rooftile {

/// Shared memory of one CTA, bytes. Tensor after tensor: of each a vector for every stage, item and thread.
struct StagedRows {
    struct Tensor {
        int load = 0;  ///< place in Program::values
        std::int64_t offset = 0, bytes = 0;
    };
    std::vector<Tensor> tensors;
    std::int64_t bytes = 0;  ///< what a launch must ask for
};

/// Empty wherever shared memory is not the rows' home.
StagedRows staged_rows(const Program& program, const FuseConfig& config);

}  // namespace rooftile
