#include "rooftile/gemm/simulate_blocks.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

using Int = std::int64_t;

constexpr Int max_blocks = Int{1} << 27;
constexpr Int max_accesses = Int{1} << 27;
constexpr double max_steps = double(Int{1} << 31);  // of all CTAs: a minute or so

/// A dense number for every block of A, B and C.
struct Blocks {
    Int rows, columns, k;

    explicit Blocks(const TileSchedule& g) : rows(g.tile_rows()), columns(g.tile_columns()), k(g.k_blocks()) {
        const double tiles = double(rows) * double(columns), steps = tiles * double(k);
        const double all = (double(rows) + double(columns)) * double(k) + tiles;
        if (all > double(max_blocks) || steps > max_steps)
            throw RequestError(fmt::format(
                "{:.3g} blocks and {:.3g} steps are too many to follow one by one; at most {} and "
                "{:.3g} are",
                all, steps, max_blocks, max_steps));
    }
    Int of_line(Int line, Int k_block) const { return line * k + k_block; }
    Int of_c(Int row, Int column) const { return (rows + columns) * k + row * columns + column; }
    Int count() const { return (rows + columns) * k + rows * columns; }
};

/// On which of `sides` a cluster stands: the hardware promises no placement, so they are strewn, with no
/// pattern that the tile schedule over C could fall in with.
int side_of(std::size_t cluster, int sides) {
    if (sides == 1) return 0;
    return int((std::uint64_t(cluster) + 1) * 0x9e3779b97f4a7c15u >> 63);
}

/// Sends every access of a tile schedule to `cache`, in the order of time:
///   cache.read(side, block, bytes) -> bytes that DRAM sends for it
///   cache.write(side, block, bytes)
/// The clusters of a step that stand on one side of `sides` share a request.
template <class Cache>
class Follower {
  public:
    Follower(const TileSchedule& g, const Blocks& blocks, int sides, Cache& cache)
        : g_(g), blocks_(blocks), sides_(sides), cache_(cache), tiles_(scheduled_tiles(g)) {
        lines_.resize(std::size_t((blocks.rows + blocks.columns) * sides));
    }

    GemmTraffic run() {
        traffic_ = fixed_traffic(g_);
        const auto k_order = k_sequence(g_);
        const Int all = g_.rounds() * Int(k_order.size());
        const bool lags = g_.first_late() < g_.clusters;
        // Time in steps of those that do not lag. Who is late takes a step after the others' of that time.
        for (Int now = 0, late = 0; now < all || (lags && late < all);) {
            const bool behind = lags && late < all && double(late) * (1 + g_.skew) < double(now);
            if (behind || now == all) take(late++, k_order, true);
            else take(now++, k_order, false);
        }
        return traffic_;
    }

  private:
    /// A step of those who lag or of the others.
    void take(Int step, const std::vector<Int>& k_order, bool late) {
        const Int steps = Int(k_order.size()), begin = step / steps * g_.clusters;
        const Int from = late ? g_.first_late() : 0, to = late ? g_.clusters : g_.first_late();
        const auto end = [&](Int cluster) { return std::min(begin + cluster, Int(tiles_.size())); };
        const auto round =
            std::span(tiles_).subspan(std::size_t(end(from)), std::size_t(end(to) - end(from)));
        first_ = std::size_t(from);
        ++step_;
        read(round, k_order[std::size_t(step % steps)]);
        count(round);
        if (step % steps == steps - 1) write(round);
    }
    /// A cluster and its tiles of C.
    struct Part {
        std::size_t cluster;
        int side;
        Int row, row_end, column, column_end;
    };
    /// A tile row of A or tile column of B, as one side sees it.
    struct Line {
        Int step = 0;
        std::size_t asker = 0;  ///< the cluster that asked in that step
        bool missed = false;
    };

    template <class Visit>
    void for_each_part(std::span<const TileCoordinate> round, Visit visit) const {
        for (std::size_t w = 0; w < round.size(); ++w) {
            const Int row = Int{round[w].row} * g_.cluster_m, column = Int{round[w].column} * g_.cluster_n;
            visit(Part{first_ + w, side_of(first_ + w, sides_), row,
                       std::min(row + g_.cluster_m, blocks_.rows), column,
                       std::min(column + g_.cluster_n, blocks_.columns)});
        }
    }
    Line& line(const Part& part, Int index) { return lines_[std::size_t(index * sides_ + part.side)]; }

