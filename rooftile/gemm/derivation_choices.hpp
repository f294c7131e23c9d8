// The steps of a derivation that choose: tile, warpgroups, schedule, cluster, residency, order; and what the kernels'
// own steps share with them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/derivation.hpp"
#include "rooftile/gemm/kernel.hpp"

namespace rooftile {

/// Appends one step for every parameter that the search settled, with what decided it.
void write_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps);

inline Input given(std::string name, double value, std::string unit, std::string source) {
    return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
}
/// What plan 1 takes where the request says something else, all other values as requested; NaN where none fits, or its time is unknown.
double seconds_with(const GemmContext& context, const std::function<void(GemmRequest&)>& change);

/// The step "early_saving", where the request has it on: `blocks` of B are asked for before the wait by each of an SM's CTAs.
void explain_early_weights(const GemmContext& context, const GemmConfig& config, int blocks, Derivation& steps);

/// The steps of a launch in front that widens A ("pack_a") or unpacks weights ("pack_b"): what that costs, and what a kernel that unpacks
/// fragments would take.
void explain_in_front(const GemmContext& context, Derivation& steps);

/// What a kernel without clusters says of the steps that every kernel has.
GemmWords plain_words(const GemmCandidate& footprint);
std::vector<Input> split_inputs(const GemmContext& context, const Kept& kept);
/// The step "split_k" of a kernel that takes K in one piece.
void write_whole_k(const GemmContext& context, const Kept& kept, Derivation& steps);

}  // namespace rooftile
