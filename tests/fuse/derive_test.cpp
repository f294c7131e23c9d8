// Launches of fused kernels: every candidate within its constraints, choices with their reasons, unknown numbers
// named.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/fuse/search.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

ExpressionGraph made(std::string_view text, std::vector<std::string> tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}
FusePlans plans_for(const char* machine, const ExpressionGraph& problem, FuseRequest request = {}) {
    return std::get<FusePlans>(derive(machine_by_id(machine), problem, request));
}

// Rows of 4097 elements begin and end within vectors of any width up to 16 bytes; one long row of 132 x 4097 ends in a tail.
// Reductions of everything take whole vectors of what rows share.
TEST(FuseDerive, AskedVectorWidthsFitRowsAndAddresses) {
    const Machine machine = machine_by_id("h200-sxm");
    const ExpressionGraph rows = made("y = softmax(x)", {"x:bf16[132,4097]"});
    for (int vector_width : {3, 16})
        EXPECT_THROW(derive(machine, rows, {.vector_width = vector_width}), RequestError) << vector_width;
    for (int vector_width : {1, 2, 4, 8})
        EXPECT_EQ(
            plans_for("h200-sxm", rows, {.vector_width = vector_width}).plans.front().config.vector_width,
            vector_width);
    const ExpressionGraph whole = made("s = sum_all(x + b)", {"x:bf16[132,4097]", "b:bf16[4097]"});
    EXPECT_THROW(derive(machine, whole, {.vector_width = 2}), RequestError);
    const ExpressionGraph flat = made("y = gelu(x)", {"x:bf16[132,4097]"});
    EXPECT_EQ(plans_for("h200-sxm", flat, {.vector_width = 4}).plans.front().config.vector_width, 4);
    EXPECT_THROW(derive(machine, flat, {.vector_width = 3}), RequestError);
    EXPECT_THROW(derive(machine, flat, {.vector_width = 8, .alignment = 8}), RequestError);
}

TEST(FuseDerive, AddressesHoldWholeElements) {
    const ExpressionGraph p = made("y = gelu(x)", {"x:bf16[64,1024]"});
    for (const int alignment : {1, 3})
        EXPECT_THROW(plans_for("h200-sxm", p, {.alignment = alignment}), RequestError);
    EXPECT_EQ(plans_for("h200-sxm", p, {.alignment = 2}).plans[0].config.vector_width, 1);
    EXPECT_EQ(plans_for("h200-sxm", p, {.alignment = 6}).plans[0].config.vector_width, 1);
}

TEST(FuseDerive, EveryPlanKeepsItsConstraints) {
    const Machine machine = machine_by_id("h100-sxm");
    const double registers = *machine.count("sm.registers"), warps = *machine.count("sm.max_warps");
    for (const char* text : {"y = gelu(x)", "y = softmax(x)", "y = layernorm(x) * x", "y = sum_all(x)"})
        for (const char* x : {"x:bf16[32768,256]", "x:fp32[16384,4096]", "x:bf16[2048,65536]",
                              "x:bf16[16,1048576]", "x:bf16[7,1009]", "x:bf16[1,1]", "x:fp16[0,8]"}) {
            const FusePlans plans = plans_for("h100-sxm", made(text, {x}), {.top = 256});
            for (const FusePlan& p : plans.plans) {
                const FuseConfig& c = p.config;
                const std::string where = std::string(text) + " " + x;
                EXPECT_LE(double(*p.resources.registers) * c.threads * c.ctas_per_sm, registers) << where;
                EXPECT_LE(c.threads * c.ctas_per_sm, warps * 32) << where;
                EXPECT_TRUE(p.buildable) << p.why_not;
                EXPECT_GE(c.grid, 1) << where;
                EXPECT_TRUE(p.program.flat || p.program.form == FuseForm::row
                            || p.program.columns % c.vector_width == 0)
                    << where;
                const std::int64_t held =
                    std::int64_t(c.threads_per_row) * c.cluster * c.vectors_per_thread * c.vector_width;
                EXPECT_TRUE(c.row_storage != RowStorage::registers || held >= p.program.columns) << where;
            }
        }
}

