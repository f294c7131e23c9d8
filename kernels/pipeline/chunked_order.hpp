// The order in which one kernel takes the tiles of two products, the second of which reads as its A what the first one stores. Plain
// arithmetic, so that host code, the planner's traffic model and the tests use the very same order.
#pragma once

#include "kernels/pipeline/tile_order.cuh"

namespace rooftile {

/// A product's tiles, cut by rows into as many chunks as the other's.
struct ChunkedTiles {
    int rows, columns;
    int chunk_rows;  ///< rows of tiles of a chunk; of the last one what is left
    int order;       ///< an Order, within a chunk
    int group;

    ROOFTILE_HOST_DEVICE int tiles() const { return rows * columns; }
    ROOFTILE_HOST_DEVICE int chunk_tiles() const { return chunk_rows * columns; }
    /// Of all chunks but the last.
    ROOFTILE_HOST_DEVICE int tiles_before_last(int chunks) const { return (chunks - 1) * chunk_tiles(); }
    /// Tile number `index` of the product, chunk after chunk.
    ROOFTILE_HOST_DEVICE TileCoordinate at(int index) const {
        const int chunk = index / chunk_tiles(), first = chunk * chunk_rows;
        const int height = rows - first < chunk_rows ? rows - first : chunk_rows;
        TileCoordinate t = tile_at(index - chunk * chunk_tiles(), height, columns, static_cast<Order>(order), group);
        t.row += first;
        return t;
    }
};

/// Chunk after chunk of the first product, and from the second on, behind each, the second product's chunk before: what it reads was begun
/// a chunk ago. A tile waits for tiles of smaller numbers alone.
struct ChunkedOrder {
    ChunkedTiles first, second;
    int chunks;  ///< of each

    struct Tile {
        bool of_second;
        int index;  ///< of its product
    };
    ROOFTILE_HOST_DEVICE int tiles() const { return first.tiles() + second.tiles(); }
    ROOFTILE_HOST_DEVICE Tile at(int number) const {
        const int a = first.chunk_tiles(), b = second.chunk_tiles(), last = chunks - 2;
        if (chunks == 1) return number < first.tiles() ? Tile{false, number} : Tile{true, number - first.tiles()};
        if (number < a) return {false, number};
        const int behind = number - a, turns = behind / (a + b), turn = turns < last ? turns : last;
        const int place = behind - turn * (a + b);
        const int ahead = turn < last ? a : first.tiles() - first.tiles_before_last(chunks);
        return place < ahead ? Tile{false, (turn + 1) * a + place} : Tile{true, turn * b + place - ahead};
    }
};

}  // namespace rooftile
