// Kernels of rows that are all resident in the grid: they compile clean, within the registers that keep all of their
// CTAs resident, and turn round from pass to pass.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/compile/sample.hpp"

namespace rooftile {
namespace {

std::vector<FusePlan> plans_of(const std::string& text, const std::string& type, const std::string& rows,
                               const std::string& columns, int top) {
    std::vector<TensorDeclaration> tensors;
    for (const std::string name : {"x", "r"})
        if (name == "x" || text.find("+ r") != std::string::npos)
            tensors.push_back(tensor_declaration(fmt::format("{}:{}[{},{}]", name, type, rows, columns)));
    for (const std::string name : {"g", "b"})
        if (text.find(", " + name) != std::string::npos)
            tensors.push_back(tensor_declaration(fmt::format("{}:{}[{}]", name, type, columns)));
    const auto outcome = derive(machine_by_id("h200-sxm"), expression_graph(text, tensors),
                                {.row_storage = RowStorage::reload, .grid_reduction = true, .top = top});
    return std::get<FusePlans>(outcome).plans;
}

TEST(FuseGridResidentCode, EveryCandidateCompilesCleanAndFits) {
    constexpr int warp = 32, unit = 256;  // registers are given to warps in such units
    int compiled = 0;
    std::size_t place = 0;
    for (const char* text :
         {"y = softmax(x)", "y = layernorm(x, g, b)", "y = rmsnorm(x, g)",
          "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, seed=1))", "y = softmax(layernorm(x) * 2)",
          "y = where(x > max(x) - 1, x, 0.0); z = argmax(x)", "y = logsumexp(x)"})
        for (const char* type : {"bf16", "fp32"})
            for (const char* shape : {"16x1048576", "5x524296", "130x65544", "3x262145", "1x1048583"}) {
                const std::string both = shape, rows = both.substr(0, both.find('x'));
                for (const FusePlan& plan :
                     plans_of(text, type, rows, both.substr(both.find('x') + 1), 256)) {
                    if (!compiles_this(place++, 37, 2)) continue;
                    const std::string what =
                        fmt::format("{} of {} {}: {} CTAs of {} x {}", text, type, shape, plan.config.cluster,
                                    plan.config.threads, plan.config.vectors_per_thread);
                    const Compiled code = compile_source(fuse_source(plan));
                    EXPECT_EQ(unclean(code).value_or(""), "") << what;
                    const EntryInfo& entry = code.entries[0];
                    const int a_warp = (entry.registers * warp + unit - 1) / unit * unit;
                    EXPECT_LE(a_warp * (plan.config.threads / warp) * plan.config.ctas_per_sm, 65536) << what;
                    EXPECT_LE(entry.static_shared_bytes, fuse::exchange_bytes) << what;
                    ++compiled;
                }
            }
    EXPECT_GE(compiled, test_all() ? 25 : 12);
}

TEST(FuseGridResidentCode, ReducesAcrossTheGridAndGivesWayInL2) {
    const std::vector<FusePlan> plans = plans_of("y = layernorm(x, g, b)", "bf16", "16", "1048576", 256);
    const auto whole = std::ranges::find_if(
        plans, [](const FusePlan& p) { return in_whole_iterations(p.program, p.config); });
    ASSERT_NE(whole, plans.end());
    const FusePlan& plan = *whole;
    const Source source = fuse_source(plan);
    EXPECT_THAT(compile_to_ptx(source),
                testing::AllOf(testing::HasSubstr("ld.relaxed.gpu"), testing::HasSubstr("st.relaxed.gpu"),
                               testing::HasSubstr("st.global.cs.v4"), testing::HasSubstr("ld.global.cs.v4"),
                               testing::Not(testing::HasSubstr("barrier.cluster"))));
    EXPECT_THAT(source.text, testing::Not(testing::HasSubstr(" break;")));  // whole iterations
    const FusePlan ragged = plans_of("y = layernorm(x, g, b)", "bf16", "16", "1048584", 1)[0];
    EXPECT_THAT(fuse_source(ragged).text, testing::HasSubstr("if (at >= vectors) break;"));
    const Launch launch = fuse_launch(plan, plan.config.grid);
    EXPECT_TRUE(launch.cooperative);  // refused by the driver where it would not be resident
    EXPECT_EQ(launch.cluster_x, 1U);
    EXPECT_EQ(fuse_grid(plan, 1), plan.config.grid);
    EXPECT_GT(fuse_workspace_bytes(plan, plan.config.grid), fuse_workspace_bytes(plan, 0));
}

/// Forwards, backwards, forwards.
TEST(FuseGridResidentCode, EveryPassBeginsWhereTheOneBeforeEnded) {
    const std::string text =
        fuse_source(plans_of("y = softmax(layernorm(x) * 2)", "bf16", "16", "1048576", 1)[0]).text;
    const size_t first = text.find("iteration = 0; iteration < iterations; ++iteration"),
                 back = text.find("iteration-- > 0;");
    ASSERT_NE(first, std::string::npos);
    EXPECT_LT(first, back);
    EXPECT_EQ(text.find("iteration-- > 0;", back + 1), std::string::npos);
    EXPECT_NE(text.find("iteration = 0; iteration < iterations; ++iteration", back), std::string::npos);
}

}  // namespace
}  // namespace rooftile
