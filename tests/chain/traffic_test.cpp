// What a chain moves: by hand, and never less than its bounds.
#include "rooftile/chain/traffic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "rooftile/core/random.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

std::map<std::string, ChainTensorTraffic> by_name(const ChainTraffic& traffic) {
    std::map<std::string, ChainTensorTraffic> out;
    for (const ChainTensorTraffic& t : traffic.tensors) out[std::string(t.name)] = t;
    return out;
}

ChainProduct product(std::int64_t m, std::int64_t n, std::int64_t k, int tile_m, int tile_n, int tile_k, std::int64_t clusters) {
    ChainProduct p;
    p.m = m, p.n = n, p.k = k;
    p.tile_m = tile_m, p.tile_n = tile_n, p.tile_k = tile_k;
    p.clusters = clusters;
    return p;
}

// X 256 x 64, W1 128 x 64, H 256 x 128, W2 64 x 128, Y 256 x 64, 2 B each: 32768, 16384, 65536, 16384 and 32768 B. An L2 that
// holds all reads the inputs once and H never; Y is written back in the end, and H, which the next launch writes again, never.
TEST(ChainTraffic, OfAnL2ThatHoldsAll) {
    const ChainProblem p{.m = 256, .d = 64, .ff = 128, .act = ChainAct::relu};
    const auto t = by_name(two_kernels_traffic(p, product(256, 128, 64, 64, 64, 64, 2), product(256, 64, 128, 64, 64, 64, 2), 1 << 20));
    EXPECT_EQ(t.at("X").read, 32768);
    EXPECT_EQ(t.at("W1").read, 16384);
    EXPECT_EQ(t.at("W2").read, 16384);
    EXPECT_EQ(t.at("H").read, 0);
    EXPECT_EQ(t.at("H").written, 0);
    EXPECT_EQ(t.at("Y").read, 0);
    EXPECT_EQ(t.at("Y").written, 32768);
}

// 130000 B hold H, W2 and Y, 114688 B together, but not X and W1 of the next launch as well, 49152 B: by the time it writes H's last rows
// again some of this one's have been driven out.
TEST(ChainTraffic, HIsWrittenBackWhereTheNextLaunchWantsItsPlace) {
    const ChainProblem p{.m = 256, .d = 64, .ff = 128, .act = ChainAct::relu};
    const ChainProduct first = product(256, 128, 64, 64, 64, 64, 2), second = product(256, 64, 128, 64, 64, 64, 2);
    const auto written = [&](std::int64_t l2) { return by_name(two_kernels_traffic(p, first, second, l2)).at("H").written; };
    EXPECT_EQ(written(250000), 0);
    EXPECT_GT(written(130000), 0);
    EXPECT_LT(written(130000), 65536);
    EXPECT_EQ(written(40000), 65536);
}

// In two partitions what is written takes half the place that what all read takes: of as many bytes more of H is left.
TEST(ChainTraffic, TwoPartitionsKeepMoreOfWhatIsWritten) {
    const ChainProblem p{.m = 4096, .d = 64, .ff = 128, .act = ChainAct::relu};
    const ChainProduct first = product(4096, 128, 64, 64, 64, 64, 2);
    ChainProduct second = product(4096, 64, 128, 64, 64, 64, 2);
    second.reverse = true;
    const auto read = [&](int partitions) { return by_name(two_kernels_traffic(p, first, second, {200000, partitions})).at("H").read; };
    EXPECT_LT(read(2), read(1) - 20000);
}

// The same with no L2 at all. A round is two tiles of one row of 64: X's row comes for each round of its two, once (both tiles ask
// together), W1's two blocks of 8192 B every round. Second product: its one column, two rows a round, W2's two blocks each of two rounds.
TEST(ChainTraffic, OfNoL2) {
    const ChainProblem p{.m = 256, .d = 64, .ff = 128, .act = ChainAct::relu};
    const auto t = by_name(two_kernels_traffic(p, product(256, 128, 64, 64, 64, 64, 2), product(256, 64, 128, 64, 64, 64, 2), 0));
    EXPECT_EQ(t.at("X").read, 32768);
    EXPECT_EQ(t.at("W1").read, 4 * 16384);
    EXPECT_EQ(t.at("W2").read, 2 * 16384);
    EXPECT_EQ(t.at("H").read, 65536);
    EXPECT_EQ(t.at("H").written, 65536);
}

