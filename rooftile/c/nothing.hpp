// Requests of which a size is 0. A program that computes sizes meets them, and gets what is right: results without elements, or what
// nothing sums up to, of zeros. Another problem stands in, of some size in the place of none; its kernel is launched on zeros, or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "rooftile/c/request.hpp"
#include "rooftile/core/problem.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile::c {

/// What is there of a problem with nothing to do.
struct Nothing {
    std::vector<TensorInfo> tensors;   ///< as the caller has them: some without elements
    std::vector<bool> zeros;           ///< of each: an input without elements, for which zeros stand in
    std::size_t zero_bytes = 0;        ///< of the longest of these
    bool is_launched = false;          ///< a result has elements
    Json problem;                      ///< of the document
};

struct StandIn {
    Given given;  ///< the request, with all that its tensors say
    Nothing nothing;
};

/// Empty where no size is 0, or nothing can stand in.
std::optional<StandIn> stand_in(const Request& request, std::span<const TensorInfo> inputs);

}  // namespace rooftile::c