TEST(FuseDerive, PlansAskForTheSharedMemoryTheirRowsTake) {
    constexpr std::int64_t per_cta = 227 * 1024, exchange = 1792;
    int staged = 0;
    for (const char* x : {"bf16[32768,256]", "fp32[16384,4096]", "bf16[64,65536]", "fp32[1,1]", "fp32[9,33]"})
        for (RowStorage row_storage : {RowStorage::registers, RowStorage::reload}) {
            FuseRequest request;
            request.row_storage = row_storage;
            request.top = 256;
            const ExpressionGraph p =
                made("y = softmax(x * 2) + r", {std::string("x:") + x, std::string("r:") + x});
            const auto outcome = derive(machine_by_id("h100-sxm"), p, request);
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) continue;  // a short row is read in one piece, never twice
            const int element = bytes_of(p.nodes[size_t(p.inputs[0])].element);
            for (const FusePlan& plan : plans->plans) {
                const FuseConfig& c = plan.config;
                ASSERT_TRUE(plan.resources.shared_bytes);
                const std::int64_t asked = *plan.resources.shared_bytes;
                EXPECT_EQ(asked, staged_rows(plan.program, c).bytes);
                const std::int64_t taken =
                    std::int64_t(c.vectors_per_thread) * c.threads_per_row * c.vector_width;
                // Of rows that are all resident in the grid iterations of x: it is read again, and nothing else.
                const std::int64_t iterations = c.stages * taken * element;
                const std::int64_t held = grid_resident_rows(c) ? iterations : 0;
                EXPECT_EQ(asked, held) << x << " plan " << plan.rank;
                EXPECT_LE(asked + (held > 0 ? 1152 : exchange), per_cta);
                for (const StagedRows::Tensor& t : staged_rows(plan.program, c).tensors)
                    EXPECT_EQ(t.offset % 16, 0);
                staged += asked > 0;
            }
        }
    EXPECT_GE(staged, 9);
}

TEST(FuseDerive, VectorsAreAsWideAsShapeAndAlignmentAllow) {
    const auto vector_width = [](const char* text, std::vector<std::string> tensors, int alignment = 256) {
        return plans_for("h100-sxm", made(text, std::move(tensors)), {.alignment = alignment})
            .plans[0]
            .config.vector_width;
    };
    EXPECT_EQ(vector_width("y = gelu(x)", {"x:bf16[1000,1000]"}), 8);
    EXPECT_EQ(vector_width("y = gelu(x)", {"x:fp32[1000,1000]"}), 4);
    EXPECT_EQ(vector_width("y = gelu(x)", {"x:bf16[1009,1009]"}), 8);  // one long row: a tail of one element
    EXPECT_EQ(vector_width("y = softmax(x)", {"x:bf16[64,1009]"}),
              8);  // every row begins elsewhere in a vector
    EXPECT_EQ(vector_width("y = softmax(x)", {"x:bf16[64,1009]"}, 8), 4);
    EXPECT_EQ(vector_width("y = x + b", {"x:bf16[64,1009]", "b:bf16[1009]"}), 8);
    EXPECT_EQ(vector_width("y = gelu(x)", {"x:bf16[1000,1000]"}, 8), 4);
    EXPECT_EQ(vector_width("y = gelu(x)", {"x:bf16[1000,1000]"}, 2), 1);
    EXPECT_EQ(vector_width("y = bf16(x)", {"x:fp32[1000,1000]"}), 8);  // two loads of 16 B to one store
}

TEST(FuseDerive, LongerRowsTakeMoreThreads) {
    int before = 0;
    for (const char* x : {"x:bf16[32768,256]", "x:bf16[32768,1024]", "x:bf16[16384,4096]",
                          "x:bf16[8192,16384]", "x:bf16[2048,65536]"}) {
        const FuseConfig c = plans_for("h100-sxm", made("y = softmax(x)", {x})).plans[0].config;
        const int threads = c.threads_per_row * c.cluster;
        EXPECT_GE(threads, before) << x;
        before = threads;
    }
}

