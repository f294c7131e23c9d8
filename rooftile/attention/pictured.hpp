// What pictures ask of attention: one CTA's way through its longest tile by the time model.
#pragma once

#include <optional>

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/pictured.hpp"

namespace rooftile {

/// A step is a block of keys. Empty where the machine lacks a number that the model needs.
std::optional<PipelineCycles> attention_pipeline(const Machine& machine, const AttentionPlan& plan);

}  // namespace rooftile
