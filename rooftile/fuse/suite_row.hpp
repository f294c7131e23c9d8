// A row of a suite's run, as far as a report on fused kernels needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

struct FuseSuiteRow : SuiteRow {
    double compulsory_bytes = 0;
    std::string label;  ///< the configuration in a few words
    /// What ran beside, and what the fraction of a roof refers to.
    std::optional<double> copy_us, memcpy_us, read_us, unfused_us, roof_fraction, issue_roof_us;
    std::string roof, bound;    ///< "copy" or "read"; what the plan says limits it
    bool reduces_rows = false;  ///< an operation along the last axis is part of it
    std::int64_t columns = 0;   ///< of the largest tensor
};

/// Throws RequestError where the row lacks what every fused problem has.
FuseSuiteRow fuse_row(const SuiteRow& row);

}  // namespace rooftile
