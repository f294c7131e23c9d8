// Rows as a run on a GPU writes them, from plans and made-up measurements.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/report/measurement.hpp"

namespace rooftile {

/// The lines that `measure gemm --suite` would write of `rows`.
inline std::string recorded_lines(const Machine& machine, const std::vector<Measurement>& rows) {
    DocumentContext context = context_of(machine, "rooftile measure gemm --suite made-up.toml");
    context.gpu = GpuContext{"Made-up GPU", "1.2", "13.0", "2026-01-02T03:04:05Z", 1};
    std::string text = json_text(context_line(measurement_document(context, {})), -1);
    for (const Json& line : measurement_lines(context, rows, {})) text += json_text(line, -1);
    return text;
}

inline Measurement measured(const GemmPlan& plan) {
    Measurement row = gemm_row(plan);
    row.verified.exact = row.verified.random = row.verified.special = true;
    return row;
}

}  // namespace rooftile
