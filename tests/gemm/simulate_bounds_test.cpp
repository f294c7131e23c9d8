// No simulated traffic below its bound, whatever the tile schedule, the cache and the order.
#include <gtest/gtest.h>

#include <random>

#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/simulate_blocks.hpp"
#include "rooftile/gemm/simulate_lru.hpp"
#include "tests/gemm/random_schedule.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

const int cases = test_all() ? 120000 : 30000;  // 100,000 at least of all

GemmSizes sizes_of(const TileSchedule& g) {
    return {double(g.m),       double(g.n), double(g.k),              double(g.a_bytes),
            double(g.b_bytes), g.c_bytes,   std::max(4, g.c_bytes)};
}
/// What a cluster holds while it multiplies: one step of A and B and the sums of its tiles, a part of K each.
double cluster_bytes(const TileSchedule& g) {
    const double step = double(g.tile_m * g.a_bytes + g.tile_n * g.b_bytes) * g.tile_k;
    const double sums = double(g.tile_m) * g.tile_n * std::max(4, g.c_bytes);
    return (step + sums) * g.cluster_m * g.cluster_n * g.split_k;
}
/// Longer and larger than what the equalities are tried on, so that reuse binds and not size alone.
TileSchedule large_schedule(std::mt19937& random) {
    const auto number = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    TileSchedule g = random_schedule(number);
    if (number(0, 1) == 0) return g;
    g.m = number(1, 40), g.n = number(1, 40), g.k = number(1, 200);
    g.clusters = number(1, 3);
    return g;
}

TEST(Bounds, HoldOverRandomSchedules) {
    std::mt19937 random(20261122);
    int reuse_binds = 0, l2_reuse_binds = 0;
    double nearest = 1e9, nearest_l2 = 1e9;
    for (int i = 0; i < cases; ++i) {
        const TileSchedule g = large_schedule(random);
        const auto all = all_bytes(g);
        const std::int64_t capacity =
            std::uniform_int_distribution<std::int64_t>(0, all / (1 + i % 8))(random);
        const GemmTraffic lru = simulate_lru(g, capacity);
        const GemmTraffic opt = i % 16 == 0 ? simulate_opt(g, capacity) : lru;
        const double chip = double(capacity) + cluster_bytes(g) * double(g.clusters);
        const double dram_bound = min_traffic_bytes(sizes_of(g), chip, 1) + double(g.m * g.n * g.operand_bytes);
        ASSERT_GE(double(lru.dram_bytes()), dram_bound) << "case " << i;
        ASSERT_GE(double(opt.dram_bytes()), dram_bound) << "case " << i;
        const double l2_bound = min_traffic_bytes(sizes_of(g), cluster_bytes(g), double(g.clusters));
        const double l2_moved = double(lru.l2_read_bytes + lru.l2_write_bytes);
        ASSERT_GE(l2_moved, l2_bound) << "case " << i;
        if (dram_bound > double(all))
            ++reuse_binds, nearest = std::min(nearest, double(opt.dram_bytes()) / dram_bound);
        if (l2_bound > double(all)) ++l2_reuse_binds, nearest_l2 = std::min(nearest_l2, l2_moved / l2_bound);
    }
    // Or else the bounds say no more than that everything moves once.
    EXPECT_GT(reuse_binds, cases / 100);
    EXPECT_GT(l2_reuse_binds, cases / 100);
    EXPECT_LT(nearest, 1.6);
    EXPECT_LT(nearest_l2, 1.6);
    RecordProperty("dram_reuse_binds", reuse_binds);
    RecordProperty("l2_reuse_binds", l2_reuse_binds);
}

}  // namespace
}  // namespace rooftile
