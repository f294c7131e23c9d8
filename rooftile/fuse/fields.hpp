// What a request for a fused expression may say, and what it comes to.
#pragma once

#include <span>

#include "rooftile/core/field.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

std::span<const Field> fuse_fields();

/// Throw RequestError; a fault of the expression points at its column.
ExpressionGraph fuse_problem(const Given& given);
/// The request that gives `problem`.
Given fuse_given(const ExpressionGraph& problem);
/// The same of its record.
Given fuse_given(const Record& record);
FuseRequest fuse_request(const Given& given, int default_top);

}  // namespace rooftile
