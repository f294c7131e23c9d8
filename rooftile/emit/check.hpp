// The program that an emitted file is with ROOFTILE_EMIT_MAIN: random data, a launch, a plain loop beside it, the time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/emit/launcher.hpp"

namespace rooftile::emit {

struct CheckText {
    std::string text;  ///< behind the launcher, and behind `headers` in its namespace
    bool compares = false;  ///< with a plain loop; else it only takes the time
    std::vector<std::string> headers = {"kernels/expression/bounded.hpp"};
};
CheckText check_text(const Plan& plan, const std::vector<Parameter>& parameters, std::size_t workspace_bytes);

}  // namespace rooftile::emit
