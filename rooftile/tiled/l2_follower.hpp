// L2 as it sees the tiles of one product after the other: clusters of a persistent grid at the same step of their tiles, and every block
// that a step asks for, in the order of time, sent to a cache [M32].
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/pipeline/tile_order.cuh"
#include "kernels/types.hpp"
#include "rooftile/tiled/l2_image.hpp"

namespace rooftile {

/// Tiles of a grid in the order in which a kernel meets them.
std::vector<TileCoordinate> ordered_tiles(int rows, int columns, Order order, int group);
/// Blocks of K in time: `parts` take turns, and part p has those from p * ceil(blocks / parts) on.
std::vector<std::int64_t> k_in_parts(std::int64_t blocks, std::int64_t parts);

/// A persistent grid over the tiles of a product's result.
struct TileWalk {
    std::int64_t m = 0, n = 0, k = 0;
    int tile_m = 0, tile_n = 0, tile_k = 0;
    int cluster_m = 1, cluster_n = 1, k_parts = 1;
    std::int64_t clusters = 1, late_clusters = 0;  ///< in flight; the last of them, which fall behind
    double skew = 0;                               ///< by this share of every step
    Order order = Order::row;
    int group = 1;
    bool reverse = false;  ///< from the last tile of that order to the first
};

/// A matrix in blocks. A block belongs to whatever part of the matrix it begins in.
struct L2Blocks {
    std::int64_t rows = 0, columns = 0, block_rows = 1, block_columns = 1, element_bytes = 1, first = 0;
    std::int64_t period = columns;  ///< so many columns are in blocks of their own, of which the last may be shorter
    std::int64_t row_count = up(rows, block_rows), of_period = up(period, block_columns), column_count = period > 0 ? columns / period * of_period : 0;

    std::int64_t count() const { return row_count * column_count; }
    /// Of the first block that begins at `row` or behind it; at most row_count.
    std::int64_t row_from(std::int64_t row) const { return std::min(up(row, block_rows), row_count); }
    std::int64_t column_from(std::int64_t column) const { return std::min(up(column, block_columns), column_count); }
    std::int64_t id(std::int64_t row, std::int64_t column) const { return first + row * column_count + column; }
    std::int64_t bytes(std::int64_t row, std::int64_t column) const {
        return std::min(block_rows, rows - row * block_rows) * std::min(block_columns, period - column % of_period * block_columns) * element_bytes;
    }

  private:
    static std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

/// A product's matrices; its result's tile columns are `shrink` times as wide as what is stored of them.
struct L2Operands {
    const L2Blocks &a, &b, &c;
    std::int64_t shrink = 1;
    const L2Blocks* beside = nullptr;          ///< read with a tile of the result before it is stored
    std::int64_t a_rows = 0, c_rows = 0;       ///< rows of a and c that there is room for, used in turns; 0: all
    const L2Image* image = nullptr;            ///< whose places a's rows are, read pixel by pixel
};

/// A tile that has been followed to its end.
struct L2TileHits {
    std::int64_t row, column;     ///< in tiles
    std::int64_t place;           ///< of its cluster's, among those of all
    std::int64_t a_hits, b_hits;  ///< as in L2Steps
};

/// Steps of tiles and what they met; bytes that were not in L2.
struct L2Steps {
    std::int64_t steps = 0;
    std::int64_t a_hits = 0, b_hits = 0, both_hits = 0;  ///< in L2, or on its way there because another cluster had asked
    std::int64_t waits = 0;                              ///< steps with a block that was not in L2, whoever asked first
    std::int64_t a_bytes = 0, b_bytes = 0;
    std::vector<L2TileHits>* tiles = nullptr;  ///< each tile by itself, where that is asked for
};

/// Follows one product's accesses: clusters in lock step, but for the last ones, which fall behind by `skew`; a step asks for what its tiles
/// share once on each side of L2. `Cache`:
///   read(side, block, bytes, askers) -> bytes of it that were not there
///   write(side, block, bytes)
///   side_of(cluster), below `sides`
template <class Cache>
class L2Follower {
    using Int = std::int64_t;

