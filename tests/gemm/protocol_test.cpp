// The roles of sm90_gemm and sm90_two_gemms meet in any order of events: for every schedule, ring, scheduler and kind of cluster that a plan
// can choose.
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/gemm/protocol_roles.hpp"
#include "text.hpp"

#include "kernels/gemm/sm90_gemm.cuh"
#include "kernels/gemm/sm90_two_gemms.cuh"

namespace rooftile {
namespace {

struct Choice {
    Schedule schedule = Schedule::cooperative;
    int warpgroups = 2, stages = 2;
    bool overlapped = false, dynamic = false;
    int cluster_m = 1, split_k = 1;
    bool early = false;
    constexpr int ctas() const { return cluster_m * split_k; }
};

constexpr Choice choice(const protocol::GemmRoles& r, int stages) {
    return {r.pingpong ? Schedule::pingpong : Schedule::cooperative, r.warpgroups, stages, r.overlapped, r.dynamic, r.sharing, r.split_k};
}

/// Narrow tiles: widths decide nothing here.
constexpr Sm90GemmConfig config(Choice c) {
    return {.tile_m = c.schedule == Schedule::pingpong ? 64 : 64 * c.warpgroups, .tile_n = 16, .tile_k = 64, .stages = c.stages,
            .consumer_warpgroups = c.warpgroups, .schedule = c.schedule, .cluster_m = c.cluster_m, .cluster_n = 1, .split_k = c.split_k,
            .ctas_per_sm = 1, .producer_registers = 24, .consumer_registers = 240, .type = Type::bf16, .b_type = Type::bf16, .c_type = Type::bf16,
            .a_major = Major::k, .b_major = Major::k, .tma_store = true, .overlapped_epilogue = c.overlapped,
            .early_weights = c.early, .batched = c.dynamic,
            .dynamic_scheduler = c.dynamic};
}

GemmArguments product(int m, int n, int k, unsigned* counter) {
    GemmArguments args{};
    args.m = m, args.n = n, args.k = k, args.order = int(Order::row), args.group = 1, args.batch = 1, args.next_tile = counter;
    args.last_m = args.last_n = 1 << 30, args.a_slices = args.b_slices = 8;
    return args;
}

template <Choice c>
void expect_no_fault(int tiles, int blocks) {
    constexpr Sm90GemmConfig C = config(c);
    unsigned counter = 0;
    const GemmArguments args = product(tiles * c.cluster_m * C.tile_m, C.tile_n, blocks * C.tile_k, &counter);
    const auto kernel = [&] {
        counter = 0;
        sm90_gemm<C>({}, {}, {}, args);
    };
    const auto found = protocol::check(record(c.warpgroups, kernel, unsigned(c.ctas())));
    EXPECT_EQ(found.fault, "") << (c.schedule == Schedule::pingpong ? "ping-pong, " : "cooperative, ") << c.warpgroups << " warpgroups, " << c.stages
                               << " stages, cluster of " << c.cluster_m << ", split-K " << c.split_k << ", " << (c.overlapped ? "overlapped, " : "") << (c.dynamic ? "dynamic, " : "") << tiles << " tiles of "
                               << blocks << " blocks; " << found.states << " states";
}

template <protocol::GemmRoles roles, int stages>
void expect_ring() {
    constexpr bool alone = roles.sharing * roles.split_k == 1;
    for (const int tiles : alone ? std::vector{1, 2, 5} : std::vector{1, 3})
        for (const int blocks : alone ? std::vector{1, 2, stages + 1} : std::vector{1, 3}) expect_no_fault<choice(roles, stages)>(tiles, blocks);
}

/// The more roles, the more orders of events: rings are shorter then. Whose blocks are more than its stages wraps, which all of these do.
template <protocol::GemmRoles roles>
void expect_rings() {
    constexpr int all = (1 + roles.warpgroups) * roles.sharing * roles.split_k;
    expect_ring<roles, 2>();
    if constexpr (all <= 4) expect_ring<roles, 3>();
    if constexpr (all <= 3) expect_ring<roles, 5>();
}

template <bool dynamic, bool alone, std::size_t i>
void expect_if() {
    constexpr protocol::GemmRoles roles = protocol::gemm_roles[i];
    if constexpr (roles.dynamic == dynamic && (roles.sharing * roles.split_k == 1) == alone) expect_rings<roles>();
}
template <bool dynamic, bool alone, std::size_t... i>
void expect_all(std::index_sequence<i...>) {
    (expect_if<dynamic, alone, i>(), ...);
}
constexpr std::make_index_sequence<std::size(protocol::gemm_roles)> each;

TEST(GemmProtocol, FixedTurns) { expect_all<false, true>(each); }
TEST(GemmProtocol, TilesFromACounter) { expect_all<true, true>(each); }
TEST(GemmProtocol, ClustersOfTwo) { expect_all<false, false>(each); }
TEST(GemmProtocol, ClustersOfTwoWithTilesFromACounter) { expect_all<true, false>(each); }

// The first stages' B before the wait, A after it: rings that the first tile does not fill, that it fills, and that wrap.
template <Choice c>
void expect_early() {
    for (const int tiles : {1, 3})
        for (const int blocks : {1, c.stages, c.stages + 1}) expect_no_fault<c>(tiles, blocks);
}
TEST(GemmProtocol, WeightsBeforeTheWait) {
    expect_early<Choice{.warpgroups = 1, .stages = 2, .early = true}>();
    expect_early<Choice{.warpgroups = 2, .stages = 3, .early = true}>();
    expect_early<Choice{.schedule = Schedule::pingpong, .stages = 3, .early = true}>();
    expect_early<Choice{.warpgroups = 1, .stages = 2, .overlapped = true, .early = true}>();
    expect_early<Choice{.warpgroups = 1, .stages = 2, .cluster_m = 2, .early = true}>();
    expect_early<Choice{.warpgroups = 1, .stages = 2, .split_k = 2, .early = true}>();
}

template <Schedule schedule, int stages>
void expect_two() {
    constexpr TwoGemmsConfig both(config({schedule, 2, stages}), config({schedule, 2, stages}));
    constexpr Sm90GemmConfig A = both.first, B = both.second;
    for (const int rows : {1, 2, 3})
        for (const auto& [first_blocks, second_blocks] : {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2)}) {
            unsigned next = 0, finished = 0;
            std::vector<unsigned> ready(8), taken(8);
            TwoGemmsArguments args{};
            args.first = product(rows * A.tile_m, A.tile_n, first_blocks * A.tile_k, nullptr);
            args.second = product(rows * B.tile_m, B.tile_n, second_blocks * B.tile_k, nullptr);
            args.chunks = args.room_chunks = 1, args.room_rows = 1 << 20, args.first_chunk_rows = args.second_chunk_rows = rows;
            args.next = &next, args.finished = &finished, args.ready = ready.data(), args.taken = taken.data();
            const auto found = protocol::explore(record(2, [&] {
                next = 0;
                sm90_two_gemms<A, B>({}, {}, {}, {}, {}, {}, {}, {}, args, NoEpilogue{}, NoEpilogue{});
            }));
            EXPECT_EQ(found.fault, "") << stages << " stages, " << rows << " rows of tiles, " << first_blocks << " and " << second_blocks << " blocks; "
                                       << found.states << " states";
        }
}

TEST(GemmProtocol, TwoProductsOfOneQueue) {
    expect_two<Schedule::cooperative, 2>();
    expect_two<Schedule::cooperative, 3>();
    expect_two<Schedule::pingpong, 2>();
    expect_two<Schedule::pingpong, 3>();
    expect_two<Schedule::pingpong, 5>();
}

}  // namespace
}  // namespace rooftile
