#include "rooftile/core/arena.hpp"

#include <algorithm>

#include "rooftile/core/operation.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t alignment = 256;  // as allocations are

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

Arena arena_of(const Plan& plan, std::span<const std::int64_t> workspaces) {
    Arena arena;
    const std::vector<TensorInfo> own = plan.operation->tensors(plan.problem);
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
        const std::vector<TensorInfo> tensors = plan.parts[i].operation->tensors(plan.parts[i].problem);
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            const std::string& name = plan.wires.at(i).at(t).tensor;
            const bool is_own = std::ranges::any_of(own, [&](const TensorInfo& o) { return o.name == name; });
            if (is_own || tensors[t].role != TensorRole::out || !arena.between.emplace(name, arena.bytes).second) continue;
            arena.bytes += aligned((spanned_elements(tensors[t]) * tensors[t].element_bits + 7) / 8);
        }
    }
    for (const std::int64_t bytes : workspaces) {
        arena.parts.push_back(arena.bytes);
        arena.bytes += aligned(bytes);
    }
    return arena;
}

Arena arena_of(const Plan& plan) {
    std::vector<std::int64_t> workspaces;
    for (const Plan& part : plan.parts) {
        workspaces.push_back(0);
        for (const PlannedLaunch& launch : part.launches) workspaces.back() = std::max(workspaces.back(), launch.workspace_bytes);
    }
    return arena_of(plan, workspaces);
}

}  // namespace rooftile