TEST(FuseDerive, EnoughInFlightOrTheBoundIsLatency) {
    const FusePlans plans = plans_for("h100-sxm", made("y = gelu(x)", {"x:bf16[16384,16384]"}));
    const FusePlan& best = plans.plans[0];
    EXPECT_GE(*best.resources.bytes_in_flight, *best.resources.bytes_in_flight_needed);
    EXPECT_EQ(*best.prediction.bound, Bound::dram);
    // 2 x 16384^2 x 2 B = 1.07 GB.
    EXPECT_EQ(*best.prediction.moved_bytes, 1073741824);
    const FusePlans starved = plans_for(
        "h100-sxm", made("y = softmax(x)", {"x:bf16[16384,4096]"}),
        {.vectors_per_thread = 2, .threads = 64, .ctas_per_sm = 1, .row_storage = RowStorage::reload});
    EXPECT_EQ(*starved.plans[0].prediction.bound, Bound::latency);
}

TEST(FuseDerive, TheDerivationTellsTheMethodsSteps) {
    const FusePlans plans = plans_for(
        "h200-sxm", made("y = layernorm(x, g, b)", {"x:bf16[16384,4096]", "g:bf16[4096]", "b:bf16[4096]"}));
    std::set<std::string> told;
    for (const Step& s : plans.plans[0].derivation) {
        told.insert(s.quantity);
        EXPECT_TRUE(s.value) << s.quantity;
        EXPECT_FALSE(s.formula.empty()) << s.quantity;
    }
    for (const char* quantity :
         {"moved_bytes", "vector_width", "elements_per_thread", "rows_per_cta", "bytes_in_flight_needed",
          "bytes_in_flight", "ctas_per_sm", "grid", "issue_time", "time_us", "speedup"})
        EXPECT_TRUE(told.contains(quantity)) << quantity;
    EXPECT_EQ(plans.unfused.kernels, 1);
    EXPECT_EQ(plans.operators.size(), 1u);
}

TEST(FuseDerive, UnknownNumbersAreNamedAndPlansStand) {
    Machine bare;
    bare.id = "bare";
    bare.arch = "sm_90";
    const auto outcome = derive(bare, made("y = softmax(x)", {"x:bf16[64,4096]"}));
    const FusePlans& plans = std::get<FusePlans>(outcome);
    EXPECT_FALSE(plans.plans.empty());
    EXPECT_FALSE(plans.plans[0].prediction.time_us);
    EXPECT_FALSE(plans.unfused.time_us);
    EXPECT_TRUE(plans.unfused.moved_bytes);
    EXPECT_THAT(plans.unknown, testing::IsSupersetOf({"sm.count", "dram.bandwidth", "dram.latency"}));
    EXPECT_THAT(plans.unchecked_constraints, testing::Contains("registers"));
}

// Kept weights are asked for behind the first row's chunks: with fewer slots nobody would ever give one back.
TEST(FuseDerive, RingsThatKeepWeightsHoldARow) {
    int kept = 0;
    for (const char* text : {"y = sum(x * w)", "y = softmax(x * w)"})
        for (const char* columns : {"32768", "65536", "262144"}) {
            const ExpressionGraph p =
                made(text, {fmt::format("x:bf16[4096,{}]", columns), fmt::format("w:bf16[{}]", columns)});
            const auto outcome =
                derive(machine_by_id("h200-sxm"), p, {.row_storage = RowStorage::pipelined, .top = 1000});
            for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
                if (!plan.config.early_weights) continue;
                ++kept;
                EXPECT_GE(plan.config.stages, ring_chunks(plan.program, plan.config))
                    << text << " of " << columns;
            }
        }
    EXPECT_GT(kept, 10);
}

// Rows of 31 are 4 or 5 vectors, as they begin: a third CTA of a cluster could have none.
TEST(FuseDerive, EveryCtaOfAClusterHasVectorsOfEveryRow) {
    const auto clusters_of = [](const char* shape) {
        FuseRequest request;
        request.top = 1000, request.exhaustive = true, request.row_storage = RowStorage::pipelined;
        const auto outcome = derive(machine_by_id("h200-sxm"), made("y = x + sum(x)", {shape}), request);
        std::set<int> clusters;
        if (const auto* plans = std::get_if<FusePlans>(&outcome))
            for (const FusePlan& plan : plans->plans) clusters.insert(plan.config.cluster);
        return clusters;
    };
    EXPECT_EQ(clusters_of("x:fp16[50074,31]"), (std::set<int>{1, 2}));
    EXPECT_TRUE(clusters_of("x:fp16[50074,477]").contains(8));
}

