// Point-wise threads whose vectors lie one below the other.
#include "rooftile/fuse/stacks.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

Program program_of(const std::string& text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    return std::get<Program>(fuse_program(expression_graph(text, declared)));
}

bool stacks_of(const std::string& text, const std::vector<std::string>& tensors, FuseConfig c) {
    c.vector_width = 8;
    return stacks(program_of(text, tensors), c);
}

TEST(FuseStacks, WhereRowsShareVectorsAndComeInWholeStacks) {
    const char* biased = "y = gelu(x + b)";
    EXPECT_TRUE(stacks_of(biased, {"x:bf16[6,256]", "b:bf16[256]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(
        stacks_of(biased, {"x:bf16[6,256]", "b:bf16[256]"}, {.vectors_per_thread = 4}));  // a row and a half
    EXPECT_FALSE(stacks_of(biased, {"x:bf16[6,256]", "b:bf16[256]"}, {.vectors_per_thread = 1}));
    // A number of each row, or rows that some rows share, are no vector of all of them.
    EXPECT_FALSE(stacks_of(biased, {"x:bf16[6,256]", "b:bf16[6,1]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(stacks_of(biased, {"x:bf16[4,6,256]", "b:bf16[4,1,256]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(stacks_of("y = gelu(x)", {"x:bf16[6,256]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(stacks_of("y = gelu(x + b)", {"x:bf16[6,256]", "b:bf16[]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(
        stacks_of("y = sum_all(x + b)", {"x:bf16[6,256]", "b:bf16[256]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(
        stacks_of(biased, {"x:bf16[6,248]", "b:bf16[248]"}, {.vectors_per_thread = 2}));  // 31 vectors
    EXPECT_FALSE(
        stacks_of("y = softmax(x + b)", {"x:bf16[6,256]", "b:bf16[256]"}, {.vectors_per_thread = 2}));
}

// 2^20 rows of 2^14 elements are 2^31 vectors of 8; two rows fewer are less.
TEST(FuseStacks, WhereThirtyTwoBitsCount) {
    EXPECT_FALSE(
        stacks_of("y = x + b", {"x:bf16[1048576,16384]", "b:bf16[16384]"}, {.vectors_per_thread = 2}));
    EXPECT_TRUE(
        stacks_of("y = x + b", {"x:bf16[1048574,16384]", "b:bf16[16384]"}, {.vectors_per_thread = 2}));
    EXPECT_FALSE(counts_in_32_bits(program_of("y = x", {"x:bf16[1048576,16384]"}), 8));
    EXPECT_TRUE(counts_in_32_bits(program_of("y = x", {"x:bf16[1048576,16376]"}), 8));
}

// Two vectors of x are 8 registers, and what rows share 4 each: once, not twice.
TEST(FuseStacks, RegistersCountWhatRowsShareOnce) {
    const auto plan_of = [](const char* rows) {
        std::vector<TensorDeclaration> tensors;
        for (const std::string name : {"x", "a", "b"})
            tensors.push_back(tensor_declaration(name + ":bf16[" + (name == "x" ? rows : "") + "16384]"));
        const auto outcome = derive(
            machine_by_id("h200-sxm"),
            expression_graph("y = abs(tanh(sigmoid((x + a) * 0.5) - b) * x + 1.0) * 0.25 - a", tensors),
            {.vectors_per_thread = 2, .threads = 128, .top = 1});
        return std::get<FusePlans>(outcome).plans.at(0);
    };
    EXPECT_EQ(plan_of("16384,").resources.registers, 48);
    EXPECT_EQ(plan_of("16384,").config.ctas_per_sm, 10);
    EXPECT_EQ(plan_of("16383,").resources.registers, 56);
    EXPECT_EQ(plan_of("16383,").config.ctas_per_sm, 9);
}

}  // namespace
}  // namespace rooftile
