// The command line of a request.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "rooftile/core/field.hpp"

namespace rooftile {

/// "rooftile plan OPERATION --key VALUE ...", quoted for a shell: what `given` has of those fields, in their order.
std::string plan_command(std::string_view operation, std::initializer_list<std::span<const Field>> fields, const Given& given);

}  // namespace rooftile
