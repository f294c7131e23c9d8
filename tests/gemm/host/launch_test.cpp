#include <gtest/gtest.h>

#include <tuple>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm90_launch.hpp"

namespace rooftile {
namespace {

constexpr Sm90GemmConfig base = {.tile_m = 128,
                                 .tile_n = 256,
                                 .tile_k = 64,
                                 .stages = 4,
                                 .consumer_warpgroups = 2,
                                 .schedule = Schedule::cooperative,
                                 .cluster_m = 1,
                                 .cluster_n = 1,
                                 .ctas_per_sm = 1,
                                 .producer_registers = 40,
                                 .consumer_registers = 232,
                                 .type = Type::bf16,
                                 .a_major = Major::k,
                                 .b_major = Major::k,
                                 .tma_store = true};

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

// What a member has where the name does not say it is its default: one text for each configuration.
TEST(GemmLaunch, TheNameHoldsEveryMemberThatIsNotAtItsDefault) {
    EXPECT_EQ(sm90_name_expression(base),
              "rooftile::sm90_gemm<rooftile::Sm90GemmConfig{.tile_m=128, .tile_n=256, .tile_k=64, .stages=4, "
              ".consumer_warpgroups=2, .cluster_m=1, .cluster_n=1, .ctas_per_sm=1, .producer_registers=40, .consumer_registers=232, "
              ".tma_store=true}>");
    Sm90GemmConfig other = base;
    other.schedule = Schedule::pingpong;
    other.swap_ab = true;
    other.type = Type::fp16;
    other.b_major = Major::mn;
    other.tma_store = false;
    other.ablated = Ablation::loads;
    const std::string name = sm90_name_expression(other);
    for (const char* part : {".schedule=rooftile::Schedule::pingpong", ".swap_ab=true", ".type=rooftile::Type::fp16", ".b_major=rooftile::Major::mn",
                             ".ablated=rooftile::Ablation::"})
        EXPECT_NE(name.find(part), std::string::npos) << part;
    EXPECT_EQ(name.find("tma_store"), std::string::npos);
    // Members of the planner alone do not part kernels.
    other.epilogue_registers = 12, other.expression = true;
    EXPECT_EQ(sm90_name_expression(other), name);
}

TEST(GemmLaunch, TheGridIsWhatIsResidentOrTheTilesWhereTheyAreFewer) {
    // 4096 / 128 = 32 rows, 14336 / 256 = 56 columns: 1792 tiles on 132 CTAs.
    EXPECT_EQ(gemm_grid(base, {4096, 14336, 4096, 4096, 4096, 14336}, 132), 132);
    // ceil(129 / 128) = 2 rows, ceil(257 / 256) = 2 columns: 4 tiles.
    EXPECT_EQ(gemm_grid(base, {129, 257, 8, 8, 8, 264}, 132), 4);
    EXPECT_EQ(gemm_grid(base, {1, 1, 1, 8, 8, 8}, 132), 1);
    // Counts are known on the device alone: of 130 rows in three groups at most 1 + 1 + 128, a row of tiles each; in one group two.
    GemmShape groups{130, 256, 8, 8, 8, 256};
    groups.groups = 3;
    EXPECT_EQ(gemm_grid(base, groups, 132), 3);
    groups.groups = 1;
    EXPECT_EQ(gemm_grid(base, groups, 132), 2);
    groups.groups = 200;  // more than rows
    EXPECT_EQ(gemm_grid(base, groups, 132), 130);
    // Clusters of two along M: ceil(129 / 256) = 1 cluster tile, 2 CTAs; never half a cluster.
    Sm90GemmConfig cluster = base;
    cluster.cluster_m = 2;
    EXPECT_EQ(gemm_grid(cluster, {129, 256, 8, 8, 8, 256}, 132), 2);
    EXPECT_EQ(gemm_grid(cluster, {8192, 8192, 8, 8, 8, 8192}, 131), 130);
}

TEST(GemmLaunch, PartsOfKAreCtasOfOneCluster) {
    Sm90GemmConfig split = base;
    split.split_k = 4;
    EXPECT_EQ(split.cluster_ctas(), 4);
    EXPECT_EQ(gemm_grid(split, {256, 256, 8192, 8192, 8192, 256}, 132), 8);  // 2 tiles of 4 parts
    EXPECT_EQ(gemm_grid(split, {8192, 8192, 64, 64, 64, 8192}, 131), 128);   // 32 clusters
    split.cluster_m = 2;                                                     // 2 tiles of 4 parts a cluster
    EXPECT_EQ(gemm_grid(split, {8192, 8192, 64, 64, 64, 8192}, 132), 128);   // 16 clusters of 8
    EXPECT_NE(sm90_name_expression(split).find(".split_k=4"), std::string::npos);
}

TEST(GemmLaunch, AsManyTilesAsAnIntCannotCountAreRefused) {
    // 2^31 / 128 = 2^24 rows, 2^31 / 256 = 2^23 columns: 2^47 tiles.
    const std::int64_t most = 2147483647;
    EXPECT_THROW(gemm_grid(base, {most, most, 8, 8, 8, most}, 132), RequestError);
    EXPECT_EQ(gemm_grid(base, {most, 256, 8, 8, 8, 256}, 132), 132);
}

TEST(GemmLaunch, KMajorBoxesAreSlicesOfATileOneSwizzleSpanWide) {
    GemmTensors tensors =
        gemm_tensors(base, {1000, 2000, 520, 528, 536, 2008}, at(0x1000), at(0x2000), at(0x3000));
    EXPECT_EQ(tensors.a.base, 0x1000u);
    EXPECT_EQ(tensors.a.inner, 520);
    EXPECT_EQ(tensors.a.outer, 1000);
    EXPECT_EQ(tensors.a.outer_stride_bytes, 1056);
    EXPECT_EQ(tensors.a.box_inner, 64);
    EXPECT_EQ(tensors.a.box_outer, 128);
    EXPECT_EQ(tensors.b.inner, 520);
    EXPECT_EQ(tensors.b.outer, 2000);
    EXPECT_EQ(tensors.b.outer_stride_bytes, 1072);
    EXPECT_EQ(tensors.b.box_outer, 256);
    EXPECT_EQ(tensors.c.inner, 2000);
    EXPECT_EQ(tensors.c.outer, 1000);
    EXPECT_EQ(tensors.c.outer_stride_bytes, 4016);
    EXPECT_EQ(tensors.c.box_inner, 64);  // 256 columns divide into epilogue tiles of 64
    EXPECT_EQ(tensors.c.box_outer, 16);
    EXPECT_EQ(tensors.c.swizzle_bytes, 128);
    EXPECT_EQ(tensors.c.base, 0x3000u);
}

TEST(GemmLaunch, MnMajorBoxesAre64WideAndAStageDeep) {
    Sm90GemmConfig config = base;
    config.a_major = config.b_major = Major::mn;
    GemmTensors tensors =
        gemm_tensors(config, {1000, 2000, 520, 1008, 2008, 2008}, at(0x1000), at(0x2000), at(0x3000));
    EXPECT_EQ(tensors.a.inner, 1000);
    EXPECT_EQ(tensors.a.outer, 520);
    EXPECT_EQ(tensors.a.outer_stride_bytes, 2016);
    EXPECT_EQ(tensors.a.box_inner, 64);
    EXPECT_EQ(tensors.a.box_outer, 64);
    EXPECT_EQ(tensors.b.inner, 2000);
    EXPECT_EQ(tensors.b.outer, 520);
    EXPECT_EQ(tensors.b.box_outer, 64);
}

TEST(GemmLaunch, AClusterSplitsTheOperandItShares) {
    Sm90GemmConfig config = base;
    config.cluster_m = 2;  // CTAs above each other share B
    GemmTensors tensors = gemm_tensors(config, {1024, 1024, 64, 64, 64, 1024}, at(16), at(16), at(16));
    EXPECT_EQ(tensors.a.box_outer, 128);
    EXPECT_EQ(tensors.b.box_outer, 128);
    config.cluster_m = 1;
    config.cluster_n = 2;  // CTAs beside each other share A
    tensors = gemm_tensors(config, {1024, 1024, 64, 64, 64, 1024}, at(16), at(16), at(16));
    EXPECT_EQ(tensors.a.box_outer, 64);
    EXPECT_EQ(tensors.b.box_outer, 256);
}

// 128x256x64: A is 128 rows of 128 B, B 256.
TEST(GemmLaunch, OfATileLargerThanCOnlyWhatExistsIsLoaded) {
    const auto copies = [](const Sm90GemmConfig& config, std::int64_t m, std::int64_t n) {
        return gemm_copies(config, {m, n, 64, 64, 64, n});
    };
    GemmCopies all = copies(base, 128, 256);
    EXPECT_EQ(all.a.box, 128);
    EXPECT_EQ(all.a.slices, 1);
    EXPECT_EQ(all.b.box, 256);
    EXPECT_EQ(all.stage_bytes, base.stage_bytes());
    EXPECT_EQ(copies(base, 5000, 5000).stage_bytes, base.stage_bytes());
    for (auto [m, box] : {std::tuple{1, 8}, {8, 8}, {9, 16}, {100, 104}, {127, 128}}) {
        EXPECT_EQ(copies(base, m, 256).a.box, box) << m;
        EXPECT_EQ(copies(base, m, 256).stage_bytes, (box + 256) * 128) << m;
    }
    EXPECT_EQ(copies(base, 1, 24).b.box, 24);
    EXPECT_EQ(copies(base, 1, 24).stage_bytes, (8 + 24) * 128);
    EXPECT_EQ(gemm_tensors(base, {1, 24, 64, 64, 64, 24}, at(16), at(16), at(16)).a.box_outer, 8);
    EXPECT_EQ(gemm_tensors(base, {1, 24, 64, 64, 64, 24}, at(16), at(16), at(16)).b.box_outer, 24);

    // Two CTAs beside each other load 64 rows each; of 16 rows the second has none.
    Sm90GemmConfig cluster = base;
    cluster.cluster_n = 2;
    EXPECT_EQ(copies(cluster, 16, 512).a.box, 16);
    EXPECT_EQ(copies(cluster, 16, 512).a.slices, 1);
    EXPECT_EQ(copies(cluster, 16, 512).stage_bytes, (16 + 256) * 128);
    EXPECT_EQ(copies(cluster, 65, 512).a.box, 64);
    EXPECT_EQ(copies(cluster, 65, 512).a.slices, 2);
    EXPECT_EQ(copies(cluster, 65, 512).stage_bytes, cluster.stage_bytes());
    cluster.cluster_n = 1;
    cluster.cluster_m = 2;  // above each other: 128 columns each
    EXPECT_EQ(copies(cluster, 256, 128).b.slices, 1);
    EXPECT_EQ(copies(cluster, 256, 128).stage_bytes, (128 + 128) * 128);
    EXPECT_EQ(copies(cluster, 256, 129).b.slices, 2);

    // An mn-major box is one swizzle span wide, whatever exists of it.
    Sm90GemmConfig transposed = base;
    transposed.a_major = transposed.b_major = Major::mn;
    EXPECT_EQ(copies(transposed, 8, 8).stage_bytes, base.stage_bytes());
}

// A k-major box reads 128 of the 256 B that L2 would fetch; what is dropped first must not wait for the rest.
TEST(GemmLaunch, WhatIsEvictedFirstIsFetchedNoFurtherThanABox) {
    const auto promotion = [](CachePolicy a, CachePolicy b) {
        const GemmTensors t = gemm_tensors(base, {256, 512, 64, 64, 64, 512}, at(16), at(16), at(16), a, b);
        return std::tuple{t.a.l2_promotion_bytes, t.b.l2_promotion_bytes, t.c.l2_promotion_bytes};
    };
    EXPECT_EQ(promotion(CachePolicy::normal, CachePolicy::normal), std::tuple(256, 256, 0));
    EXPECT_EQ(promotion(CachePolicy::evict_first, CachePolicy::normal), std::tuple(128, 256, 0));
    EXPECT_EQ(promotion(CachePolicy::normal, CachePolicy::evict_first), std::tuple(256, 128, 0));
}

// What one cluster alone reads streams faster so; rows off a line of 128 B would make every box fetch parts of two pairs of lines.
TEST(GemmLaunch, WhatIsReadOnceOrLiesOffTheLineIsFetchedNoFurtherThanABox) {
    const auto promotion = [](const GemmShape& shape) {
        const GemmTensors t =
            gemm_tensors(base, shape, at(16), at(16), at(16), CachePolicy::normal, CachePolicy::normal);
        return std::pair{t.a.l2_promotion_bytes, t.b.l2_promotion_bytes};
    };
    EXPECT_EQ(promotion({256, 512, 64, 64, 64, 512}), std::pair(256, 256));
    EXPECT_EQ(promotion({128, 512, 64, 64, 64, 512}), std::pair(256, 128));  // one row of tiles: B is read once
    EXPECT_EQ(promotion({256, 256, 64, 64, 64, 256}), std::pair(128, 256));
    EXPECT_EQ(promotion({256, 512, 64, 72, 64, 512}), std::pair(128, 256));
    EXPECT_EQ(promotion({256, 512, 64, 128, 96, 512}), std::pair(256, 128));
}

TEST(GemmLaunch, ATableHoldsTheScheduleOfOrdersWithoutAClosedForm) {
    // 3 x 2 cluster tiles of 256 x 256.
    Sm90GemmConfig cluster = base;
    cluster.cluster_m = 2;
    const ClusterTiles tiles = cluster_tiles(cluster, {700, 300, 64, 64, 64, 300});
    EXPECT_EQ(tiles.rows, 3);
    EXPECT_EQ(tiles.columns, 2);
    EXPECT_EQ(schedule_table(Order::morton, tiles),
              (std::vector<std::uint32_t>{0, 1, 1 << 16, (1 << 16) + 1, 2 << 16, (2 << 16) + 1}));
    EXPECT_EQ(schedule_table(Order::hilbert, {2, 2}),
              (std::vector<std::uint32_t>{0, 1 << 16, (1 << 16) + 1, 1}));
    EXPECT_NO_THROW(schedule_table(Order::morton, {65536, 1}));
    try {
        schedule_table(Order::hilbert, {65537, 3});
        FAIL();
    } catch (const RequestError& error) {
        EXPECT_NE(std::string(error.what()).find("order hilbert on 65537 x 3 tiles"), std::string::npos);
    }
}

TEST(GemmLaunch, TheEpilogueTileFollowsTheTile) {
    for (auto [tile_n, epilogue_tile, swizzle] : {std::tuple{192, 64, 128}, {160, 32, 64}, {48, 16, 32}}) {
        Sm90GemmConfig config = base;
        config.tile_n = tile_n;
        GemmTensors tensors = gemm_tensors(config, {64, 192, 64, 64, 64, 192}, at(16), at(16), at(16));
        EXPECT_EQ(tensors.c.box_inner, epilogue_tile) << tile_n;
        EXPECT_EQ(tensors.c.swizzle_bytes, swizzle) << tile_n;
    }
}

// 208 columns are 13 sectors: eight rows of them begin in four different groups of banks as they are.
TEST(GemmLaunch, AnEpilogueTileOfAnOddNumberOfSectorsIsNotSwizzled) {
    EXPECT_EQ(base.odd_columns(208), 208);
    EXPECT_EQ(base.odd_columns(224), 112);
    EXPECT_EQ(base.odd_columns(192), 48);
    EXPECT_EQ(base.odd_columns(256), 16);
    Sm90GemmConfig config = base;
    config.tile_n = 208;
    EXPECT_EQ(config.epilogue_tiles_of_a_row(), 13);
    config.epilogue_tile_n = 208;
    EXPECT_EQ(config.epilogue_tiles_of_a_row(), 1);
    EXPECT_EQ(config.epilogue_tiles(), 2 * config.wgmma_rows());
    const GemmTensors tensors = gemm_tensors(config, {64, 192, 64, 64, 64, 192}, at(16), at(16), at(16));
    EXPECT_EQ(tensors.c.box_inner, 208);
    EXPECT_EQ(tensors.c.box_outer, 8);
    EXPECT_EQ(tensors.c.swizzle_bytes, 0);
}

// Columns of C in boxes of 64, one swizzle span; rows in the fewest boxes of at most 64 that have one height: of 136 rows 48,
// of which the last eight are stored twice.
TEST(GemmLaunch, ATurnedTileLeavesInBoxesOfOneHeight) {
    struct Case {
        int tile_m, split_k, rows, tiles, last;
    };
    for (const Case& c : {Case{8, 1, 8, 1, 0},
                          {64, 1, 64, 1, 0},
                          {72, 1, 40, 2, 32},
                          {136, 1, 48, 3, 88},
                          {256, 1, 64, 4, 192},
                          {200, 1, 56, 4, 144},
                          {144, 2, 40, 2, 32},
                          {192, 3, 64, 1, 0}}) {
        SCOPED_TRACE(c.tile_m);
        Sm90GemmConfig config = base;
        config.swap_ab = true;
        config.tile_m = c.tile_m, config.tile_n = 256, config.split_k = c.split_k;
        EXPECT_EQ(config.wgmma_rows(), 2);  // two warpgroups of 128 columns
        EXPECT_EQ(config.accumulator_registers(), c.tile_m);
        EXPECT_EQ(config.turned_tiles(), c.tiles);
        EXPECT_EQ(config.turned_row(c.tiles - 1), c.last);
        for (int i = 1; i < c.tiles; ++i) EXPECT_LE(config.turned_row(i), config.turned_row(i - 1) + c.rows);
        EXPECT_EQ(config.epilogue_tiles(), 2 * c.tiles);
        EXPECT_EQ(config.epilogue_tile_bytes(), c.rows * 128);
        const GemmTensors tensors = gemm_tensors(config, {300, 512, 64, 64, 64, 512}, at(16), at(16), at(16));
        EXPECT_EQ(tensors.a.box_outer, c.tile_m);
        EXPECT_EQ(tensors.b.box_outer, 256);
        EXPECT_EQ(tensors.c.box_inner, 64);
        EXPECT_EQ(tensors.c.box_outer, c.rows);
        EXPECT_EQ(tensors.c.swizzle_bytes, 128);
    }
}

// What TMA reads at address a of a 128-byte swizzle is the element at a ^ (a / 128 % 8) * 16 of rows as they lie. Lane 8 k + r
// addresses row r of matrix k; matrices 0 and 1 are beside each other, 2 and 3 eight rows below.
TEST(GemmLaunch, ATurnedTileIsSwizzledAsTmaReadsIt) {
    for (int warp = 0; warp < 4; ++warp)
        for (int lane = 0; lane < 32; ++lane) {
            const int matrix = lane / 8, offset = Sm90GemmConfig::turned_offset(warp, lane);
            const int lies = offset ^ (offset / 128 % 8) * 16;
            EXPECT_EQ(lies / 128, matrix / 2 * 8 + lane % 8) << warp << ' ' << lane;
            EXPECT_EQ(lies % 128, (16 * warp + matrix % 2 * 8) * 2) << warp << ' ' << lane;
            for (int other = matrix * 8; other < lane; ++other)  // eight rows, eight groups of banks
                EXPECT_NE(offset % 128, Sm90GemmConfig::turned_offset(warp, other) % 128);
        }
}

TEST(GemmLaunch, ThePartsOfKStoreSharesOfTheColumns) {
    for (auto [tile_n, split_k, epilogue_tile, swizzle] : {std::tuple{256, 2, 64, 128},
                                                           {256, 8, 32, 64},
                                                           {192, 3, 64, 128},
                                                           {128, 8, 16, 32},
                                                           {64, 8, 8, 0}}) {
        Sm90GemmConfig config = base;
        config.tile_n = tile_n;
        config.split_k = split_k;
        EXPECT_EQ(config.share_n() * split_k, tile_n);
        GemmTensors tensors = gemm_tensors(config, {64, 192, 64, 64, 64, 192}, at(16), at(16), at(16));
        EXPECT_EQ(tensors.c.box_inner, epilogue_tile) << tile_n << ' ' << split_k;
        EXPECT_EQ(tensors.c.swizzle_bytes, swizzle) << tile_n << ' ' << split_k;
    }
}

std::string refusal(const Sm90GemmConfig& config, const GemmShape& shape, std::uint64_t a = 0x1000,
                    std::uint64_t b = 0x2000, std::uint64_t c = 0x3000) {
    try {
        check_operands(config, shape, at(a), at(b), at(c));
        return "";
    } catch (const RequestError& error) { return error.what(); }
}

TEST(GemmLaunch, WhatTheKernelCannotAddressIsNamed) {
    const GemmShape good = {100, 200, 300, 304, 304, 200};
    EXPECT_EQ(refusal(base, good), "");
    EXPECT_EQ(refusal(base, {0, 200, 300, 304, 304, 200}), "M is 0; 1 to 2147483647 are accepted");
    EXPECT_NE(refusal(base, {100, -1, 300, 304, 304, 200}), "");
    EXPECT_NE(refusal(base, {100, 200, 1ll << 31, 1ll << 31, 1ll << 31, 200}), "");
    EXPECT_EQ(refusal(base, {100, 200, 300, 296, 304, 200}),
              "lda is 296, less than the 300 elements of a line");
    EXPECT_EQ(refusal(base, {100, 200, 300, 304, 300, 200}),
              "ldb is 300; the kernel needs a multiple of 8 elements");
    EXPECT_NE(refusal(base, {100, 200, 300, 304, 304, 201}).find("ldc is 201"), std::string::npos);
    EXPECT_NE(refusal(base, {100, 199, 300, 304, 304, 200}).find("N is 199"), std::string::npos);
    EXPECT_NE(refusal(base, {100, 200, 300, 1ll << 39, 304, 200}).find("2^40 B"), std::string::npos);
    EXPECT_EQ(refusal(base, good, 0), "the pointer to A is null");
    EXPECT_EQ(refusal(base, good, 0x1008), "A at 0x1008 is not aligned to 16 B");
    EXPECT_EQ(refusal(base, good, 0x1000, 0x2002), "B at 0x2002 is not aligned to 16 B");
    EXPECT_EQ(refusal(base, good, 0x1000, 0x2000, 0x3008), "C at 0x3008 is not aligned to 16 B");
    // Predicated stores take any ldc and any whole element.
    Sm90GemmConfig predicated = base;
    predicated.tma_store = false;
    EXPECT_EQ(refusal(predicated, {100, 201, 300, 304, 304, 201}, 0x1000, 0x2000, 0x3002), "");
    EXPECT_NE(refusal(predicated, good, 0x1000, 0x2000, 0x3001), "");
    // The contiguous index of an m-major A is m.
    Sm90GemmConfig transposed = base;
    transposed.a_major = Major::mn;
    EXPECT_EQ(refusal(transposed, {100, 200, 300, 104, 304, 200}), "");
}

}  // namespace
}  // namespace rooftile
