#include <map>

#include "cli/report_suite.hpp"
#include "cli/verb.hpp"

namespace rooftile::cli {

#define ROOFTILE_OPERATION(NAME)                          \
    void add_##NAME##_verbs(std::vector<Verb>& verbs); \
    SuiteReporter NAME##_suite_reporter(SuiteRecord record, const std::string& suite_file);
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION

void add_operation_verbs(std::vector<Verb>& verbs) {
#define ROOFTILE_OPERATION(NAME) add_##NAME##_verbs(verbs);
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION
}

SuiteReporter suite_reporter(SuiteRecord record, const std::string& suite_file) {
    using Make = SuiteReporter (*)(SuiteRecord, const std::string&);
    static const std::map<std::string, Make> makers = {
#define ROOFTILE_OPERATION(NAME) {#NAME, NAME##_suite_reporter},
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION
    };
    return makers.at(record.op())(std::move(record), suite_file);
}

}  // namespace rooftile::cli
