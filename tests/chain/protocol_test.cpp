// The roles of sm90_chain meet in any order of events: for every ring, with and without turns, that a plan can choose.
#include <gtest/gtest.h>

#include <memory>

#include "text.hpp"

#include "kernels/chain/sm90_chain.cuh"

namespace rooftile {
namespace {

template <Sm90ChainConfig C>
void expect_no_fault(int tiles, int blocks) {
    const int m = tiles * C.tile_m;
    const auto y = std::make_unique<unsigned char[]>(std::size_t{2} * m * C.d);
    unsigned counter = 0;
    const ChainArguments args{m, C.d, blocks * C.tile_ff, y.get(), y.get(), &counter};
    const auto found = protocol::explore(record(C.consumer_warpgroups(), [&] {
        counter = 0;
        sm90_chain<C>({}, {}, {}, args);
    }));
    EXPECT_EQ(found.fault, "") << C.consumer_warpgroups() << " warpgroups, " << C.stages << " stages, " << C.x_stages << " of X, "
                               << (C.turns ? "in turns, " : "") << (C.resident ? "resident, " : "") << tiles << " tiles of " << blocks
                               << " blocks; " << found.states << " states";
}

/// tile_m, stages, x_stages, resident, turns: what rooftile/chain/derive.cpp enumerates. Widths decide nothing here.
template <int tile_m, int stages, int x_stages, bool resident, bool turns>
constexpr Sm90ChainConfig config{.tile_m = tile_m, .tile_ff = 64, .d = 64, .stages = stages, .x_stages = x_stages, .resident = resident, .turns = turns};

template <int tile_m, int x_stages, bool turns>
void expect_rings() {
    for (const int tiles : {1, 3})
        for (const int blocks : {1, 2, 3}) {
            expect_no_fault<config<tile_m, 1, x_stages, false, turns>>(tiles, blocks);
            expect_no_fault<config<tile_m, 2, x_stages, false, turns>>(tiles, blocks);
            expect_no_fault<config<tile_m, 3, x_stages, false, turns>>(tiles, blocks);
            expect_no_fault<config<tile_m, 4, x_stages, false, turns>>(tiles, blocks);
        }
    for (const int tiles : {1, 3}) {
        expect_no_fault<config<tile_m, 1, x_stages, true, turns>>(tiles, 1);
        expect_no_fault<config<tile_m, 2, x_stages, true, turns>>(tiles, 2);
        expect_no_fault<config<tile_m, 4, x_stages, true, turns>>(tiles, 4);
    }
}

TEST(ChainProtocol, OneWarpgroup) {
    expect_rings<64, 1, true>();
    expect_rings<64, 2, true>();
}
TEST(ChainProtocol, TwoWarpgroups) {
    expect_rings<128, 1, false>();
    expect_rings<128, 2, false>();
    expect_rings<128, 1, true>();
    expect_rings<128, 2, true>();
}
TEST(ChainProtocol, ThreeWarpgroups) {
    expect_rings<192, 1, false>();
    expect_rings<192, 2, false>();
    expect_rings<192, 1, true>();
    expect_rings<192, 2, true>();
}

}  // namespace
}  // namespace rooftile
