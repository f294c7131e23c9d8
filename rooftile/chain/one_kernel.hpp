// Which plans of a chain's two products go together in one kernel.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "rooftile/chain/parts.hpp"

namespace rooftile {

struct OneKernelParts {
    PlannedProduct first, second;
};

struct OneKernelSearch {
    bool coarse = false;        ///< fewer pairs are run
    double most = INFINITY;     ///< seconds of all tiles' work, on as many CTAs as there are: nothing slower is wanted
};

/// Of each product's best plans on the chip, with a ring that both have room for, those two whose queue ends first; the same of tiles whose
/// heights have a small common multiple, of which chunks can be low, where the first are none; and of those the two whose queue ends first in
/// the lowest chunks, as many as L2 holds. `first` and `second`: the products' best by themselves, which say whether their epilogues can be had.
/// Nothing where a product has no plan of the kind. Where no kernel computes both the plans say so.
std::vector<OneKernelParts> parts_of_one_kernel(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const ChainProblem& problem,
                                                const PlannedProduct& first, const PlannedProduct& second, const OneKernelSearch& search = {});

/// Rows that a chunk of both is a multiple of.
inline std::int64_t chunk_unit(const ChainProduct& first, const ChainProduct& second) { return std::lcm(first.tile_m, second.tile_m); }

}  // namespace rooftile
