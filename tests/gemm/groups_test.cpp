// Groups of rows: what is read, what is counted, and what the model makes of them.
#include "rooftile/gemm/groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/model.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> rows_of(std::string_view text, std::int64_t total = 0) {
    Given given;
    given.add("groups", std::string(text));
    const SharedGroups groups = gemm_groups(given, total);
    return {groups->rows().begin(), groups->rows().end()};
}

std::string refusal_of(std::string_view text, std::int64_t total = 0) {
    try {
        rows_of(text, total);
    } catch (const RequestError& error) { return error.what(); }
    return "accepted";
}

GemmProblem grouped(std::string_view groups, std::int64_t n, std::int64_t k) {
    Given given(Given::Named::by_key);
    given.add("groups", std::string(groups));
    given.add("n", std::to_string(n));
    given.add("k", std::to_string(k));
    return gemm_problem(given);
}

TEST(GemmGroupsText, ListsRepeatsAndRanges) {
    EXPECT_THAT(rows_of("1,7,512"), ElementsAre(1, 7, 512));
    EXPECT_THAT(rows_of("3x5,0, 2"), ElementsAre(5, 5, 5, 0, 2));
    EXPECT_THAT(rows_of("17"), ElementsAre(17));
    const std::vector<std::int64_t> drawn = rows_of("128x[64..512]");
    EXPECT_EQ(drawn.size(), 128u);
    EXPECT_GE(*std::min_element(drawn.begin(), drawn.end()), 64);
    EXPECT_LE(*std::max_element(drawn.begin(), drawn.end()), 512);
    EXPECT_EQ(drawn, rows_of("128x[64..512]")) << "the same every time";
}

TEST(GemmGroupsText, WhatIsDrawnIsScaledToTheRowsInAll) {
    for (const std::int64_t total : {1, 7, 128, 4096, 1000003}) {
        const std::vector<std::int64_t> rows = rows_of("128x[64..512]", total);
        EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), total);
    }
    EXPECT_THAT(rows_of("4x[0..0]", 6), ElementsAre(2, 2, 1, 1));
}

TEST(GemmGroupsText, WhatIsWrittenIsReadAgain) {
    Random random(3);
    for (int i = 0; i < 100; ++i) {
        std::vector<std::int64_t> rows(1 + random.pick(300));
        for (std::int64_t& r : rows) r = random.coin() ? random.whole(0, 2) : random.whole(0, 100000);
        rows.back() += 1;
        EXPECT_EQ(rows_of(SharedGroups(rows).text()), rows);
    }
    EXPECT_EQ(gemm_groups("5,5,5,0,0,9", 0, "g").text(), "3x5,2x0,9");
}

TEST(GemmGroupsText, AFileHoldsAList) {
    const std::string path = testing::TempDir() + "groups_of_a_test.txt";
    std::ofstream(path) << "12 7\n0,3x2\n";
    EXPECT_THAT(rows_of(path), ElementsAre(12, 7, 0, 2, 2, 2));
    std::ofstream(path) << "12 7\n# experts\n3\n";
    EXPECT_THAT(refusal_of(path), HasSubstr(": # is no count of rows"));
}

TEST(GemmGroupsText, WhatIsNoListIsRefusedInOneLine) {
    for (const auto& [text, why] : {std::pair{"3x", "a number is missing"}, {"0x4", "as many groups as 0"}, {"1,2,,", "no count of rows"}, {"3x[5..1]", "is empty"},
                                    {"1025x1", "at most 1024"}, {"0,0", "nothing to do, all groups are empty"}, {"nofile", "no such file"}, {"3x[1.5]", "[LO..HI]"},
                                    {"4x[1..5", "ends with ]"}, {"3x99999999999999999999", "99999999999999999999 is more than 2147483647 rows"}, {"2147483648", "2147483648 is more than"}, {"2x2147483647", "rows in all"}}) {
        EXPECT_THAT(refusal_of(text), HasSubstr(why)) << text;
        EXPECT_EQ(refusal_of(text).find('\n'), std::string::npos);
    }
    EXPECT_THAT(refusal_of("3,4", 9), HasSubstr("7 rows in all, but m = 9"));
    EXPECT_EQ(refusal_of("3,4", 7), "accepted");
}