// 64 rows of H are 16384 B. L2 has room for half of H and what comes beside: taken from the last tile on, the second product finds
// what the first one left; from the first one on nothing is left when its turn comes.
TEST(ChainTraffic, TheSecondFindsWhatTheFirstLeftFromTheEnd) {
    const ChainProblem p{.m = 1024, .d = 64, .ff = 128, .act = ChainAct::relu};
    const ChainProduct first = product(1024, 128, 64, 64, 64, 64, 2);
    ChainProduct second = product(1024, 64, 128, 64, 64, 64, 1);
    const std::int64_t l2 = 150000, h = p.h_bytes();
    EXPECT_EQ(by_name(two_kernels_traffic(p, first, second, l2)).at("H").read, h);
    second.reverse = true;
    const std::int64_t read = by_name(two_kernels_traffic(p, first, second, l2)).at("H").read;
    EXPECT_LT(read, h - 60000);
    EXPECT_GT(read, h - l2);
}

// H has room for two chunks alone: where they fit it never leaves L2.
TEST(ChainTraffic, OfChunksThatStayInL2) {
    const ChainProblem p{.m = 4096, .d = 64, .ff = 128, .act = ChainAct::relu, .residual = true};
    const auto t = by_name(persistent_traffic(p, product(4096, 128, 64, 64, 64, 64, 2), product(4096, 64, 128, 64, 64, 64, 2), 128, 2, 1 << 18));
    EXPECT_EQ(t.at("H").read, 0);
    EXPECT_EQ(t.at("H").written, 0);
    EXPECT_EQ(t.at("X").read, p.x_bytes()) << "the residual finds X in L2";
    EXPECT_EQ(t.at("W1").read, p.w1_bytes());
}

// A round of two tiles of one row: both ask for the row's 64 rows of X, which come once, and each for its 64 columns' weights. A hit is what
// was asked for and did not come from DRAM: half of X, and of W1 what four rounds find of what the first brought.
TEST(ChainTraffic, WhatClustersAskForTogetherCountsForEach) {
    const ChainProblem p{.m = 256, .d = 64, .ff = 128, .act = ChainAct::relu};
    const auto t = by_name(two_kernels_traffic(p, product(256, 128, 64, 64, 64, 64, 2), product(256, 64, 128, 64, 64, 64, 2), 1 << 20));
    EXPECT_EQ(t.at("X").asked, 2 * 32768);
    EXPECT_EQ(t.at("X").read, 32768);
    EXPECT_EQ(t.at("W1").asked, 4 * 16384);
    EXPECT_EQ(t.at("W1").read, 16384);
    // The second product's one column: two rows a round, each asks for all of W2.
    EXPECT_EQ(t.at("W2").asked, 4 * 16384);
    EXPECT_EQ(t.at("H").asked, 65536);
    // Each of 32 tiles of 128 rows streams the weights, or each of 4 CTAs has them once.
    const ChainProblem q{.m = 4096, .d = 64, .ff = 256};
    EXPECT_EQ(by_name(on_chip_traffic(q, {}, 4, 1 << 20)).at("W1").asked, 32 * q.w1_bytes());
    EXPECT_EQ(by_name(on_chip_traffic(q, {.stages = 4, .resident = true}, 4, 1 << 20)).at("W1").asked, 4 * q.w1_bytes());
}

