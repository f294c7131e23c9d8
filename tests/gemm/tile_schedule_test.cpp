#include "rooftile/gemm/tile_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/error.hpp"
#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

TEST(ScheduledTiles, IsTheKernels) {
    for (Order order :
         {Order::row, Order::column, Order::grouped, Order::serpentine, Order::morton, Order::hilbert})
        for (int rows : {1, 2, 5, 8, 31})
            for (int columns : {1, 3, 7, 12})
                for (int group : {1, 2, 3, 16}) {
                    TileSchedule g{.m = rows,
                                   .n = columns,
                                   .k = 1,
                                   .tile_m = 1,
                                   .tile_n = 1,
                                   .tile_k = 1,
                                   .clusters = 1,
                                   .order = order,
                                   .group = group};
                    const auto tile_schedule = scheduled_tiles(g);
                    ASSERT_EQ(tile_schedule.size(), std::size_t(rows) * std::size_t(columns));
                    for (int i = 0; i < rows * columns; ++i) {
                        const TileCoordinate t = order == Order::hilbert ? hilbert_at(i, rows, columns)
                                                 : order == Order::morton
                                                     ? morton_at(i, rows, columns)
                                                     : tile_at(i, rows, columns, order, group);
                        ASSERT_EQ(tile_schedule[std::size_t(i)].row, t.row) << i;
                        ASSERT_EQ(tile_schedule[std::size_t(i)].column, t.column) << i;
                    }
                }
}

TEST(KSequence, PartsGoSideBySide) {
    TileSchedule g{
        .m = 1, .n = 1, .k = 7 * 64 + 1, .tile_m = 1, .tile_n = 1, .tile_k = 64, .split_k = 3, .clusters = 1};
    // 8 blocks in parts of 3: 0 1 2, 3 4 5, 6 7.
    EXPECT_EQ(k_sequence(g), (std::vector<std::int64_t>{0, 3, 6, 1, 4, 7, 2, 5}));
    g.split_k = 16;  // parts that K is too short for have none
    EXPECT_EQ(k_sequence(g), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(FixedTraffic, OfAPair) {
    // 300 x 200 x 64 in tiles of 128 x 128, pairs that share B: 3 x 2 tiles, 2 x 2 pairs. A, 300 * 128 B, for
    // two columns; B, 200 * 128 B, for two rows of pairs, and into two SMs each time.
    const TileSchedule g{.m = 300,
                         .n = 200,
                         .k = 64,
                         .tile_m = 128,
                         .tile_n = 128,
                         .tile_k = 64,
                         .cluster_m = 2,
                         .clusters = 1};
    const GemmTraffic t = fixed_traffic(g);
    EXPECT_EQ(t.l2_read_bytes, 300 * 128 * 2 + 200 * 128 * 2);
    EXPECT_EQ(t.sm_bytes, 300 * 128 * 2 + 200 * 128 * 4);
    EXPECT_EQ(t.l2_write_bytes, 300 * 200 * 2);
    EXPECT_EQ(t.steps, 6);
}

TEST(FixedTraffic, IsWhatTheModelSays) {
    for (int cluster_m : {1, 2})
        for (int cluster_n : {1, 2}) {
            GemmCandidate tile = wgmma_tile(128, 192);
            tile.cluster_m = cluster_m, tile.cluster_n = cluster_n;
            const GemmProblem p = gemm_problem(1000, 900, 320);
            const auto tile_schedule = tile_schedule_of(made_up_gpu(), tile, p, Order::row, 1);
            ASSERT_TRUE(tile_schedule);
            const GemmTraffic t = fixed_traffic(*tile_schedule);
            EXPECT_EQ(double(t.l2_read_bytes + t.l2_write_bytes), l2_bytes(tile, p));
        }
}

TEST(TileSchedule, HasAsManyClustersInFlightAsTheGpuHasRoomFor) {
    GemmCandidate tile = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(1024, 1024, 64);
    EXPECT_EQ(tile_schedule_of(made_up_gpu(), tile, p, Order::row, 1)->clusters, 4);  // 4 SMs
    tile.ctas_per_sm = 2, tile.cluster_m = 2, tile.split_k = 2;
    EXPECT_EQ(tile_schedule_of(made_up_gpu(), tile, p, Order::row, 1)->clusters, 2);  // 8 CTAs, 4 a cluster
    GemmHardware lagging = made_up_gpu();                                      // 4 SMs in one GPC
    lagging.sm_skew = 0.01;
    tile = wgmma_tile(128, 128);
    EXPECT_EQ(tile_schedule_of(lagging, tile, p, Order::row, 1)->late_clusters, 0);
    lagging.sms = 20;
    tile.cluster_n = 2;
    EXPECT_EQ(tile_schedule_of(lagging, tile, p, Order::row, 1)->late_clusters, 2);  // of 10 pairs, a GPC's 2
    EXPECT_EQ(tile_schedule_of(lagging, tile, p, Order::row, 1)->skew, 0.01);
    lagging.sms_per_gpc = unknown_number;
    EXPECT_EQ(tile_schedule_of(lagging, tile, p, Order::row, 1)->late_clusters, 0);
    GemmHardware unknown = made_up_gpu();
    unknown.sms = unknown_number;
    EXPECT_FALSE(tile_schedule_of(unknown, tile, p, Order::row, 1));
}

}  // namespace
}  // namespace rooftile