  public:
    /// `a_first`: a step reads all its rows of A before its columns of B; else cluster by cluster.
    L2Follower(const TileWalk& walk, const L2Operands& operands, Cache& cache, L2Steps& out, bool a_first, int sides = 1)
        : w_(walk), o_(operands), cache_(cache), out_(out), a_first_(a_first), sides_(sides) {
        row_count_ = up(w_.m, w_.tile_m), column_count_ = up(w_.n, w_.tile_n);
        places_.resize(std::size_t((row_count_ + column_count_) * sides));
        k_ = k_in_parts(up(w_.k, w_.tile_k), w_.k_parts);
    }

    /// Rows [first_row, first_row + rows), of tiles' heights, until after a step go_on() says no.
    template <class GoOn>
    void run(Int first_row, Int rows, GoOn go_on) {
        schedule(first_row, rows);
        const Int rounds = up(Int(tiles_.size()), w_.clusters), all = rounds * Int(k_.size());
        const bool lags = w_.skew > 0 && w_.late_clusters > 0 && w_.late_clusters < w_.clusters;
        const Int first_late = lags ? w_.clusters - w_.late_clusters : w_.clusters;
        Group prompt{0, first_late}, late{first_late, w_.clusters};
        // Time in steps of those that do not lag. Who is late takes a step after the others' of that time.
        for (Int now = 0, behind = 0; now < all || (lags && behind < all);) {
            const bool is_late = lags && behind < all && (now == all || double(behind) * (1 + w_.skew) < double(now));
            if (is_late) take(late, behind++);
            else take(prompt, now++);
            if (!go_on()) return;
        }
    }

  private:
    /// A row or a column of tiles that a group asks for in its round, on one side.
    struct Line {
        bool of_b;
        int side;
        Int from, to;             ///< rows of blocks
        std::size_t asker, last;  ///< the first cluster that wants it, and the last one that came; for all but the first it is on its way
        Int askers = 1, missing = 0;
    };
    struct Tile {
        Int row, column;
        std::size_t cluster, a, b;  ///< a, b: its lines
        int side;
        Int place;  ///< of its cluster's
        Int a_hits = 0, b_hits = 0;
    };
    /// Clusters that are at the same step of their tiles, and what of their present round they ask for.
    struct Group {
        Int from, to;
        std::vector<Tile> tiles{};
        std::vector<Line> lines{};  ///< each once, in the order of first use
    };
    /// Where a line stands in the group that was gathered under that number.
    struct Place {
        Int gathered = 0;
        std::size_t at = 0;
    };
    static Int up(Int a, Int b) { return (a + b - 1) / b; }

    void schedule(Int first_row, Int rows) {
        tiles_ = ordered_tiles(int(up(up(rows, w_.tile_m), w_.cluster_m)), int(up(column_count_, w_.cluster_n)), w_.order, w_.group);
        if (w_.reverse) std::ranges::reverse(tiles_);
        for (TileCoordinate& t : tiles_) t.row += int(first_row / w_.tile_m / w_.cluster_m);
    }

    void take(Group& g, Int step) {
        const Int steps = Int(k_.size()), at = step % steps, block = k_[std::size_t(at)];
        if (at == 0) gather(g, step / steps);
        const auto read_where = [&](auto wanted) {
            for (Line& line : g.lines)
                if (wanted(line)) read(line, block);
        };
        if (a_first_) read_where([](const Line& line) { return !line.of_b; }), read_where([](const Line& line) { return line.of_b; });
        else read_where([](const Line&) { return true; });
        count(g);
        if (at < steps - 1) return;
        for (const Tile& t : g.tiles) {
            store(t);
            if (out_.tiles) out_.tiles->push_back({t.row, t.column, t.place, t.a_hits, t.b_hits});
        }
    }