// 64 and 65 rows in tiles of 64: 1 + 2; 0 rows: none; 1 row: a whole one.
TEST(GemmGroups, NoTileHasRowsOfTwoGroups) {
    const GemmGroups groups({64, 65, 0, 1, 200});
    EXPECT_EQ(groups.tiles(64), 1 + 2 + 0 + 1 + 4);
    EXPECT_EQ(groups.tiles(8), 8 + 9 + 0 + 1 + 25);
    EXPECT_EQ(groups.tiles(1), 330);
    EXPECT_EQ(groups.tiles(2048), 4);
    EXPECT_EQ(groups.with_rows(), 4);
    EXPECT_EQ(groups.longest(), 200);
    EXPECT_THAT(groups.offsets(), ElementsAre(0, 64, 129, 129, 130, 330));
}

// 5 and 7 have three bits, 64 has seven, 1 one.
TEST(GemmGroups, AlikeAreThoseWithinAFactorOfTwo) {
    const GemmGroups groups({64, 5, 0, 7, 1});
    const auto alike = groups.alike();
    ASSERT_EQ(alike.size(), 3u);
    EXPECT_EQ(alike[0].groups, 1);
    EXPECT_EQ(alike[0].rows, 1);
    EXPECT_EQ(alike[1].groups, 2);
    EXPECT_EQ(alike[1].rows, 6);
    EXPECT_EQ(alike[2].groups, 1);
    EXPECT_EQ(alike[2].rows, 64);
}

TEST(GemmGroups, NoCountsTakeMoreTilesThanTheMost) {
    Random random(5);
    for (int i = 0; i < 300; ++i) {
        std::vector<std::int64_t> rows(1 + random.pick(12));
        for (std::int64_t& r : rows) r = random.whole(0, 40);
        rows.front() += 1;
        const GemmGroups groups(rows);
        for (std::int64_t height : {1, 3, 8, 16, 64}) EXPECT_LE(groups.tiles(height), groups.max_tiles(height)) << height;
    }
    EXPECT_EQ(GemmGroups({1, 1, 14}).max_tiles(8), 4);  // 1 + 1 + ceil(14 / 8): what they take
    EXPECT_EQ(GemmGroups({16, 0, 0}).max_tiles(8), 4);
}

TEST(GemmGroups, AProblemOfThemMovesTheWeightsOfThoseThatHaveRows) {
    const GemmProblem p = grouped("3,0,5", 64, 128);
    EXPECT_EQ(p.m, 8);
    EXPECT_EQ(p.b_stride, 64 * 128);
    EXPECT_EQ(p.b_matrices(), 3);
    EXPECT_EQ(p.compulsory_bytes().value, 2 * (8 * 128 + 2 * 64 * 128 + 8 * 64));
    EXPECT_EQ(p.flops().value, 2.0 * 8 * 64 * 128);
    const TileGrid tiles = cluster_grid(p, 64, 64, 1, 1);
    EXPECT_EQ(tiles.count(), 2);
}

TEST(GemmGroups, ARequestGivesAProblemThatGivesTheRequest) {
    for (const char* groups : {"8x1024", "1,7,512", "64x[0..9]"}) {
        const GemmProblem p = grouped(groups, 256, 512);
        EXPECT_EQ(gemm_problem(gemm_given(p)), p);
        const Operation& operation = gemm_operation();
        const Problem problem{&operation, Own::of(p)};
        EXPECT_EQ(gemm_problem(operation.given_of_record(operation.problem_record(problem))), p);
    }
    EXPECT_NE(grouped("1,2", 64, 64), grouped("2,1", 64, 64));
    EXPECT_NE(grouped("3", 64, 64), gemm_problem(3, 64, 64));
}

TEST(GemmGroups, TensorsAreTheStackAndTheOffsets) {
    const GemmProblem p = grouped("3,0,5", 64, 128);
    const std::vector<TensorInfo> tensors = gemm_operation().tensors({&gemm_operation(), Own::of(p)});
    ASSERT_EQ(tensors.size(), 4u);
    EXPECT_EQ(tensors[1].extents.size(), 3u);
    EXPECT_EQ(tensors[2].name, "offsets");
    EXPECT_EQ(tensors[2].type, "int32");
    EXPECT_EQ(tensors[2].extents[0].most, 4);
    EXPECT_EQ(tensors[3].extents.size(), 2u);
}

