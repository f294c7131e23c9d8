// The manual page as roff.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace rooftile::cli {

/// rooftile(1): every verb with its flags and examples, as help has them, and what the exit codes mean.
std::string manual_page(const std::vector<Verb>& verbs);

}  // namespace rooftile::cli