// What is asked for holds for every launch, whatever its row storage.
TEST(FuseDerive, EveryRowStorageKeepsWhatIsAskedFor) {
    const ExpressionGraph p = made("y = softmax(x)", {"x:bf16[4096,65536]"});
    const ExpressionGraph few = made("y = softmax(x)", {"x:bf16[16,1048576]"});
    const auto all = [&](FuseRequest request) {
        request.top = 1000;
        const bool across_grid = request.grid_reduction.value_or(false);  // which pays where rows are few
        const auto outcome = derive(machine_by_id("h200-sxm"), across_grid ? few : p, request);
        const auto* plans = std::get_if<FusePlans>(&outcome);
        return plans ? plans->plans : std::vector<FusePlan>{};
    };
    const auto each = [&](const FuseRequest& request, auto value, auto wanted) {
        const auto plans = all(request);
        EXPECT_FALSE(plans.empty()) << wanted;
        for (const FusePlan& plan : plans) EXPECT_EQ(value(plan.config), wanted);
    };
    for (const int reduction_threads : {0, 128})
        each(
            {.reduction_threads = reduction_threads}, [](const FuseConfig& c) { return c.reduction_threads; },
            reduction_threads);
    for (const int threads : {256, 512}) {
        each(
            {.threads_per_row = threads}, [](const FuseConfig& c) { return c.threads_per_row; }, threads);
        each(
            {.threads = threads}, [](const FuseConfig& c) { return c.threads; }, threads);
    }
    for (const bool yes : {true, false}) {
        each(
            {.persistent = yes}, [](const FuseConfig& c) { return c.persistent; }, yes);
        each(
            {.grid_reduction = yes}, [](const FuseConfig& c) { return c.grid_reduction; }, yes);
    }
    each(
        {.cluster = 4}, [](const FuseConfig& c) { return c.cluster; }, 4);
    each(
        {.vectors_per_thread = 2}, [](const FuseConfig& c) { return c.vectors_per_thread; }, 2);
    each(
        {.stages = 6}, [](const FuseConfig& c) { return c.stages; }, 6);
    each(
        {.ctas_per_sm = 2}, [](const FuseConfig& c) { return c.ctas_per_sm; }, 2);
    EXPECT_TRUE(all({.reduction_threads = 128, .row_storage = RowStorage::reload}).empty());
}

TEST(FuseDerive, SpacesThatNoIndexCountsAreRefused) {
    EXPECT_THROW(made("y = gelu(x)", {"x:bf16[140737488355327,140737488355327,0]"}), RequestError);
    // Two results that nothing but the loop joins.
    const ExpressionGraph p =
        made("y = gelu(a); z = gelu(b)", {"a:bf16[1099511627776,1,1]", "b:bf16[1,1099511627776,1]"});
    const auto outcome = derive(machine_by_id("h200-sxm"), p);
    ASSERT_TRUE(std::holds_alternative<FuseInfeasible>(outcome));
    EXPECT_THAT(std::get<FuseInfeasible>(outcome).message, testing::HasSubstr("2^48"));
}

/// A step of a derivation, to be computed again from what it says.
class Told {
  public:
    Told(const FusePlan& plan, std::string_view quantity) {
        for (const Step& s : plan.derivation)
            if (s.quantity == quantity) step_ = s;
    }
    bool there() const { return !step_.quantity.empty(); }
    double value() const { return step_.value.value_or(std::nan("")); }
    double operator[](std::string_view input) const {
        for (const Input& i : step_.inputs)
            if (i.name == input) return i.value.value_or(std::nan(""));
        return std::nan("");
    }
    bool has(std::string_view input) const { return !std::isnan((*this)[input]); }

  private:
    Step step_;
};

