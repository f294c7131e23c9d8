// A row of a suite's run, as far as a report on GEMMs needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

struct GemmSuiteRow : SuiteRow {
    std::int64_t m = 0, n = 0, k = 0;
    double compulsory_bytes = 0;
    std::string label;  ///< the configuration in a few words
    std::optional<double> cublaslt_best_us, cublaslt_ratio, cublaslt_ratio_low, cublaslt_ratio_high;
    std::optional<double> cublaslt_ratio_coverage;  ///< of that interval; empty in rows of before
};

/// Throws RequestError where the row lacks what every GEMM has.
GemmSuiteRow gemm_row(const SuiteRow& row);

}  // namespace rooftile
