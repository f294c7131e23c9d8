// The workspace of a plan of parts that are wired by names of tensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"

namespace rooftile {

/// Offsets in bytes: first of the tensors between parts, then of what each part needs for itself. Each begins as aligned as allocations do.
struct Arena {
    std::map<std::string, std::int64_t> between;
    std::vector<std::int64_t> parts;
    std::int64_t bytes = 0;
};

/// `workspaces`: bytes that each part needs for itself.
Arena arena_of(const Plan& plan, std::span<const std::int64_t> workspaces);
/// As much as their launches are planned with.
Arena arena_of(const Plan& plan);

}  // namespace rooftile
