// Groups' kernels as NVRTC makes them: nothing spilled, whatever the tile, its way out and the room for groups.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

struct OfEpilogue {
    const char* text = "";
    std::vector<std::string> tensors = {};
    Pairs pairs = Pairs::none;
};

std::optional<GemmPlan> plan_of(int groups, int n, Major b, const GemmRequest& asked, const OfEpilogue& epilogue = {}) {
    GemmRequest request = asked;
    request.top = 1;
    request.buildable_only = true;
    GemmProblem p = gemm_problem(300 * groups, n, 2048, Type::bf16, Major::k, b);
    p.groups = SharedGroups(std::vector<std::int64_t>(std::size_t(groups), 300));
    p.b_stride = dense_stride(p, 'b');
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, epilogue.text, epilogue.tensors, Scales::none, 1, groups, epilogue.pairs);
    auto outcome = derive(machine_by_id("h200-sxm"), p, request);
    if (auto* plans = std::get_if<Plans>(&outcome)) return plans->plans.front();
    ADD_FAILURE() << std::get<Infeasible>(outcome).message;
    return std::nullopt;
}

// compile() throws where the code spills.
TEST(GemmGroupsCode, SpillsNothing) {
    struct Fixed {
        int tile_m, tile_n;
        bool swap_ab;
        Schedule schedule = Schedule::cooperative;
        int cluster_m = 1, cluster_n = 1, split_k = 1, groups = 256, n = 2048;
        Major b = Major::k;
    };
    std::vector<GemmPlan> plans;
    for (const Fixed& f :
         {Fixed{128, 256, false}, Fixed{256, 128, false}, Fixed{192, 192, false}, Fixed{64, 256, false, Schedule::pingpong},
          Fixed{128, 128, false, Schedule::pingpong, 2}, Fixed{128, 256, false, Schedule::cooperative, 1, 2}, Fixed{128, 176, false},
          Fixed{128, 128, false, Schedule::cooperative, 1, 1, 4}, Fixed{256, 128, true}, Fixed{112, 256, true}, Fixed{8, 64, true},
          Fixed{104, 128, true, Schedule::pingpong}, Fixed{64, 64, true, Schedule::cooperative, 1, 2, 4},
          Fixed{128, 256, false, Schedule::cooperative, 1, 1, 1, 1024}, Fixed{128, 256, false, Schedule::cooperative, 1, 1, 1, 8, 2049},
          Fixed{128, 256, false, Schedule::cooperative, 2, 1, 1, 8, 2048, Major::mn}, Fixed{72, 256, true, Schedule::cooperative, 1, 1, 1, 8, 2049}}) {
        GemmRequest request;
        request.tile_m = f.tile_m, request.tile_n = f.tile_n, request.swap_ab = f.swap_ab, request.schedule = f.schedule;
        request.cluster_m = f.cluster_m, request.cluster_n = f.cluster_n, request.split_k = f.split_k;
        for (const bool dynamic : {false, true}) {
            request.dynamic_scheduler = dynamic;
            if (auto plan = plan_of(f.groups, f.n, f.b, request)) plans.push_back(std::move(*plan));
        }
    }
    for (const KernelOutcome& outcome : compile_all(plans))
        if (const auto* error = std::get_if<Error>(&outcome)) ADD_FAILURE() << error->what();
}

// One code serves every count up to a power of two, and no other.
TEST(GemmGroupsCode, IsSharedByCounts) {
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256, request.swap_ab = false, request.cluster_m = request.cluster_n = 1, request.stages = 3;
    request.consumer_warpgroups = 2, request.schedule = Schedule::cooperative, request.split_k = request.ctas_per_sm = 1;
    request.dynamic_scheduler = false;  // else by the counts
    const auto key = [&](int groups) { return code_key(plan_of(groups, 2048, Major::k, request).value()); };
    EXPECT_EQ(key(129), key(256));
    EXPECT_NE(key(256), key(257));
    EXPECT_EQ(key(2), key(32));
}

// 256 groups' numbers, 2576 B, still leave four stages of the largest tile.
TEST(GemmGroupsCode, TwoHundredAndFiftySixGroupsCostNoStage) {
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256, request.swap_ab = false;
    EXPECT_EQ(plan_of(256, 2048, Major::k, request).value().config.stages, 4);
}

// What a group has of its own is read by its number, whatever the way out.
TEST(GemmGroupsCode, EpiloguesSpillNothing) {
    const OfEpilogue forms[] = {{"d = gelu(acc + bias)", {"bias:bf16[G,1,N]"}},
                                {"d = silu(acc * gain + bias) * up", {"gain:fp32[G,1,1]", "bias:bf16[G,1,N]", "up:bf16[M,N]"}},
                                {"d = dropout(acc + bias, 0.1, seed=3)", {"bias:fp32[N]"}},
                                {"d = silu(gate) * up", {}, Pairs::interleaved},
                                {"d = gelu(gate + bias) * up", {"bias:bf16[G,1,N/2]"}, Pairs::split}};
    std::vector<GemmPlan> plans;
    for (const OfEpilogue& form : forms)
        for (const auto& [tile_m, tile_n, swap, n] : {std::tuple{128, 256, false, 2048}, {128, 176, false, 2048}, {64, 128, true, 2048}, {128, 128, false, 2049}}) {
            GemmRequest request;
            request.tile_m = tile_m, request.tile_n = tile_n, request.swap_ab = swap;
            if (form.pairs != Pairs::none && (tile_n == 176 || n % 2 != 0)) continue;  // whole sectors of half as many, whole pairs
            if (auto plan = plan_of(8, n, Major::k, request, form)) plans.push_back(std::move(*plan));
        }
    for (const KernelOutcome& outcome : compile_all(plans))
        if (const auto* error = std::get_if<Error>(&outcome)) ADD_FAILURE() << error->what();
}

// Every tile that the search meets: a tile's first scale is held beside its sums.
TEST(GemmGroupsCode, ScalesOfBlocksSpillNothing) {
    std::vector<GemmPlan> plans;
    for (const std::int64_t rows : {3, 70, 800})
        for (const std::int64_t n : {2048, 2050}) {
            GemmProblem p = gemm_problem(16 * rows, n, 2048, Type::fp8_e4m3);
            p.c_type = Type::bf16, p.ldc = n;
            p.groups = SharedGroups(std::vector<std::int64_t>(16, rows));
            p.b_stride = dense_stride(p, 'b');
            p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, Scales::block, 1, 16);
            GemmRequest request;
            request.top = int(test_count(3, 12)), request.buildable_only = true;
            auto outcome = derive(machine_by_id("h200-sxm"), p, request);
            ASSERT_TRUE(std::holds_alternative<Plans>(outcome)) << std::get<Infeasible>(outcome).message;
            for (GemmPlan& plan : std::get<Plans>(outcome).plans) plans.push_back(std::move(plan));
        }
    for (const KernelOutcome& outcome : compile_all(plans))
        if (const auto* error = std::get_if<Error>(&outcome)) ADD_FAILURE() << error->what();
}

}  // namespace
}  // namespace rooftile
