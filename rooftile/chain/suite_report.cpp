#include "rooftile/chain/suite_report.hpp"

#include "rooftile/report/suite_table.hpp"

namespace rooftile {

SuiteReporter chain_suite_reporter(SuiteRecord record, const Suite* suite) {
    return suite_table_reporter(std::move(record), suite,
                                {.near = 1.02,
                                 .config_key = "form",
                                 .config_heading = "form",
                                 .baseline_key = "two_calls_us",
                                 .baseline_heading = "two calls",
                                 .baseline_name = "Two library calls take"});
}

}  // namespace rooftile
