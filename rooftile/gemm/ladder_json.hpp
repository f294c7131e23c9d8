// The document `rooftile/ladder/1`; docs/schema/ladder-1.json is its JSON Schema.
#pragma once

#include <optional>
#include <string>

#include "rooftile/gemm/ladder_row.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// Ratios of one row, empty where a side of them is no result.
struct LadderRatios {
    std::optional<double> measured_over_predicted;
    std::optional<double> speedup;         ///< over the rung before; of the planned kernel over rung 6
    std::optional<double> cublaslt_share;  ///< of the speed of cuBLASLt's best
};
LadderRatios ratios_of(const LadderRun& run, std::size_t row);

/// Why that row has no figures: an obstacle, a compiler's or verifier's line; empty where it has.
std::string why_no_result(const LadderRow& row);

/// A row that is no result has null figures and says why in `invalid`.
Json ladder_document(const DocumentContext& context, const LadderRun& run, bool timings = false);

/// Of a document: the table of docs/ladder.md in Markdown, under the GPU, date and command that made it.
/// Throws RequestError where `document` is no ladder.
std::string ladder_markdown(const Json& document);

}  // namespace rooftile
