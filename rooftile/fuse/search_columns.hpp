// The launches of reductions of columns.
#pragma once

#include "rooftile/fuse/search_rings.hpp"

namespace rooftile {

/// Adds the tiles and splits that the machine and the request allow, timed, to `out`; what a constraint rejects is counted there.
void search_columns(const FuseSearchContext& context, FuseSearch& out);

}  // namespace rooftile
