// A suite's run as one table: each problem's time, how far off its prediction was, and what plan 1 loses to the fastest of its own.
#pragma once

#include <string_view>

#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

/// What an operation's table has of its own. Keys are of a row of `rooftile/measurement/1`; an empty one: no such column.
struct SuiteTable {
    double near = 1.03;  ///< plan 1 counts as the fastest of its own up to so many times its time
    std::string_view config_key{}, config_heading{};      ///< a text of the row's `config`
    std::string_view baseline_key{}, baseline_heading{};  ///< a time of the row's `baselines`, shown over ours
    std::string_view baseline_name{};                     ///< of the sentence that has the mean of those: "Two library calls take"
};

SuiteReporter suite_table_reporter(SuiteRecord record, const Suite* suite, const SuiteTable& own);

}  // namespace rooftile
