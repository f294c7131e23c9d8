// What of a convolution's plan is its own: how it becomes a product, and what of the image moves where.
#pragma once

#include <vector>

#include "rooftile/conv/problem.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Extents of a tile: places, filters, and channels of one step, which are of one tap or, gathered, of as many as there is room for.
struct ConvTile {
    int pixels, filters, step;
    bool gathered = false;
};

/// Bytes of the image and of what comes of it into shared memory, each once: what a reader compares.
struct ImageTraffic {
    double read = 0;      ///< of the image that the result depends on
    double unrolled = 0;  ///< of the left operand of one column of tiles: every tap reads its pixels anew
    double halo = 0;      ///< of the tiles' pixels with their margins, each tile once
    double tile_halo = 0; ///< of one tile: the shared memory it would take
};
ImageTraffic image_traffic(const ConvProblem& problem, const ConvTile& tile);

/// The first steps of a derivation, before the product's.
std::vector<Step> conv_steps(const Machine& machine, const ConvProblem& problem, const ConvTile& tile);

}  // namespace rooftile