// Of three groups 3 x 64 bf16 of bias beside A, B and C; scales one a row of A and one a column of each B.
TEST(GemmGroups, AnEpilogueReadsWhatIsEachGroupsOwn) {
    Given given(Given::Named::by_key);
    for (const auto& [key, value] : {std::pair{"groups", "3,0,5"}, {"n", "64"}, {"k", "128"}, {"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "row"},
                                     {"epilogue", "d = acc + bias"}, {"tensor", "bias:bf16[G,1,N]"}})
        given.add(key, value);
    const GemmProblem p = gemm_problem(given);
    EXPECT_EQ(p.epilogue->bytes, 4 * 8 + 4 * 3 * 64 + 2 * 3 * 64);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    const std::vector<TensorInfo> tensors = gemm_operation().tensors({&gemm_operation(), Own::of(p)});
    std::vector<std::string> shown;
    for (const TensorInfo& t : tensors) {
        shown.push_back(t.name + "[");
        for (const Extent& e : t.extents) shown.back() += std::to_string(e.most) + (&e == &t.extents.back() ? "]" : ",");
    }
    EXPECT_THAT(shown, ElementsAre("a[8,128]", "b[3,128,64]", "offsets[4]", "scale_a[8,1]", "scale_b[3,1,64]", "bias[3,1,64]", "d[8,64]"));
    const SharedEpilogue one = epilogue_of_group(*p.epilogue, 3, 64, p.c_type, 1, 0);
    EXPECT_EQ(one->tensors, std::vector<std::string>{"bias:bf16[64]"});
    EXPECT_EQ(one->operands.size(), 3u);
    EXPECT_FALSE(one->operands[1].by_product);
}

const std::vector<GemmPlan>& plans_of(const GemmProblem& p, std::variant<Plans, Infeasible>& outcome, const GemmRequest& request = {}) {
    outcome = derive(machine_by_id("h200-sxm"), p, request);
    return std::get<Plans>(outcome).plans;
}

// One group is a product, but that its tiles may not end with C; equal groups a batch of which B differs.
TEST(GemmGroups, TheirTimeIsThatOfABatchWhereTheyAreAlike) {
    for (const auto& [text, batch, m] : {std::tuple{"8x1024", 8, 1024}, {"32x256", 32, 256}, {"1x4096", 1, 4096}}) {
        std::variant<Plans, Infeasible> of_groups, of_batch;
        GemmRequest request;
        request.tile_m = 128, request.tile_n = 256, request.swap_ab = false;
        const GemmProblem p = grouped(text, 4096, 2048);
        const double time = plans_of(p, of_groups, request).front().prediction.time_us.value();
        GemmProblem q = gemm_problem(m, 4096, 2048);
        q.batch = batch;
        if (batch > 1) q.a_stride = dense_stride(q, 'a'), q.b_stride = dense_stride(q, 'b'), q.c_stride = dense_stride(q, 'c');
        EXPECT_NEAR(time / plans_of(q, of_batch, request).front().prediction.time_us.value(), 1, 0.02) << text;
    }
}

TEST(GemmGroups, FewRowsAGroupStandOnTheShortSideOfTheInstruction) {
    std::variant<Plans, Infeasible> few, many;
    const GemmConfig& short_k = plans_of(grouped("64x4", 2048, 512), few).front().config;
    EXPECT_TRUE(short_k.swap_ab);
    EXPECT_LE(short_k.tile_m, 16);
    EXPECT_GE(plans_of(grouped("8x2048", 4096, 4096), many).front().config.tile_m, 128);
}

// Row by row a group of several rows of tiles would bring its weights, more than L2 holds, once for each.
TEST(GemmGroups, WeightsOfATallGroupAreReadOnce) {
    std::variant<Plans, Infeasible> outcome;
    GemmRequest request;
    request.tile_m = 24, request.swap_ab = true;
    const GemmProblem p = grouped("7x10,58", 28672, 4096);
    EXPECT_LT(double(plans_of(p, outcome, request).front().prediction.dram_bytes.value()), 1.02 * p.compulsory_bytes().value);
    request.order = Order::row;
    EXPECT_GT(double(plans_of(p, outcome, request).front().prediction.dram_bytes.value()), 1.1 * p.compulsory_bytes().value);
}

// 516 rows in tiles of 176 are 3 rows of 25 tiles 192 wide. All of them run at once, so that by formula every order reads B once; but
// CTAs do not stay in step, and what is read 25 tiles later has left L2 (docs/facts.md 262).
TEST(GemmGroups, TilesThatShareWeightsFollowEachOther) {
    std::variant<Plans, Infeasible> outcome;
    GemmRequest request;
    request.tile_m = 176, request.tile_n = 192, request.swap_ab = true;
    EXPECT_EQ(plans_of(grouped("80x516", 4736, 15424), outcome, request).front().config.order, Order::column);
    EXPECT_EQ(plans_of(grouped("79x516,100", 4736, 15424), outcome, request).front().config.order, Order::column);
    request.order = Order::row;
    EXPECT_EQ(plans_of(grouped("80x516", 4736, 15424), outcome, request).front().config.order, Order::row);
}

TEST(GemmGroups, TheHeadlineSaysWhatItsRowsAre) {
    const GemmProblem p = grouped("3,4,0", 64, 640);
    const Problem problem{&gemm_operation(), Own::of(p)};
    const std::string text = gemm_operation().heading(problem, "h200-sxm", "a GPU", {.utf8 = false, .width = 200});
    EXPECT_THAT(text, HasSubstr("gemm 7 x 64 x 640  (M x N x K, M the sum of 3 groups)"));
    EXPECT_EQ(gemm_operation().short_name(problem), "7x64x640 in 3 groups");
}

// 2^31 rows or so in tiles of 256 x 256: 8e6 x 512, which an int counts no more.
TEST(GemmGroups, TilesAreCountedIn32Bits) {
    GemmRequest request;
    request.buildable_only = true;
    const auto outcome = derive(machine_by_id("h200-sxm"), grouped("1024x2000000", 131072, 64), request);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(outcome));
    EXPECT_THAT(std::get<Infeasible>(outcome).message, HasSubstr("2^31 or more"));
}

