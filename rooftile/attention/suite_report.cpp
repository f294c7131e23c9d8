#include "rooftile/attention/suite_report.hpp"

#include "rooftile/report/suite_table.hpp"

namespace rooftile {

SuiteReporter attention_suite_reporter(SuiteRecord record, const Suite* suite) {
    return suite_table_reporter(std::move(record), suite, {});
}

}  // namespace rooftile
