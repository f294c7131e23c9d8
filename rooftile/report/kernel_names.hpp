// Decoded names of kernels, as JSON and for a terminal. docs/schema/names-1.json has the keys.
#pragma once

#include <string>
#include <vector>

#include "rooftile/names/kernel_name.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Every key, null where the name does not say it.
Json kernel_name_json(const KernelName& name);

/// Of one name every field that it says, of several a line each; and how many nobody's grammar reads.
std::string kernel_names_text(const std::vector<KernelName>& names, const Terminal& terminal);

}  // namespace rooftile