// Weights of 64 groups or products of 8 rows, or counts of which the longest is 7 times the mean: from a counter; alike and bound by products, one wave,
// or tiles of one k-step that take less than L2's answer: in fixed turns.
TEST(GemmGroups, TilesComeFromACounterWhereCountsAreUnlikeOrDramBinds) {
    std::variant<Plans, Infeasible> outcome;
    GemmProblem few_rows = gemm_problem(8, 8192, 4096), short_tiles = gemm_problem(1123, 4408, 64);
    for (GemmProblem* p : {&few_rows, &short_tiles}) {
        p->batch = p == &few_rows ? 64 : 8;
        p->a_stride = dense_stride(*p, 'a'), p->b_stride = dense_stride(*p, 'b'), p->c_stride = dense_stride(*p, 'd');
    }
    struct Case {
        GemmProblem problem;
        bool dynamic;
        GemmRequest request = {};
    };
    GemmRequest small;
    small.tile_m = 40, small.tile_n = 64, small.swap_ab = true;
    for (const Case& of : {Case{grouped("64x8", 8192, 4096), true}, Case{grouped("31x256,8192", 8192, 4096), true}, Case{few_rows, true},
                           Case{grouped("32x512", 8192, 4096), false}, Case{grouped("300", 2048, 512), false}, Case{short_tiles, false, small},
                           Case{gemm_problem(8192, 8192, 512), false}}) {
        GemmRequest request = of.request;
        const Plan plan = any_plan(plans_of(of.problem, outcome, request).front());
        EXPECT_EQ(plan.own.as<GemmPlan>().config.dynamic_scheduler, of.dynamic) << of.problem.groups.text() << ' ' << of.problem.batch;
        // As a document says it, and a request of that.
        const Given given = gemm_operation().given_of_config(gemm_operation().config_record(plan));
        EXPECT_EQ(gemm_request(given, 1).dynamic_scheduler, std::optional(of.dynamic));
        if (of.problem.batch == 1 && !of.problem.groups) continue;
        for (const bool dynamic : {false, true}) {
            request.dynamic_scheduler = dynamic;
            const Plan asked = any_plan(plans_of(of.problem, outcome, request).front());
            EXPECT_EQ(asked.own.as<GemmPlan>().config.dynamic_scheduler, dynamic);
            ASSERT_EQ(asked.launches.size(), 1u);
            EXPECT_EQ(asked.launches[0].workspace_bytes, dynamic ? 128 : 0);
            EXPECT_EQ(asked.launches[0].before, dynamic ? WorkspaceState::zeroed : WorkspaceState::any);
            EXPECT_EQ(asked.launches[0].after, asked.launches[0].before);
        }
    }
}

// Three of 16x1024x8192 on 132 SMs: by itself K is cut into pieces, of which a CTA has one, and a counter would have no next tile to give.
TEST(GemmGroups, ACounterThatIsAskedForIsKeptWhereTilesAreFew) {
    std::variant<Plans, Infeasible> outcome;
    GemmProblem p = gemm_problem(16, 1024, 8192);
    p.batch = 3, p.a_stride = dense_stride(p, 'a'), p.b_stride = dense_stride(p, 'b'), p.c_stride = dense_stride(p, 'd');
    EXPECT_GT(plans_of(p, outcome).front().config.grid_split_k, 1);
    GemmRequest request;
    request.dynamic_scheduler = true, request.top = 8;
    for (const GemmPlan& plan : plans_of(p, outcome, request)) {
        EXPECT_TRUE(plan.config.dynamic_scheduler);
        EXPECT_EQ(plan.config.grid_split_k, 1);
    }
}

