// What `report suite` asks of the operation whose rows a file holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile::cli {

struct SuiteReporter {
    std::function<std::string(const Terminal&)> text;
    std::function<std::string()> markdown;
    std::vector<std::string> missed;  ///< bars, one line each
};

/// `suite_file` names what is not measured; empty: not given. Throws RequestError.
SuiteReporter suite_reporter(SuiteRecord record, const std::string& suite_file);

}  // namespace rooftile::cli
