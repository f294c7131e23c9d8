// A request as JSON, for whoever has no command line.
#pragma once

#include <string_view>

#include "rooftile/core/field.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile::c {

/// What a JSON object asks for.
struct Request {
    const Operation* operation;
    Given given{Given::Named::by_key};
};

/// Throws RequestError, one line: no JSON, an unknown operation or field, a value of another kind.
Request read_request(std::string_view json);

/// The fields of a request beside the operation's: machine, set, buildable_only, seed, within.
std::span<const Field> planning_fields();

}  // namespace rooftile::c
