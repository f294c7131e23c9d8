// The roles of sm90_gemm and sm90_two_gemms meet in any order of events: for every schedule, ring, scheduler and kind of cluster that a plan
// can choose.
#include <gtest/gtest.h>

#include <vector>

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
    constexpr int ctas() const { return cluster_m * split_k; }
};

/// Narrow tiles: widths decide nothing here.
constexpr Sm90GemmConfig config(Choice c) {
    return {.tile_m = c.schedule == Schedule::pingpong ? 64 : 64 * c.warpgroups, .tile_n = 16, .tile_k = 64, .stages = c.stages,
            .consumer_warpgroups = c.warpgroups, .schedule = c.schedule, .cluster_m = c.cluster_m, .cluster_n = 1, .split_k = c.split_k,
            .ctas_per_sm = 1, .producer_registers = 24, .consumer_registers = 240, .type = Type::bf16, .b_type = Type::bf16, .c_type = Type::bf16,
            .a_major = Major::k, .b_major = Major::k, .tma_store = true, .overlapped_epilogue = c.overlapped, .batched = c.dynamic,
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
    const auto found = protocol::explore(record(c.warpgroups, kernel, unsigned(c.ctas())));
    EXPECT_EQ(found.fault, "") << (c.schedule == Schedule::pingpong ? "ping-pong, " : "cooperative, ") << c.warpgroups << " warpgroups, " << c.stages
                               << " stages, cluster of " << c.cluster_m << ", split-K " << c.split_k << ", " << (c.overlapped ? "overlapped, " : "") << (c.dynamic ? "dynamic, " : "") << tiles << " tiles of "
                               << blocks << " blocks; " << found.states << " states";
}

template <Schedule schedule, int warpgroups, int stages, bool dynamic>
void expect_ring() {
    for (const int tiles : {1, 2, 5})
        for (const int blocks : {1, 2, stages + 1}) {
            expect_no_fault<Choice{schedule, warpgroups, stages, false, dynamic}>(tiles, blocks);
            if constexpr (schedule == Schedule::cooperative && !dynamic) expect_no_fault<Choice{schedule, warpgroups, stages, true, dynamic}>(tiles, blocks);
        }
}

template <bool dynamic>
void expect_schedules() {
    expect_ring<Schedule::cooperative, 1, 2, dynamic>();
    expect_ring<Schedule::cooperative, 1, 3, dynamic>();
    expect_ring<Schedule::cooperative, 1, 5, dynamic>();
    expect_ring<Schedule::cooperative, 2, 2, dynamic>();
    expect_ring<Schedule::cooperative, 2, 3, dynamic>();
    expect_ring<Schedule::cooperative, 2, 5, dynamic>();
    expect_ring<Schedule::cooperative, 3, 2, dynamic>();
    expect_ring<Schedule::cooperative, 3, 3, dynamic>();
    expect_ring<Schedule::pingpong, 2, 2, dynamic>();
    expect_ring<Schedule::pingpong, 2, 3, dynamic>();
    expect_ring<Schedule::pingpong, 2, 5, dynamic>();
}

TEST(GemmProtocol, FixedTurns) { expect_schedules<false>(); }
TEST(GemmProtocol, TilesFromACounter) { expect_schedules<true>(); }

template <int warpgroups, int stages, bool dynamic, int cluster_m, int split_k>
void expect_cluster() {
    for (const int tiles : {1, 3})
        for (const int blocks : {1, 3}) expect_no_fault<Choice{Schedule::cooperative, warpgroups, stages, false, dynamic, cluster_m, split_k}>(tiles, blocks);
}

TEST(GemmProtocol, ClustersOfTwo) {
    expect_cluster<1, 2, false, 2, 1>();
    expect_cluster<1, 3, false, 2, 1>();
    expect_cluster<2, 2, false, 2, 1>();
    expect_cluster<1, 2, false, 1, 2>();
    expect_cluster<1, 3, false, 1, 2>();
    expect_cluster<2, 2, false, 1, 2>();
    expect_cluster<1, 2, true, 2, 1>();
    expect_cluster<1, 3, true, 2, 1>();
    for (const int tiles : {1, 3}) expect_no_fault<Choice{Schedule::pingpong, 2, 2, false, false, 2}>(tiles, 2);
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
