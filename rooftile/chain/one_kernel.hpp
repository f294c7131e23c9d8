// Which plans of a chain's two products go together in one kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "rooftile/chain/parts.hpp"

namespace rooftile {

struct OneKernelParts {
    PlannedProduct first, second;
};

/// Of each product's best plans on the chip, with a ring that both have room for, those two whose queue ends first; and the same of tiles whose
/// heights have a small common multiple, of which chunks can be low: empty where there is none, or the first are such. `first` and `second`:
/// the products' best by themselves, which say whether their epilogues can be had. Nothing where a product has no plan of the kind. Where no
/// kernel computes both the plans say so.
std::vector<OneKernelParts> parts_of_one_kernel(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const ChainProblem& problem,
                                                const PlannedProduct& first, const PlannedProduct& second);

/// Rows that a chunk of both is a multiple of.
inline std::int64_t chunk_unit(const ChainProduct& first, const ChainProduct& second) { return std::lcm(first.tile_m, second.tile_m); }

}  // namespace rooftile
