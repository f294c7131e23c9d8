// The launches of a row program in which all rows are resident in the grid and wait in L2 for their next pass.
#pragma once

#include "rooftile/fuse/search_rings.hpp"

namespace rooftile {

/// Adds the launches of that form that the machine and the request allow, timed, to `out`; what a constraint rejects is
/// counted there: above all grids that would not be resident at once, whose CTAs would wait for one another for good.
void search_grid_resident(const FuseSearchContext& context, FuseSearch& out);

}  // namespace rooftile