// Whoever computes a formula with the inputs beside it comes to its value, in every row storage.
TEST(FuseDerive, FormulasAddUp) {
    std::set<RowStorage> row_storages;
    int grid_resident = 0;
    for (const char* text :
         {"y = gelu(x)", "y = layernorm(x)", "y = sum(x)", "y = softmax(x)", "y = softmax(x) + r"})
        for (const char* shape :
             {"16384,4096", "32768,256", "1001,1001", "2048,65536", "1024,262144", "16,1048576"}) {
            std::vector<std::string> tensors = {fmt::format("x:bf16[{}]", shape)};
            if (std::string_view(text).ends_with("r")) tensors.push_back(fmt::format("r:bf16[{}]", shape));
            for (const FusePlan& plan : plans_for("h200-sxm", made(text, tensors)).plans) {
                const std::string where = fmt::format("{} of {}, plan {}", text, shape, plan.rank);
                const FuseConfig& c = plan.config;
                row_storages.insert(c.row_storage);
                grid_resident += grid_resident_rows(c);
                const auto expect = [&](double evaluated, double told, const char* what) {
                    EXPECT_NEAR(evaluated, told, 1e-6 * std::fabs(told)) << what << ", " << where;
                };
                const Told time(plan, "time_us");
                expect(time["working"] + time["launch"] + time["ends"], time.value(), "time");
                EXPECT_GE(time["working"], time["issue"] * 0.99) << where;
                const Told needed(plan, "bytes_in_flight_needed");
                expect(needed["round"] * needed["rate"], needed.value(), "needed");
                const Told issue(plan, "issue_time");
                EXPECT_GE(issue["beside"], -1e-9) << where;
                const double cycle_lanes =
                    issue["issue_lanes"] * issue["sm.count"] * issue["clock.boost"] * 1e9;
                expect((issue["instructions"] + issue["beside"]) * issue["elements"] / cycle_lanes * 1e6,
                       issue.value(), "issue");
                const Told flight(plan, "bytes_in_flight");
                if (c.row_storage == RowStorage::pipelined) {
                    expect(std::min(flight["slots"], flight["ahead"]) + flight["epilogue"], flight.value(),
                           "in flight");
                } else {
                    double product = 1;
                    for (const char* factor :
                         {"ctas_per_sm", "threads", "vectors_per_thread", "vector_width", "element_bytes"})
                        product *= flight[factor];
                    if (flight.has("unrolled_iterations")) product *= flight["unrolled_iterations"];
                    // Rows that end within a thread's last vectors have no more bytes than they have.
                    EXPECT_GE(product * (1 + 1e-6), flight.value()) << where;
                    if (std::string_view(shape) != "1001,1001") expect(product, flight.value(), "in flight");
                }
                if (const Told shared(plan, "shared_bytes"); shared.there()) {
                    const double of_iterations = shared["iterations_held"] * shared["threads"]
                                                 * shared["vectors_per_thread"] * shared["vector_width"];
                    const double of_rows = shared["warps"] * shared["vectors"] * shared["vector_width"];
                    const double held =
                        (shared.has("iterations_held") ? of_iterations : of_rows) * shared["element_bytes"];
                    EXPECT_GE(shared.value(), held) << where;
                    EXPECT_LT(shared.value(), held * 1.01 + 64) << where;
                }
                if (plan.program.form != FuseForm::row) continue;
                const Told rows(plan, "rows_per_cta"), elements(plan, "elements_per_thread");
                expect(rows["threads"] / rows["threads_per_row"] * c.rows_per_thread, rows.value(), "rows");
                if (elements.has("vectors_per_thread")) {
                    expect(elements["vectors_per_thread"] * elements["vector_width"], elements.value(),
                           "elements");
                } else {
                    const double exact =
                        elements["columns"] / elements["threads_per_row"] / elements["cluster"];
                    EXPECT_GE(elements.value(), exact) << where;
                    EXPECT_LT(elements.value(), exact + c.vector_width) << where;
                }
            }
        }
    EXPECT_EQ(row_storages.size(), 5u);
    EXPECT_GT(grid_resident, 0);
}

TEST(FuseDerive, WhatCannotBeOneKernelIsInfeasibleWithItsCounts) {
    const auto outcome = derive(machine_by_id("h100-sxm"), made("y = x / sum_all(x)", {"x:fp32[64,64]"}));
    const auto& none = std::get<FuseInfeasible>(outcome);
    EXPECT_THAT(none.message, testing::HasSubstr("whole reduction"));
    EXPECT_EQ(none.unfused.kernels, 2);
    EXPECT_EQ(plans_for("v100-sxm2", made("y = gelu(x)", {"x:fp16[64,64]"})).plans[0].buildable, false);
}

}  // namespace
}  // namespace rooftile
