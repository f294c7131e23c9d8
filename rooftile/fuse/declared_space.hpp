// The launches of a fused expression that the planner's choices are judged against.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// The rule of fuse_space(), in words.
std::string_view fuse_space_rule();
/// Keys of a configuration that the rule speaks of.
std::span<const std::string_view> fuse_space_keys();
/// The buildable members of the space.
std::vector<FusePlan> fuse_space(const Machine& machine, const ExpressionGraph& problem);

/// The request that fixes plans to the configuration of a record that config_record() made.
Given fuse_given_of_config(const Record& config);

}  // namespace rooftile
