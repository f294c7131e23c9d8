// What a kernel's name says, as documents hold it.
#pragma once

#include "rooftile/names/kernel_name.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

Json name_json(const KernelName& name);

}  // namespace rooftile