    void read(std::span<const TileCoordinate> round, Int k_block) {
        const Int width = std::min<Int>(g_.tile_k, g_.k - k_block * g_.tile_k);
        const auto ask = [&](const Part& part, Int index, Int line_bytes, Int& dram) {
            Line& l = line(part, index);
            if (l.step == step_) return;
            const Int bytes = cache_.read(part.side, blocks_.of_line(index, k_block), line_bytes * width);
            l = {step_, part.cluster, bytes > 0};
            dram += bytes;
        };
        for_each_part(round, [&](const Part& part) {
            for (Int i = part.row; i < part.row_end; ++i) ask(part, i, g_.a_line(i), traffic_.dram_a_bytes);
            for (Int j = part.column; j < part.column_end; ++j)
                ask(part, blocks_.rows + j, g_.b_line(j), traffic_.dram_b_bytes);
        });
    }
    void count(std::span<const TileCoordinate> round) {
        for_each_part(round, [&](const Part& part) {
            for (Int i = part.row; i < part.row_end; ++i)
                for (Int j = part.column; j < part.column_end; ++j) {
                    const Line &x = line(part, i), &y = line(part, blocks_.rows + j);
                    const bool a = !x.missed || x.asker != part.cluster;
                    const bool b = !y.missed || y.asker != part.cluster;
                    traffic_.a_hits += a, traffic_.b_hits += b, traffic_.both_hits += a && b;
                    traffic_.dram_waits += x.missed || y.missed;
                }
        });
    }
    void write(std::span<const TileCoordinate> round) {
        for_each_part(round, [&](const Part& part) {
            for (Int i = part.row; i < part.row_end; ++i)
                for (Int j = part.column; j < part.column_end; ++j)
                    cache_.write(part.side, blocks_.of_c(i, j), g_.c_tile(i, j));
        });
    }

    const TileSchedule& g_;
    const Blocks& blocks_;
    const int sides_;
    Cache& cache_;
    const std::vector<TileCoordinate> tiles_;
    std::vector<Line> lines_;
    Int step_ = 0;
    std::size_t first_ = 0;  ///< cluster of a step's first tile
    GemmTraffic traffic_;
};

template <class Cache>
GemmTraffic follow(const TileSchedule& g, const Blocks& blocks, int sides, Cache& cache) {
    return Follower<Cache>(g, blocks, sides, cache).run();
}

/// Blocks from the one used last to the one to go next, linked through their numbers.
class LruCache {
  public:
    LruCache(Int blocks, Int capacity)
        : nodes_(std::size_t(blocks) + 1), end_(int(blocks)), capacity_(capacity) {
        nodes_.back() = {end_, end_, 0};
    }

    /// True where the block was there. It is the last used now; what no longer fits is gone.
    bool touch(Int block, Int bytes) {
        const int b = int(block);
        const bool hit = node(b).bytes > 0;
        if (hit) unlink(b);
        else held_ += bytes;
        link_first(b, bytes);
        while (held_ > capacity_) {
            const int last = node(end_).before;
            held_ -= node(last).bytes;
            unlink(last);
            node(last).bytes = 0;
        }
        return hit;
    }

  private:
    struct Node {
        int before = 0, after = 0;
        Int bytes = 0;  ///< 0: not here
    };
    Node& node(int b) { return nodes_[std::size_t(b)]; }
    void unlink(int b) {
        node(node(b).before).after = node(b).after;
        node(node(b).after).before = node(b).before;
    }
    void link_first(int b, Int bytes) {
        node(b) = {end_, node(end_).after, bytes};
        node(node(b).after).before = b;
        node(end_).after = b;
    }
    std::vector<Node> nodes_;
    const int end_;
    const Int capacity_;
    Int held_ = 0;
};

struct OneLru {
    LruCache cache;
    Int read(int, Int block, Int bytes) { return cache.touch(block, bytes) ? 0 : bytes; }
    void write(int, Int block, Int bytes) { cache.touch(block, bytes); }
};

