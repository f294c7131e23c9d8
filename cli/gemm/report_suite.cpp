#include "cli/report_suite.hpp"

#include <memory>
#include <optional>

#include "rooftile/gemm/suite_report.hpp"

namespace rooftile::cli {

SuiteReporter gemm_suite_reporter(SuiteRecord record, const std::string& suite_file);

SuiteReporter gemm_suite_reporter(SuiteRecord record, const std::string& suite_file) {
    std::optional<Suite> suite;
    if (!suite_file.empty()) suite = read_suite(suite_file);
    const auto report = std::make_shared<const decltype(suite_report(record, nullptr))>(
        suite_report(std::move(record), suite ? &*suite : nullptr));
    return {[report](const Terminal& terminal) { return suite_text(*report, terminal); },
            [report] { return suite_markdown(*report); }, missed_bars(*report)};
}

}  // namespace rooftile::cli