TEST(ChainTraffic, OnChipMovesNoIntermediate) {
    const ChainProblem p{.m = 4096, .d = 64, .ff = 256, .act = ChainAct::swiglu};
    const ChainTraffic traffic = on_chip_traffic(p, {}, 4, 1 << 20);
    EXPECT_EQ(traffic.dram_bytes(), p.compulsory_bytes());
    EXPECT_FALSE(by_name(traffic).contains("H"));
    // Without an L2 each of 32 tiles' rounds of 4 streams the weights anew.
    EXPECT_EQ(by_name(on_chip_traffic(p, {}, 4, 0)).at("W1").read, 8 * p.w1_bytes());
}

ChainProduct any_product(Random& random, std::int64_t m, std::int64_t n, std::int64_t k) {
    constexpr int tiles[] = {8, 24, 48, 64, 80, 128, 176, 200, 256}, steps[] = {32, 64};
    ChainProduct p = product(m, n, k, random.one_of(tiles), random.one_of(tiles), random.one_of(steps), random.whole(1, 40));
    p.cluster_m = int(random.whole(1, 2)), p.cluster_n = int(random.whole(1, 2)), p.k_parts = int(random.whole(1, 3));
    p.order = Order(random.pick(6)), p.group = int(random.whole(1, 9)), p.reverse = random.coin();
    if (random.coin()) p.late_clusters = random.whole(0, p.clusters - 1), p.skew = 0.01 * double(random.whole(0, 5));
    return p;
}

// No traffic below its bound: every tensor but H once; H is written back once at most.
TEST(ChainTraffic, IsNeverBelowItsBound) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 32));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 2000); ++i) {
        ChainProblem p;
        p.m = random.whole(1, 1500), p.d = 8 * random.whole(1, 40), p.ff = 8 * random.whole(1, 80);
        p.act = ChainAct(random.pick(4)), p.residual = random.coin();
        const ChainProduct first = any_product(random, p.m, p.first_width(), p.d), second = any_product(random, p.m, p.d, p.ff);
        const ChainL2 l2(std::int64_t(random.log_uniform(1, 4e6)), int(random.whole(1, 3)));
        SCOPED_TRACE(i);
        const auto check = [&](const ChainTraffic& traffic) {
            EXPECT_GE(traffic.dram_bytes(), p.compulsory_bytes());
            EXPECT_GT(traffic.steps, 0);
            EXPECT_LE(traffic.both_hits, traffic.steps);
            const auto t = by_name(traffic);
            EXPECT_GE(t.at("X").read, p.x_bytes());
            EXPECT_GE(t.at("W1").read, p.w1_bytes());
            EXPECT_GE(t.at("W2").read, p.w2_bytes());
            EXPECT_EQ(t.at("Y").written, p.y_bytes());
            for (const auto& [name, tensor] : t) EXPECT_LE(tensor.read, tensor.asked) << name;
        };
        const ChainTraffic two = two_kernels_traffic(p, first, second, l2);
        check(two);
        EXPECT_LE(by_name(two).at("H").written, p.h_bytes());
        EXPECT_GE(by_name(two).at("H").written, by_name(two).at("H").read > 0 ? 1 : 0) << "what is read again was driven out";
        EXPECT_GE(two.of_kernel[0], p.x_bytes() + p.w1_bytes());
        EXPECT_EQ(two.of_kernel[0] + two.of_kernel[1], two.dram_bytes());
        if (i % 4 == 0) {
            ChainProduct a = first, b = second;
            a.tile_m = b.tile_m = 64, a.cluster_m = b.cluster_m = a.k_parts = b.k_parts = 1;
            check(persistent_traffic(p, a, b, random.whole(1, p.m + 100), int(random.whole(2, 4)), l2));
            check(on_chip_traffic(p, {}, random.whole(1, 40), l2));
        }
    }
}

