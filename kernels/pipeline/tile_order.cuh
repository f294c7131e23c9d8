// The order in which a persistent grid takes the (cluster) tiles of C. Plain arithmetic, so that host code,
// the planner's traffic model and the tests use the very same order.
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

/// Position `index` of a Hilbert curve over rows x columns, of any size: a rectangle is cut into smaller
/// ones, each traversed the way that ends beside the next, until one is a line [M32; the generalised curve of
/// Cerveny, github.com/jakubcerveny/gilbert]. Neighbours on the curve are neighbours in C, but for a diagonal
/// step where odd sides leave no other way.
ROOFTILE_HOST_DEVICE inline TileCoordinate hilbert_at(int index, int rows, int columns) {
    struct Vector {
        int x, y;  ///< columns, rows; one of them is zero
        ROOFTILE_HOST_DEVICE int length() const { return x + y < 0 ? -x - y : x + y; }
        ROOFTILE_HOST_DEVICE Vector unit() const { return {(x > 0) - (x < 0), (y > 0) - (y < 0)}; }
        ROOFTILE_HOST_DEVICE Vector operator+(Vector v) const { return {x + v.x, y + v.y}; }
        ROOFTILE_HOST_DEVICE Vector operator-(Vector v) const { return {x - v.x, y - v.y}; }
        ROOFTILE_HOST_DEVICE Vector operator*(int f) const { return {x * f, y * f}; }
        /// Half of it, of even length where that leaves something on both sides.
        ROOFTILE_HOST_DEVICE Vector half() const {
            const Vector h{x / 2, y / 2};
            return h.length() % 2 != 0 && length() > 2 ? h + unit() : h;
        }
    };
    // The rectangle at `corner`, traversed on the whole along `main`; `across` is its other side.
    Vector corner{0, 0}, main{columns, 0}, across{0, rows};
    if (rows > columns) {
        main = {0, rows};
        across = {columns, 0};
    }
    while (main.length() > 1 && across.length() > 1) {
        const int length = main.length(), width = across.length();
        if (2 * length > 3 * width) {  // long: one half after the other
            const Vector half = main.half();
            const int first = half.length() * width;
            if (index < first) {
                main = half;
            } else {
                index -= first;
                corner = corner + half;
                main = main - half;
            }
            continue;
        }
        // Out along one side, over the far half, back along the other side.
        const Vector side{main.x / 2, main.y / 2}, step = across.half();
        const int out = side.length() * step.length(), over = length * (width - step.length());
        if (index < out) {
            main = step;
            across = side;
        } else if (index < out + over) {
            index -= out;
            corner = corner + step;
            across = across - step;
        } else {
            index -= out + over;
            corner = corner + (main - main.unit()) + (step - step.unit());
            across = side - main;
            main = step * -1;
        }
    }
    const Vector at = corner + (across.length() == 1 ? main.unit() : across.unit()) * index;
    return {at.y, at.x};
}

/// Position `index` of a Z-order curve over the cells of rows x columns: of the curve over the least square
/// of 2^p x 2^p around them, what lies inside.
ROOFTILE_HOST_DEVICE inline TileCoordinate morton_at(int index, int rows, int columns) {
    const auto clipped = [](int extent, int first, int side) {
        return extent - first < 0 ? 0 : extent - first < side ? extent - first : side;
    };
    const int longest = rows > columns ? rows : columns;
    int side = 1, row = 0, column = 0;
    while (side < longest - side) side *= 2;  // half of the square
    for (; side > 0; side /= 2) {
        // Cells inside, of the quarters: upper left, upper right, lower left; else lower right.
        const int upper = clipped(rows, row, side), lower = clipped(rows, row + side, side);
        const int left = clipped(columns, column, side), right = clipped(columns, column + side, side);
        if (const int above = upper * (left + right); index >= above) {
            index -= above;
            row += side;
            if (index < lower * left) continue;
            index -= lower * left;
            column += side;
        } else if (index >= upper * left) {
            index -= upper * left;
            column += side;
        }
    }
    return {row, column};
}

/// Orders without a closed form short enough for the kernel's producer, which has no registers for the state
/// of a curve (docs/facts.md): their tile schedule is read from a table of packed tiles.
ROOFTILE_HOST_DEVICE inline bool ordered_by_table(Order order) {
    return order == Order::morton || order == Order::hilbert;
}
inline constexpr int max_table_extent = 1 << 16;  ///< rows and columns that a packed tile can count
ROOFTILE_HOST_DEVICE inline unsigned packed(TileCoordinate t) {
    return static_cast<unsigned>(t.row) << 16 | static_cast<unsigned>(t.column);
}
ROOFTILE_HOST_DEVICE inline TileCoordinate tile_of(unsigned packed) {
    return {static_cast<int>(packed >> 16), static_cast<int>(packed & 0xffff)};
}

/// Tile number `index` of a grid of `rows` x `columns`, in `order`:
///   row         row by row, left to right            column     column by column, top to bottom
///   grouped     bands of `group` rows, each traversed column by column
///   serpentine  the same, every other band traversed right to left
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
