#include "rooftile/gemm/simulate_blocks.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/physics/l2_cache.hpp"
#include "rooftile/tiled/l2_follower.hpp"
#include "rooftile/tiled/l2_image.hpp"

namespace rooftile {
namespace {

using Int = std::int64_t;

constexpr Int max_blocks = Int{1} << 27;
constexpr Int max_accesses = Int{1} << 27;
constexpr double max_steps = double(Int{1} << 31);  // of all CTAs: a minute or so

/// A tile schedule's blocks of A, B and C, tile by tile.
struct Blocks {
    std::optional<L2Image> image;
    L2Blocks a, b, c;

    // Of an image K is blocks of one tap each, of which the last is shorter in B too.
    explicit Blocks(const TileSchedule& g)
        : image(g.image ? std::optional(L2Image{*g.image, g.tile_k, g.a_bytes, 0}) : std::nullopt),
          a{g.m, g.k, g.tile_m, g.tile_k, g.a_bytes, 0},
          b{g.n, g.k, g.tile_n, g.tile_k, g.b_bytes, of_a(), g.image ? g.image->channels : g.k},
          c{g.m, g.n, g.tile_m, g.tile_n, g.result_bytes(), of_a() + b.count()} {
        const double rows = double(g.tile_rows()), columns = double(g.tile_columns()), k = double(g.k_blocks());
        const double of_a = image ? double(image->count()) : rows * k;
        const double all = of_a + columns * k + rows * columns, steps = rows * columns * k;
        if (all > double(max_blocks) || steps > max_steps)
            throw RequestError(fmt::format(
                "{:.3g} blocks and {:.3g} steps are too many to follow one by one; at most {} and "
                "{:.3g} are",
                all, steps, max_blocks, max_steps));
    }
    Int of_a() const { return image ? image->count() : a.count(); }
    Int count() const { return of_a() + b.count() + c.count(); }
};

template <class Cache>
GemmTraffic follow(const TileSchedule& g, const Blocks& blocks, int sides, Cache& cache, std::vector<TileHits>* tiles = nullptr) {
    const TileWalk walk{.m = g.m, .n = g.n, .k = g.k_blocks() * g.tile_k, .tile_m = g.tile_m, .tile_n = g.tile_n, .tile_k = g.tile_k,
                        .cluster_m = g.cluster_m, .cluster_n = g.cluster_n, .k_parts = g.split_k, .clusters = g.clusters,
                        .late_clusters = g.late_clusters, .skew = g.skew, .order = g.order, .group = g.group};
    L2Operands operands{blocks.a, blocks.b, blocks.c};
    if (blocks.image) operands.image = &*blocks.image;
    L2Steps steps;
    std::vector<L2TileHits> of_tiles;
    if (tiles) steps.tiles = &of_tiles;
    L2Follower<Cache>(walk, operands, cache, steps, false, sides).run(0, g.m, [] { return true; });
    if (tiles) {
        // Those that lag end later than they stand in the order.
        std::ranges::stable_sort(of_tiles, {}, &L2TileHits::place);
        const double k_blocks = double(g.k_blocks());
        for (const L2TileHits& tile : of_tiles) tiles->push_back({tile.row, tile.column, tile.place / g.clusters, double(tile.a_hits) / k_blocks, double(tile.b_hits) / k_blocks});
    }
    GemmTraffic t = fixed_traffic(g);
    t.dram_a_bytes = steps.a_bytes, t.dram_b_bytes = steps.b_bytes;
    t.a_hits = steps.a_hits, t.b_hits = steps.b_hits, t.both_hits = steps.both_hits, t.dram_waits = steps.waits;
    return t;
}

/// All clusters are on its one side.
struct OneSide {
    static int side_of(std::size_t) { return 0; }
};

struct OneLru : OneSide {
    L2Cache cache;
    OneLru(Int blocks, Int capacity) : cache(capacity) { cache.add_tensor(blocks); }
    Int read(int, Int block, Int bytes, Int) { return cache.read(block, bytes) ? 0 : bytes; }
    void write(int, Int block, Int bytes) { cache.write(block, bytes); }
};

struct TwoHalves {
    L2Cache halves[2];
    Int fabric = 0;

    TwoHalves(Int blocks, Int half_bytes) : halves{L2Cache(half_bytes), L2Cache(half_bytes)} {
        for (L2Cache& half : halves) half.add_tensor(2 * blocks);
    }
    /// The hardware promises no placement, so clusters are strewn, with no pattern that the tile schedule over C could fall in with.
    static int side_of(std::size_t cluster) { return int((std::uint64_t(cluster) + 1) * 0x9e3779b97f4a7c15u >> 63); }
    static Int part(Int bytes, int home) { return home == 0 ? bytes / 2 : bytes - bytes / 2; }
    Int read(int side, Int block, Int bytes, Int) {
        Int dram = 0;
        for (int home : {0, 1}) {
            const Int size = part(bytes, home), id = 2 * block + home;
            if (size == 0 || halves[side].read(id, size)) continue;
            if (home != side) {
                fabric += size;
                if (halves[home].read(id, size)) continue;
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
            halves[home].write(2 * block + home, size);
        }
    }
};

struct Recorder : OneSide {
    std::vector<int> blocks;
    Int read(int, Int block, Int, Int) {
        if (Int(blocks.size()) == max_accesses)
            throw RequestError(
                fmt::format("more than {} requests are too many to look ahead over", max_accesses));
        blocks.push_back(int(block));
        return 0;
    }
    void write(int, Int, Int) {}
};

/// Knows the future: the next use of what is read at each access.
class OptCache : public OneSide {
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

    Int read(int, Int block, Int bytes, Int) {
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

GemmTraffic simulate_blocks(const TileSchedule& tile_schedule, Int capacity, std::vector<TileHits>* tiles) {
    check(tile_schedule);
    const Blocks blocks(tile_schedule);
    OneLru cache(blocks.count(), capacity);
    return follow(tile_schedule, blocks, 1, cache, tiles);
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
    TwoHalves cache(blocks.count(), half_bytes);
    GemmTraffic traffic = follow(tile_schedule, blocks, 2, cache);
    traffic.fabric_bytes = cache.fabric;
    return traffic;
}

}  // namespace rooftile