// Of more tiles than are followed two parts are, and the rest is on the line through them: as much as all of it moves, within 1 % of
// rows. Of columns curves and clusters that fall behind more and more keep to no line so closely.
TEST(ChainTraffic, OfAPartIsThatOfAllWithinOnePercent) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 34));
    int parts = 0;
    std::int64_t checked = 0;
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 60); ++i) {
        ChainProblem p;
        const double long_one = random.log_uniform(1e5, 1e6);
        p.m = random.whole(64, 1000), p.d = 8 * random.whole(8, 64), p.ff = 8 * random.whole(8, 128);
        const std::size_t which = random.pick(4);  // rows in two of four
        if (which == 2) p.ff = 8 * std::int64_t(long_one / 8);
        else if (which == 3) p.d = 8 * std::int64_t(long_one / 8);
        else p.m = std::int64_t(long_one);
        p.act = ChainAct(random.pick(4)), p.residual = random.coin();
        const auto tiles_like_a_plan = [&](ChainProduct a) {
            constexpr int heights[] = {64, 128, 192}, widths[] = {64, 128, 256}, steps[] = {32, 64};
            a.tile_m = random.one_of(heights), a.tile_n = random.one_of(widths), a.tile_k = random.one_of(steps), a.clusters = random.whole(20, 80), a.late_clusters = std::min(a.late_clusters, a.clusters / 7);
            return a;
        };
        const ChainProduct first = tiles_like_a_plan(any_product(random, p.m, p.first_width(), p.d)), second = tiles_like_a_plan(any_product(random, p.m, p.d, p.ff));
        const ChainL2 l2(std::int64_t(random.log_uniform(1e5, 3e6)), int(random.whole(1, 2)));
        const ChainEffort few{1.5e6, 4000}, all{1.5e6, INFINITY};
        SCOPED_TRACE(i);
        const auto check = [&](const ChainTraffic& part, const ChainTraffic& whole) {
            EXPECT_TRUE(whole.parts.empty());
            if (part.parts.empty()) return;
            ++parts;
            EXPECT_NEAR(double(part.dram_bytes()), double(whole.dram_bytes()), (part.parts.front().extent == "m" ? 0.01 : 0.05) * double(whole.dram_bytes())) << part.parts.front().extent << ' ' << part.parts.front().followed << " of " << part.parts.front().whole;
            EXPECT_NEAR(double(part.both_hits) / double(part.steps), double(whole.both_hits) / double(whole.steps), 0.02);
            EXPECT_NEAR(double(part.asked_bytes()), double(whole.asked_bytes()), 0.01 * double(whole.asked_bytes()));
            const auto one = by_name(part), other = by_name(whole);
            EXPECT_EQ(one.at("Y").written, other.at("Y").written);
            checked += part.parts.front().whole > 2 * part.parts.front().followed;
        };
        check(two_kernels_traffic(p, first, second, l2, few), two_kernels_traffic(p, first, second, l2, all));
        const std::int64_t chunk = random.whole(1, 2000);
        const int room = int(random.whole(2, 24));
        check(persistent_traffic(p, first, second, chunk, room, l2, few), persistent_traffic(p, first, second, chunk, room, l2, all));
        const ChainTile tile{.resident = random.coin()};
        check(on_chip_traffic(p, tile, 40, l2, few), on_chip_traffic(p, tile, 40, l2, all));
    }
    EXPECT_GT(parts, 60);
    EXPECT_GT(checked, 30);
}

// A larger L2 moves no more: LRU has no anomaly of that kind.
TEST(ChainTraffic, OfMoreL2IsNoMore) {
    Random random(33);
    for (int i = 0; i < 300; ++i) {
        ChainProblem p;
        p.m = random.whole(64, 1500), p.d = 8 * random.whole(1, 20), p.ff = 8 * random.whole(1, 40);
        ChainProduct first = any_product(random, p.m, p.ff, p.d), second = any_product(random, p.m, p.d, p.ff);
        std::int64_t before = -1;
        for (std::int64_t l2 = 1000; l2 < 2000000; l2 *= 3) {
            std::int64_t read = 0;
            for (const ChainTensorTraffic& t : two_kernels_traffic(p, first, second, l2).tensors) read += t.read;
            if (before >= 0) { EXPECT_LE(read, before) << i; }
            before = read;
        }
    }
}

}  // namespace
}  // namespace rooftile