    void gather(Group& g, Int round) {
        g.tiles.clear(), g.lines.clear();
        ++gathered_;
        const Int count = Int(tiles_.size()), begin = round * w_.clusters, end = std::min(begin + g.to, count);
        for (Int index = begin + g.from; index < end; ++index) {
            const auto cluster = std::size_t(index - begin);
            const int side = cache_.side_of(cluster);
            const Int row = Int{tiles_[std::size_t(index)].row} * w_.cluster_m, column = Int{tiles_[std::size_t(index)].column} * w_.cluster_n;
            const Int row_end = std::min(row + w_.cluster_m, row_count_), column_end = std::min(column + w_.cluster_n, column_count_);
            for (Int i = row; i < row_end; ++i) meet(g, i, side, cluster);
            for (Int j = column; j < column_end; ++j) meet(g, row_count_ + j, side, cluster);
            for (Int i = row; i < row_end; ++i)
                for (Int j = column; j < column_end; ++j)
                    g.tiles.push_back({i, j, cluster, place(i, side).at, place(row_count_ + j, side).at, side, index});
        }
    }
    Place& place(Int index, int side) { return places_[std::size_t(index * sides_ + side)]; }
    void meet(Group& g, Int index, int side, std::size_t cluster) {
        Place& p = place(index, side);
        if (p.gathered == gathered_) {
            Line& line = g.lines[p.at];
            line.askers += line.last != cluster;  // a cluster's tiles come one after the other
            line.last = cluster;
            return;
        }
        p = {gathered_, g.lines.size()};
        const bool of_b = index >= row_count_;
        const L2Blocks& m = of_b ? o_.b : o_.a;
        const Int height = of_b ? w_.tile_n : w_.tile_m, first = (of_b ? index - row_count_ : index) * height;
        if (!of_b && o_.image) {
            g.lines.push_back({false, side, first, std::min(first + height, w_.m), cluster, cluster});
            return;
        }
        const Int there = in_room(first, of_b ? 0 : o_.a_rows);
        g.lines.push_back({of_b, side, m.row_from(there), m.row_from(there + height), cluster, cluster});
    }
    /// Where there is room for some rows alone.
    static Int in_room(Int row, Int room) { return room > 0 ? row % room : row; }

    /// An operand's lines, one block of K of them.
    void read(Line& line, Int block) {
        const L2Blocks& m = line.of_b ? o_.b : o_.a;
        line.missing = 0;
        if (!line.of_b && o_.image) {
            o_.image->for_each_block(line.from, line.to, block, [&](Int id, Int bytes) { line.missing += cache_.read(line.side, id, bytes, line.askers); });
            out_.a_bytes += line.missing;
            return;
        }
        if (block >= m.column_count) return;
        for (Int row = line.from; row < line.to; ++row) line.missing += cache_.read(line.side, m.id(row, block), m.bytes(row, block), line.askers);
        (line.of_b ? out_.b_bytes : out_.a_bytes) += line.missing;
    }

    void count(Group& g) {
        out_.steps += Int(g.tiles.size());
        const bool all_hit = std::ranges::none_of(g.lines, [](const Line& line) { return line.missing > 0; });
        if (all_hit) {
            for (Int* hits : {&out_.a_hits, &out_.b_hits, &out_.both_hits}) *hits += Int(g.tiles.size());
            for (Tile& t : g.tiles) ++t.a_hits, ++t.b_hits;
            return;
        }
        for (Tile& t : g.tiles) {
            const Line &a = g.lines[t.a], &b = g.lines[t.b];
            const bool a_hits = a.missing == 0 || a.asker != t.cluster, b_hits = b.missing == 0 || b.asker != t.cluster;
            t.a_hits += a_hits, t.b_hits += b_hits;
            out_.a_hits += a_hits, out_.b_hits += b_hits, out_.both_hits += a_hits && b_hits;
            out_.waits += a.missing > 0 || b.missing > 0;
        }
    }

    void store(const Tile& t) {
        const Int row = t.row * w_.tile_m, column = t.column * w_.tile_n;
        if (o_.beside)
            for_each_block(*o_.beside, row, column, 1, [&](Int id, Int bytes) { cache_.read(t.side, id, bytes, 1); });
        for_each_block(o_.c, in_room(row, o_.c_rows), column, o_.shrink, [&](Int id, Int bytes) { cache_.write(t.side, id, bytes); });
    }
    template <class Access>
    void for_each_block(const L2Blocks& m, Int row, Int column, Int shrink, Access access) {
        const Int rows = m.row_from(row + w_.tile_m), columns = m.column_from((column + w_.tile_n) / shrink);
        for (Int r = m.row_from(row); r < rows; ++r)
            for (Int c = m.column_from(column / shrink); c < columns; ++c) access(m.id(r, c), m.bytes(r, c));
    }

    const TileWalk w_;
    const L2Operands& o_;
    Cache& cache_;
    L2Steps& out_;
    const bool a_first_;
    const int sides_;
    Int row_count_, column_count_;  // of tiles
    std::vector<Place> places_;     // of rows, then of columns
    std::vector<Int> k_;
    std::vector<TileCoordinate> tiles_;
    Int gathered_ = 0;
};

}  // namespace rooftile
