// Suites of fused expressions; docs/command-line.md has the format.
#pragma once

#include <string_view>

#include "rooftile/core/suite.hpp"

namespace rooftile {

/// Of a file's text; `file_name` is for messages. Throws RequestError.
Suite fuse_suite(std::string_view text, std::string_view file_name);

}  // namespace rooftile
