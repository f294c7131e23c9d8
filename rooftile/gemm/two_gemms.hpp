// Two plans of sm90_gemm as one kernel, sm90_two_gemms.
#pragma once

#include "kernels/gemm/two_gemms_config.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/tiled/two_products.hpp"

namespace rooftile {

/// Why no kernel computes both, `second` reading what `first` stores; empty: one does.
std::string no_two_gemms(const GemmPlan& first, const GemmPlan& second);

/// The kernel's template parameters, of plans that no_two_gemms() has nothing against.
TwoGemmsConfig two_gemms_config(const GemmPlan& first, const GemmPlan& second);

/// How both are cut by rows, and where in the workspace, in bytes, what lies: counters, 0 before the launch and after it, then what the first
/// product stores.
struct TwoGemmsLayout {
    int chunks = 1, first_chunk_rows = 0, second_chunk_rows = 0;  ///< rows of tiles, as ChunkedOrder has them
    int room_chunks = 1;           ///< of what the first product stores: all, or fewer
    std::int64_t room_rows = 0;
    std::int64_t rows_ready = 0;   ///< to the counters of rows of tiles; those of tiles begun and of CTAs that are done lie before
    std::int64_t chunks_taken = 0; ///< to the counters of chunks
    std::int64_t between = 0;
    std::int64_t bytes = 0;
};
/// Throws RequestError where chunks of so many rows are no whole tiles of both.
TwoGemmsLayout two_gemms_layout(const GemmPlan& first, const GemmPlan& second, const RowChunks& chunks);

/// GEMM's facet.
const TwoProducts& two_gemms();

}  // namespace rooftile
