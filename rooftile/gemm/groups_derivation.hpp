// What a plan says of groups of rows: the tiles that their counts take, and how much longer other counts of as many rows may.
#pragma once

#include "rooftile/gemm/derivation_choices.hpp"

namespace rooftile {

/// Seconds of the plan's configuration where as many groups of as many rows in all take most tiles: all but one have a single row.
/// NaN unknown.
double seconds_of_worst_counts(const GemmContext& context, const Kept& kept);

/// Nothing without groups.
void explain_groups(const GemmContext& context, const Kept& kept, Derivation& steps);

}  // namespace rooftile