struct TwoHalves {
    LruCache halves[2];
    Int fabric = 0;

    static Int part(Int bytes, int home) { return home == 0 ? bytes / 2 : bytes - bytes / 2; }
    Int read(int side, Int block, Int bytes) {
        Int dram = 0;
        for (int home : {0, 1}) {
            const Int size = part(bytes, home), id = 2 * block + home;
            if (size == 0 || halves[side].touch(id, size)) continue;
            if (home != side) {
                fabric += size;
                if (halves[home].touch(id, size)) continue;
            }
            dram += size;
        }
        return dram;
    }
    void write(int side, Int block, Int bytes) {
        for (int home : {0, 1}) {
            const Int size = part(bytes, home);
            if (size == 0) continue;
            if (home != side) fabric += size;
            halves[home].touch(2 * block + home, size);
        }
    }
};

struct Recorder {
    std::vector<int> blocks;
    Int read(int, Int block, Int) {
        if (Int(blocks.size()) == max_accesses)
            throw RequestError(
                fmt::format("more than {} requests are too many to look ahead over", max_accesses));
        blocks.push_back(int(block));
        return 0;
    }
    void write(int, Int, Int) {}
};

/// Knows the future: the next use of what is read at each access.
class OptCache {
  public:
    static constexpr int never = std::numeric_limits<int>::max();

    OptCache(const std::vector<int>& accesses, Int blocks, Int capacity)
        : next_(accesses.size()),
          held_(std::size_t(blocks)),
          due_(std::size_t(blocks), never),
          capacity_(capacity) {
        for (std::size_t i = accesses.size(); i-- > 0;) {
            int& due = due_[std::size_t(accesses[i])];
            next_[i] = std::exchange(due, int(i));
        }
    }

    Int read(int, Int block, Int bytes) {
        Int& held = held_[std::size_t(block)];
        const Int missing = bytes - held;
        const int due = due_[std::size_t(block)] = next_[now_++];
        all_ += missing;
        held = bytes;
        if (due == never) all_ -= std::exchange(held, 0);
        else last_.emplace(due, int(block));
        while (all_ > capacity_) drop_last();
        return missing;
    }
    void write(int, Int, Int) {}

  private:
    void drop_last() {
        const auto [due, block] = last_.top();
        Int& held = held_[std::size_t(block)];
        // What has been used meanwhile stands in the queue once more, under its new date.
        const Int excess = due == due_[std::size_t(block)] ? std::min(held, all_ - capacity_) : 0;
        held -= excess;
        all_ -= excess;
        if (due != due_[std::size_t(block)] || held == 0) last_.pop();
    }
    std::vector<int> next_;                          // by access
    std::vector<Int> held_;                          // by block, bytes
    std::vector<int> due_;                           // by block, the next access
    std::priority_queue<std::pair<int, int>> last_;  // (next access, block), the latest on top
    const Int capacity_;
    Int all_ = 0;
    std::size_t now_ = 0;
};

}  // namespace

GemmTraffic simulate_blocks(const TileSchedule& tile_schedule, Int capacity) {
    check(tile_schedule);
    const Blocks blocks(tile_schedule);
    OneLru cache{{blocks.count(), capacity}};
    return follow(tile_schedule, blocks, 1, cache);
}

GemmTraffic simulate_opt(const TileSchedule& lagging, Int capacity) {
    check(lagging);
    TileSchedule tile_schedule = lagging;
    tile_schedule.late_clusters = 0;
    const Blocks blocks(tile_schedule);
    Recorder recorder;
    follow(tile_schedule, blocks, 1, recorder);
    OptCache cache(recorder.blocks, blocks.count(), capacity);
    return follow(tile_schedule, blocks, 1, cache);
}

GemmTraffic simulate_halves(const TileSchedule& tile_schedule, Int half_bytes) {
    check(tile_schedule);
    const Blocks blocks(tile_schedule);
    TwoHalves cache{{{2 * blocks.count(), half_bytes}, {2 * blocks.count(), half_bytes}}};
    GemmTraffic traffic = follow(tile_schedule, blocks, 2, cache);
    traffic.fabric_bytes = cache.fabric;
    return traffic;
}

}  // namespace rooftile
