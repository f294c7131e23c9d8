// Kernels of reductions of columns compile clean, whatever the columns: no spill, no local memory, on each architecture.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/compile/sample.hpp"

namespace rooftile {
namespace {

TEST(FuseColumns, RandomShapesCompileClean) {
    std::mt19937 random(17);
    const auto log_uniform = [&](double most) {
        return std::int64_t(std::pow(most, std::uniform_real_distribution<>(0, 1)(random)));
    };
    const char* texts[] = {"y = column_sum(x)", "y = column_max(x)", "y = column_mean(x * w) * 2; z = column_sum(x)",
                           "y = column_sum(gelu(x) * r)", "y = column_sum(dropout(x, 0.1, 3))"};
    const char* machines[] = {"h200-sxm", "h100-sxm", "a100-80-sxm"};
    for (int i = 0; i < 30; ++i) {
        const std::int64_t columns = log_uniform(1 << 20), rows = log_uniform((1 << 27) / double(columns));
        const std::string text = texts[i % 5];
        std::vector<TensorDeclaration> tensors = {
            tensor_declaration(fmt::format("x:{}[{},{}]", i % 3 ? "bf16" : "fp32", rows, columns))};
        if (text.find(" w") != text.npos) tensors.push_back(tensor_declaration(fmt::format("w:fp32[{}]", columns)));
        if (text.find(" r") != text.npos) tensors.push_back(tensor_declaration(fmt::format("r:fp32[{},1]", rows)));
        const auto found = derive(machine_by_id(machines[i % 3]), expression_graph(text, tensors), {.top = 1});
        ASSERT_TRUE(std::holds_alternative<FusePlans>(found)) << text << " of " << rows << "x" << columns;
        const Source source = fuse_source(std::get<FusePlans>(found).plans[0]);
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
    }
}

}  // namespace
}  // namespace rooftile
