// Launches in which all rows are resident in the grid: offered where the grid is resident, and nowhere else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

std::variant<FusePlans, FuseInfeasible> planned(const std::string& text, const std::string& shape,
                                                FuseRequest request = {}) {
    const std::string row = shape.substr(shape.rfind(',') + 1);
    std::vector<TensorDeclaration> tensors;
    for (const std::string name : {"x", "r", "g", "b"})
        if (text.find(name + ",") != std::string::npos || text.find(name + ")") != std::string::npos
            || text.find("+ " + name) != std::string::npos)
            tensors.push_back(
                tensor_declaration(name + ":bf16[" + (name == "x" || name == "r" ? shape : row) + "]"));
    request.top = 256;
    return derive(machine_by_id("h200-sxm"), expression_graph(text, tensors), request);
}

constexpr const char* functions[] = {"y = softmax(x)", "y = layernorm(x, g, b)", "y = rmsnorm(x, g)",
                                     "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, seed=1))"};

TEST(FuseGridResident, FewVeryLongRowsTakeIt) {
    for (const char* text : functions) {
        const auto outcome = planned(text, "16,1048576");
        const FusePlan& best = std::get<FusePlans>(outcome).plans.front();
        EXPECT_TRUE(grid_resident_rows(best.config)) << text;
        EXPECT_EQ(best.config.grid, 16 * best.config.cluster);
        std::vector<std::string> told;
        for (const Step& step : best.derivation) told.push_back(step.quantity);
        EXPECT_THAT(told, testing::IsSupersetOf({"held_in_l2", "held_iterations", "grid", "ctas_per_sm"}))
            << text;
    }
}

// 16 CTAs a row, two an SM: of 128 KiB a CTA could have 112 in 7 iterations of 16. Shared memory has 228 KiB of the 256 then,
// and with 6 iterations as well, and L1 28, which is less than the 36 KB that must be in flight; with 5 it has 196, and L1 60.
// What only the last pass reads is not held. Both of an SM have the same part of their rows.
TEST(FuseGridResident, TurnsWaitInSharedMemory) {
    const auto asked = [](std::optional<int> stages) {
        return FuseRequest{.vectors_per_thread = 2,
                           .threads = 512,
                           .cluster = 16,
                           .stages = stages,
                           .row_storage = RowStorage::reload,
                           .grid_reduction = true};
    };
    for (const char* text : {functions[0], functions[1], functions[2]}) {
        const auto outcome = planned(text, "16,1048576", asked({}));
        const FusePlan& plan = std::get<FusePlans>(outcome).plans.front();
        EXPECT_EQ(plan.config.stages, 5) << text;
        EXPECT_EQ(plan.resources.shared_bytes, 5 * 512 * 2 * 16) << text;
        EXPECT_EQ(rows_gathered(plan.program, plan.config), 2);
        const auto fewer = planned(text, "16,1048576", asked(3));
        EXPECT_EQ(std::get<FusePlans>(fewer).plans.front().config.stages, 3);
        const auto most = planned(text, "16,1048576", asked(7));
        EXPECT_EQ(std::get<FusePlans>(most).plans.front().config.stages, 7);
    }
    const auto more = planned(functions[0], "16,1048576", asked(8));
    EXPECT_TRUE(std::holds_alternative<FuseInfeasible>(more));
}

// CTAs of a row are any number: of 5 rows 26 each leave two SMs without, 53 and 79 and 105 hardly more.
TEST(FuseGridResident, AnyNumberOfCtasSharesARow) {
    const auto few = planned(functions[1], "5,4194304",
                             {.row_storage = RowStorage::reload, .grid_reduction = true, .exhaustive = true});
    std::set<int> teams;
    for (const FusePlan& plan : std::get<FusePlans>(few).plans) teams.insert(plan.config.cluster);
    EXPECT_THAT(teams, testing::IsSupersetOf({16, 26}));
}

// One row goes over all SMs, as many CTAs on each; over 128 of the 132 where its iterations are whole so.
TEST(FuseGridResident, OneRowGoesOverAllSms) {
    for (const char* text : {"y = softmax(x)", "y = logsumexp(x)", "y = sum(x)"})
        for (const char* shape : {"1,16777216", "1,16777217"}) {
            const auto outcome = planned(text, shape);
            const FusePlan& plan = std::get<FusePlans>(outcome).plans.front();
            EXPECT_TRUE(grid_resident_rows(plan.config)) << text << " of " << shape;
            EXPECT_GE(plan.config.grid, 128 * plan.config.ctas_per_sm) << text << " of " << shape;
        }
}

TEST(FuseGridResident, AllTurnsWaitWhereNobodyKnowsWhatL1Has) {
    Machine m = machine_by_id("h200-sxm");
    m.facts.erase("shared.carveout_step");
    const std::vector<TensorDeclaration> x = {tensor_declaration("x:bf16[16,1048576]")};
    const FuseRequest request = {
        .vectors_per_thread = 2, .threads = 512, .cluster = 16, .row_storage = RowStorage::reload};
    const auto outcome = derive(m, expression_graph("y = softmax(x)", x), request);
    EXPECT_EQ(std::get<FusePlans>(outcome).plans.front().config.stages, 7);
}

