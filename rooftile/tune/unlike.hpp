// Which of a problem's plans are worth timing: those that differ.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rooftile/core/plan.hpp"

namespace rooftile {

/// How unlike two configurations of one operation are: one for each key with another word, and for each number the octaves between
/// the two, one at most. 3 and 4 stages are neighbours, tiles of 64 and 128 rows are two ideas.
double unlikeness(const Record& one, const Record& other);

/// Places of `count` configurations, or of all where there are fewer, in their order; the first is among them. Each other one is the
/// first that differs from all taken before it by some unlikeness: the largest at which there are so many.
std::vector<std::size_t> unlike(std::span<const Record> configs, std::size_t count);
/// The same of plans of one operation, by their configurations.
std::vector<std::size_t> unlike_plans(std::span<const Plan> plans, std::size_t count);

}  // namespace rooftile
