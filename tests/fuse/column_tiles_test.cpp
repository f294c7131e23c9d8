// How threads lie over columns, and the plans of reductions of columns.
#include "rooftile/fuse/column_tiles.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/expression/row_meaning.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/hardware.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

Program columns_of(std::int64_t rows, std::int64_t columns) {
    Program p;
    p.form = FuseForm::columns;
    p.rows = rows, p.columns = columns;
    return p;
}

FuseConfig config_of(int vector_width, int across, int down, int vectors_per_thread = 1, int splits = 1) {
    FuseConfig c{.form = FuseForm::columns, .vector_width = vector_width, .vectors_per_thread = vectors_per_thread};
    c.threads_per_row = across, c.threads = across * down, c.row_splits = splits;
    return c;
}

TEST(ColumnTiles, WholeVectorsLieAsTheyAre) {
    const ColumnTiles t = column_tiles(columns_of(100, 1000), config_of(8, 32, 8));
    EXPECT_EQ(t.fold, 1);
    EXPECT_EQ(t.period, 1);
    EXPECT_EQ(t.width, 256);
    EXPECT_EQ(t.tiles, 4);  // 125 vectors of 32
}

// 33 elements share nothing with 8: 8 rows are 33 vectors. 100 rows are 12 such and 4 rows more.
TEST(ColumnTiles, ShortRowsLieTogether) {
    const ColumnTiles t = column_tiles(columns_of(100, 33), config_of(8, 33, 4));
    EXPECT_EQ(t.fold, 8);
    EXPECT_EQ(t.period, 1);
    EXPECT_EQ(t.row, 264);
    EXPECT_EQ(t.rows, 13);
    EXPECT_EQ(t.tiles, 1);
    EXPECT_EQ(column_tiles(columns_of(100, 36), config_of(8, 9, 4)).fold, 2);  // shares 4 with 8
}

// 4099: every 8 rows vectors lie alike; 32 threads across have 31 vectors of their own, so 4099 / 248 tiles.
TEST(ColumnTiles, OtherRowsShift) {
    const ColumnTiles t = column_tiles(columns_of(100, 4099), config_of(8, 32, 8));
    EXPECT_EQ(t.fold, 1);
    EXPECT_EQ(t.period, 8);
    EXPECT_EQ(t.width, 248);
    EXPECT_EQ(t.tiles, 17);
    // 1030 shares 2: vectors begin 0, 2, 4 or 6 elements before a row, which 130 vectors have wherever it begins.
    EXPECT_EQ(column_tiles(columns_of(100, 1030), config_of(8, 130, 4)).tiles, 1);
    EXPECT_EQ(column_tiles(columns_of(100, 1030), config_of(8, 129, 4)).tiles, 2);
}

/// What kernels/fuse/columns.cuh does, in places alone: how often each element is taken by its own column.
std::vector<int> taken(const Program& p, const FuseConfig& c) {
    const ColumnTiles t = column_tiles(p, c);
    const std::int64_t width = c.vector_width, whole_rows = p.rows / t.fold;
    std::vector<int> times(std::size_t(p.rows * p.columns));
    for (std::int64_t tile = 0; tile < t.tiles; ++tile)
        for (std::int64_t split = 0; split < c.row_splits; ++split)
            for (int y = 0; y < t.down; ++y)
                for (int x = 0; x < t.across; ++x) {
                    const std::int64_t shift = t.period > 1 ? t.row % width * y % width : 0;
                    const std::int64_t first = tile * t.width;
                    const auto take = [&](std::int64_t row) {
                        for (std::int64_t k = 0; k < width; ++k) {
                            const std::int64_t own = x * width - shift + k;  // in the tile
                            const std::int64_t at = (row * t.row - shift + first) / width * width + x * width + k;
                            if (own < 0 || own >= std::min(t.width, t.row - first) || at >= p.rows * p.columns) continue;
                            EXPECT_EQ(at % p.columns, (first + own) % p.columns);
                            ++times[std::size_t(at)];
                        }
                    };
                    const std::int64_t turn = std::int64_t(t.down) * c.vectors_per_thread;
                    for (std::int64_t row = split * turn + y; row < whole_rows; row += c.row_splits * turn)
                        for (int i = 0; i < c.vectors_per_thread && row + i * t.down < whole_rows; ++i) take(row + i * t.down);
                    if (split == 0 && y == 0 && p.rows % t.fold != 0) take(whole_rows);
                }
    return times;
}

