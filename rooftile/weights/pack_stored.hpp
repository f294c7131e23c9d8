// Weights of a published file, packed as the operation that multiplies by them reads them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/core/packs.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/weights/stored_weights.hpp"

namespace rooftile {

/// One row by stored weights, asked of an operation that packs such.
struct PackTask {
    const Operation* operation = nullptr;
    std::vector<std::pair<std::string, std::string>> fields{};  ///< of the request
    Problem problem{};
    std::int64_t bytes = 0;  ///< of the packed weights
};
/// `scale`: the packed scales' type, "bf16" or "fp16"; empty: the one that holds the stored ones best. Throws RequestError where the
/// operation cannot pack them.
PackTask pack_task(const StoredWeights& weights, std::string_view scale);

/// Of the packed weights against those in the file, over all of them.
struct PackError {
    double mean_square = 0;
    double mean_square_of_weights = 0;
};
/// Fills `to`, which has task.bytes, some rows at a time on all cores.
PackError pack_stored(const PackTask& task, const StoredWeights& weights, std::span<unsigned char> to);

/// What is packed of what: `format`, sizes, bytes, and the `request` of one row by it, with `op`.
Json pack_json(const PackTask& task, const StoredWeights& weights);

}  // namespace rooftile