TEST(GemmGroups, ACounterIsRefusedInTheRightWords) {
    const Machine h100 = machine_by_id("h100-sxm");
    GemmProblem p = gemm_problem(17, 768, 1280);
    p.batch = 180, p.a_stride = dense_stride(p, 'a'), p.c_stride = dense_stride(p, 'd');  // B is shared
    GemmRequest request;
    request.dynamic_scheduler = true;
    const auto why = [&](const Machine& machine) { return std::get<Infeasible>(derive(machine, p, request)).message; };
    EXPECT_THAT(why(h100), HasSubstr("a batch that is not computed as one product, as one that shares B is; leave it off"));
    request.kernel = find_gemm_kernel("sm80_gemm");
    EXPECT_THAT(why(h100), HasSubstr("dynamic_scheduler = on is of sm90_gemm alone, which h100-sxm runs; take that kernel or leave it off"));
    EXPECT_THAT(why(machine_by_id("a100-80-sxm")), HasSubstr("of the Hopper kernel alone; a100-80-sxm has none"));
}

TEST(GemmGroups, RefusedAreBatchesPiecesAndTables) {
    const auto why = [](std::initializer_list<std::pair<const char*, const char*>> more) {
        Given given(Given::Named::by_key);
        for (const auto& [key, value] : {std::pair{"groups", "3,4"}, {"n", "64"}, {"k", "640"}}) given.add(key, value);
        for (const auto& [key, value] : more) given.add(key, value);
        try {
            const auto outcome = derive(machine_by_id("h200-sxm"), gemm_problem(given), gemm_request(given, 1));
            return std::holds_alternative<Infeasible>(outcome) ? std::get<Infeasible>(outcome).message : std::string("planned");
        } catch (const RequestError& error) { return std::string(error.what()); }
    };
    EXPECT_EQ(why({}), "planned");
    EXPECT_THAT(why({{"batch", "2"}}), HasSubstr("batch and groups exclude each other"));
    EXPECT_THAT(why({{"order", "hilbert"}}), HasSubstr("row, column, grouped or serpentine"));
    EXPECT_THAT(why({{"a_major", "m"}}), HasSubstr("give A k-major"));
    EXPECT_EQ(why({{"a_major", "m"}, {"types", "fp8_e4m3,fp8_e4m3,bf16"}}), "planned");
    EXPECT_THAT(why({{"reverse", "on"}}), HasSubstr("leave it off"));
    EXPECT_THAT(why({{"grid_split_k", "2"}}), HasSubstr("take split_k"));
    EXPECT_THAT(why({{"kernel", "sm80_gemm"}}), HasSubstr("sm90_gemm's so far"));
    EXPECT_THAT(why({{"stride_b", "0"}}), HasSubstr("a B of its own"));
    EXPECT_THAT(why({{"stride_b", "100"}}), HasSubstr("would overlap"));
    EXPECT_THAT(why({{"stride_a", "10"}}), HasSubstr("is of a batch"));
    EXPECT_EQ(why({{"epilogue", "d = relu(acc)"}}), "planned");
    EXPECT_EQ(why({{"epilogue", "d = acc + bias"}, {"tensor", "bias:bf16[G,1,N]"}}), "planned");
    EXPECT_THAT(why({{"epilogue", "d = acc + bias"}, {"tensor", "bias:bf16[2,7,64]"}}), HasSubstr("[G,1,N], [G,1,1]"));
    EXPECT_THAT(why({{"epilogue", "d = acc + bias"}, {"tensor", "bias:bf16[3,1,64]"}}), HasSubstr("[G,1,N], [G,1,1]"));
    EXPECT_EQ(why({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "row"}}), "planned");
    EXPECT_EQ(why({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "block"}}), "planned");
    EXPECT_THAT(why({{"types", "fp8_e4m3,fp8_e4m3,bf16"}, {"scales", "block"}, {"tile", "256x128x128"}}), HasSubstr("must be at most 252"));
    EXPECT_THAT(why({{"m", "8"}}), HasSubstr("7 rows in all, but m = 8"));
}

}  // namespace
}  // namespace rooftile
