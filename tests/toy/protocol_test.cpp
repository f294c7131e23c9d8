// The roles of the toy's kernel meet in any order of events: all warps of the producer's warpgroup fill a stage, and TMA beside them.
#include <gtest/gtest.h>

#include <vector>

#include "text.hpp"

#include "tests/toy/gather.cuh"

namespace rooftile {
namespace {

template <int warpgroups, int stages>
void expect_no_fault() {
    constexpr MatrixConfig C = gather_config(64 * warpgroups, 64, stages);
    for (const int tiles : {1, 3})
        for (const int blocks : {1, 2, stages + 1}) {
            const std::vector<float> a(std::size_t(blocks) * C.tile_k);
            const std::vector<int> rows(std::size_t(tiles) * C.tile_m);
            GatherArguments args{};
            args.matrix.m = tiles * C.tile_m, args.matrix.n = C.tile_n, args.matrix.k = blocks * C.tile_k;
            args.matrix.group = 1, args.matrix.last_m = args.matrix.last_n = 1 << 30;
            args.a = a.data(), args.rows = rows.data();
            const auto found = protocol::explore(record(warpgroups, [&] { toy_gather<C>({}, {}, args); }, 1, 4));
            EXPECT_EQ(found.fault, "") << warpgroups << " warpgroups, " << stages << " stages, " << tiles << " tiles of " << blocks << " blocks; "
                                       << found.states << " states";
        }
}

TEST(ToyGatherProtocol, AWarpgroupProduces) {
    expect_no_fault<1, 2>();
    expect_no_fault<1, 4>();
    expect_no_fault<2, 2>();
    expect_no_fault<2, 6>();
}

}  // namespace
}  // namespace rooftile