// However CTAs are placed, each part of each row has one; where SMs get them in turn, those of an SM share a part.
TEST(FuseGridResident, CtasOfAnSmHaveOnePart) {
    struct Placement {
        unsigned sms, each, team, rows;
    };
    for (const Placement& d :
         {Placement{132, 2, 16, 16}, {132, 4, 32, 16}, {132, 3, 8, 48}, {114, 2, 32, 6}, {7, 2, 4, 2}}) {
        const unsigned grid = d.team * d.rows;
        std::set<unsigned> places;
        std::map<unsigned, std::set<unsigned>> parts;
        for (unsigned block = 0; block < grid; ++block) {
            const unsigned place = fuse::gathered(block, d.sms, d.each, d.team, grid);
            EXPECT_LT(place, grid);
            places.insert(place);
            if (block % d.sms < grid - (d.each - 1) * d.sms) parts[block % d.sms].insert(place % d.team);
        }
        EXPECT_EQ(places.size(), grid);
        for (const auto& [sm, of] : parts) EXPECT_EQ(of.size(), 1u) << sm;
    }
    EXPECT_EQ(fuse::gathered(200, 100, 2, 16, 256), 200u);  // more than so many SMs hold at once: as it is
    EXPECT_EQ(fuse::gathered(200, 300, 2, 16, 256), 200u);  // and where each has one
}

// The 132 SMs hold 2048 threads and 65536 registers each.
TEST(FuseGridResident, EveryGridIsResident) {
    int found = 0;
    for (const char* text : functions)
        for (const char* shape : {"16,1048576", "3,524288", "17,262144", "64,131072", "130,65536"}) {
            const auto outcome =
                planned(text, shape, {.row_storage = RowStorage::reload, .grid_reduction = true});
            for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
                const FuseConfig& c = plan.config;
                EXPECT_TRUE(grid_resident_rows(c));
                EXPECT_FALSE(c.persistent);
                EXPECT_EQ(c.grid, plan.program.rows * c.cluster);
                EXPECT_LE(c.grid, std::int64_t(132) * c.ctas_per_sm);
                EXPECT_LE(c.ctas_per_sm * c.threads, 2048);
                EXPECT_LE((*plan.resources.shared_bytes + 1024) * c.ctas_per_sm, 228 * 1024);
                EXPECT_LE(double(*plan.resources.registers) * c.threads * c.ctas_per_sm, 65536);
                ++found;
            }
        }
    EXPECT_GE(found, 100);
}

// 17 CTAs of 128 threads on an SM are 2176 threads, 16 leave 32 registers a thread, 8 leave 64. Of more rows than half as many
// as CTAs of all SMs none has two.
TEST(FuseGridResident, RowsThatWouldWaitForOthersAreRefused) {
    FuseRequest request = {.cluster = 2, .row_storage = RowStorage::reload, .grid_reduction = true};
    const auto threads = planned("y = softmax(x)", "1100,65536", request);
    EXPECT_GT(std::get<FuseInfeasible>(threads).rejected.reasons[size_t(Reason::threads)], 0);
    const auto registers = planned("y = softmax(x)", "1050,65536", request);
    EXPECT_GT(std::get<FuseInfeasible>(registers).rejected.reasons[size_t(Reason::registers)], 0);
    EXPECT_TRUE(std::holds_alternative<FusePlans>(planned("y = softmax(x)", "528,65536", request)));
    request.cluster.reset();
    EXPECT_TRUE(std::holds_alternative<FusePlans>(planned("y = softmax(x)", "264,65536", request)));
    EXPECT_TRUE(std::holds_alternative<FuseInfeasible>(planned("y = softmax(x)", "265,65536", request)));
    FuseRequest fixed = request;
    fixed.cluster = 32;
    EXPECT_TRUE(std::holds_alternative<FusePlans>(planned("y = softmax(x)", "16,1048576", fixed)));
    EXPECT_TRUE(std::holds_alternative<FuseInfeasible>(planned("y = softmax(x)", "150,1048576", fixed)));
    fixed.persistent = true;
    EXPECT_TRUE(std::holds_alternative<FuseInfeasible>(planned("y = softmax(x)", "16,1048576", fixed)));
}

TEST(FuseGridResident, NotWithoutANumberOfSms) {
    Machine bare;
    bare.id = "bare";
    bare.arch = "sm_90";
    const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16[16,1048576]")};
    const auto outcome = derive(bare, expression_graph("y = softmax(x)", tensors), {.top = 256});
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans)
        EXPECT_FALSE(reduces_across_grid(plan.config));
}

TEST(FuseGridResident, WhatIsReadOnceWaitsNowhere) {
    const auto outcome = planned("y = sum(x)", "16,1048576", {.row_storage = RowStorage::reload, .grid_reduction = true});
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        EXPECT_FALSE(holds_iterations(plan.program, plan.config));
        EXPECT_EQ(plan.resources.shared_bytes, 0);
    }
}

}  // namespace
}  // namespace rooftile
