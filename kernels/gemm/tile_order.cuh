// The walk of a persistent grid over the (cluster) tiles of C. Plain arithmetic, so that host code,
// the planner's traffic model and the tests use the very same walk.
#pragma once

#include "kernels/types.hpp"

#ifdef __CUDACC__
#define ROOFTILE_HOST_DEVICE __host__ __device__
#else
#define ROOFTILE_HOST_DEVICE
#endif

namespace rooftile {

struct TileCoordinate {
    int row, column;  ///< in units of (cluster) tiles of C
};

/// Tile number `index` of a grid of `rows` x `columns`, in `order`:
///   row         row by row, left to right            column     column by column, top to bottom
///   grouped     bands of `group` rows, each walked column by column
///   serpentine  the same, every other band walked right to left
ROOFTILE_HOST_DEVICE inline TileCoordinate tile_at(int index, int rows, int columns, Order order, int group) {
    if (order == Order::row) return {index / columns, index % columns};
    if (order == Order::column) return {index % rows, index / rows};
    const int band = index / columns / group;  // group * columns may pass 2^31
    const int within = index - band * group * columns;
    const int first = band * group;
    const int height = rows - first < group ? rows - first : group;
    int column = within / height;
    if (order == Order::serpentine && band % 2 == 1) column = columns - 1 - column;
    return {first + within % height, column};
}

}  // namespace rooftile