// Whatever the planner chooses: each element counts once, in its own column, and no value is added up through more additions
// than the reference allows.
TEST(ColumnTiles, EveryPlanTakesEveryElementOnce) {
    std::mt19937 random(5);
    const Machine machine = machine_by_id("h200-sxm");
    int plans_seen = 0;
    for (int problem = 0; problem < 60; ++problem) {
        const auto log_uniform = [&](double most) { return std::int64_t(std::pow(most, std::uniform_real_distribution<>(0, 1)(random))); };
        const std::int64_t rows = log_uniform(3000), columns = std::max<std::int64_t>(1, std::min(log_uniform(5000), 400000 / rows));
        const char* type = problem % 3 == 0 ? "fp32" : "bf16";
        const TensorDeclaration x[] = {tensor_declaration(fmt::format("x:{}[{},{}]", type, rows, columns))};
        const auto found = derive(machine, expression_graph("y = column_sum(x)", x), {.top = 12});
        for (const FusePlan& plan : std::get<FusePlans>(found).plans) {
            const FuseConfig& c = plan.config;
            EXPECT_TRUE(plan.buildable) << plan.why_not;
            EXPECT_LE(column_depth(plan.program, c), meaning::column_roundings(double(rows)));
            EXPECT_EQ(c.threads % c.threads_per_row, 0);
            EXPECT_EQ((c.threads / c.threads_per_row) % column_tiles(plan.program, c).period, 0);
            EXPECT_LE(column_shared_bytes(plan.program, c), 49152);
            const std::vector<int> times = taken(plan.program, c);
            EXPECT_EQ(std::size_t(std::ranges::count(times, 1)), times.size())
                << rows << "x" << columns << " " << type << ": " << c.threads_per_row << " x " << c.threads / c.threads_per_row;
            ++plans_seen;
        }
    }
    EXPECT_GE(plans_seen, 400);
}

// The last additions of 2^24 rows by one CTA would be far more than 64 + 2^24 / 32.
TEST(ColumnTiles, AdditionsAreCounted) {
    const Program p = columns_of(1 << 24, 256);
    EXPECT_EQ(column_depth(p, config_of(8, 32, 8, 1, 1)), 1 + (1 << 21) + 1 + 6 + 1);
    EXPECT_GT(column_depth(p, config_of(8, 32, 8, 1, 1)), meaning::column_roundings(1 << 24));
    // 32 turns of 8 x 4 rows by 16384 CTAs, of which each of 4 threads for four columns adds up 4096; by fours three more.
    EXPECT_EQ(column_depth(p, config_of(8, 32, 8, 4, 16384)), 4 + 32 + 1 + 6 + 1 + 4096 + 3);
}

TEST(ColumnTiles, PlansFillTheGpuAndNarrowVectorsFitSharedOperands) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto best = [&](std::string_view text, const std::vector<std::string>& tensors, FuseRequest request = {}) {
        std::vector<TensorDeclaration> declared;
        for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
        return std::get<FusePlans>(derive(machine, expression_graph(text, declared), request)).plans.at(0).config;
    };
    EXPECT_GE(best("y = column_sum(x)", {"x:bf16[65536,64]"}).grid, 66);
    EXPECT_EQ(best("y = column_sum(x)", {"x:bf16[64,1048576]"}).row_splits, 1);
    EXPECT_EQ(best("y = column_sum(x)", {"x:bf16[1000,1030]"}).vector_width, 8);
    // A vector of one row has one factor: 2 elements.
    EXPECT_EQ(best("y = column_sum(x * r)", {"x:bf16[1000,1030]", "r:fp32[1000,1]"}).vector_width, 2);
    EXPECT_EQ(best("y = column_sum(x)", {"x:bf16[1000,1024]"}, {.row_splits = 2}).row_splits, 2);
    EXPECT_EQ(best("y = column_sum(x)", {"x:bf16[0,64]"}).row_splits, 1);
}

// One element takes one thread, whatever a CTA may have: one plan, not one for each size of CTA.
TEST(ColumnTiles, NoPlanIsThereTwice) {
    const Machine machine = machine_by_id("h200-sxm");
    for (const char* tensor : {"x:fp32[1,1]", "x:fp32[3,2]", "x:bf16[64,8]", "x:bf16[1000,8]", "x:fp32[100000,64]"}) {
        const TensorDeclaration x[] = {tensor_declaration(tensor)};
        const auto found = derive(machine, expression_graph("y = column_sum(x)", x), {.top = 32});
        const std::vector<FusePlan>& plans = std::get<FusePlans>(found).plans;
        for (std::size_t i = 0; i < plans.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) EXPECT_NE(plans[i].config, plans[j].config) << tensor << " plans " << j + 1 << " and " << i + 1;
    }
    const TensorDeclaration one[] = {tensor_declaration("x:fp32[1,1]")};
    EXPECT_EQ(std::get<FusePlans>(derive(machine, expression_graph("y = column_sum(x)", one), {.top = 32})).plans.size(), 1u);
}

// Without a number of SMs, or any number of memory, there is a plan all the same.
TEST(ColumnTiles, UnknownNumbersLeaveAPlan) {
    const TensorDeclaration x[] = {tensor_declaration("x:bf16[4096,1000]")};
    for (const std::string& id : machine_ids()) {
        const auto found = derive(machine_by_id(id), expression_graph("y = column_sum(x)", x));
        EXPECT_TRUE(std::holds_alternative<FusePlans>(found)) << id;
    }
}

}  // namespace
}  // namespace rooftile
