// A row of a suite's run, as far as a report on fused kernels needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

struct FuseSuiteRow : SuiteRow {
    std::string label;  ///< the configuration in a few words
    /// What ran beside, and what the fraction of a roof refers to.
    std::optional<double> unfused_us, roof_fraction, issue_roof_us;
    std::string roof;           ///< "copy" or "read"
    bool reduces_rows = false;  ///< an operation along the last axis is part of it
    std::int64_t columns = 0;   ///< of the largest tensor
};

/// Throws RequestError where the row lacks what every fused problem has.
FuseSuiteRow fuse_row(const SuiteRow& row);

}  // namespace rooftile
