// Other numbers of rows by the code that is compiled.
#include <gtest/gtest.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

/// Plan 1 of 300 x 512 x 256 on h100-sxm, with what else is given.
CompiledKernel compiled_with(std::initializer_list<std::pair<const char*, const char*>> more) {
    Given given(Given::Named::by_key);
    for (const auto& [key, text] : {std::pair{"m", "300"}, {"n", "512"}, {"k", "256"}}) given.add(key, text);
    for (const auto& [key, text] : more) given.add(key, text);
    const Operation& operation = gemm_operation();
    const PlanSet set = operation.derive(std::make_shared<const Machine>(machine_by_id("h100-sxm")), operation.problem(given),
                                         operation.request(given, {.top = 1, .buildable_only = true}));
    return compile(set.plans.at(0));
}

std::int64_t rows_of(const CompiledKernel& kernel) { return gemm_operation().tensors(kernel.plan().problem).front().extents.front().most; }

TEST(GemmRows, OtherNumbersHaveTheSameCode) {
    const CompiledKernel kernel = compiled_with({});
    for (const std::int64_t m : {1, 2, 7, 64, 299, 301, 100000}) {
        const auto other = on_device(gemm_operation()).at(kernel, "m", m);
        ASSERT_TRUE(other) << m;
        EXPECT_EQ(&other->code(), &kernel.code());
        EXPECT_EQ(rows_of(*other), m);
        EXPECT_FALSE(other->plan().time_us);
    }
}

TEST(GemmRows, PackedOperandsTakeAWorkspaceOfTheirOwnSize) {
    const CompiledKernel kernel = compiled_with({{"k", "251"}, {"pack_a", "on"}, {"pack_b", "off"}, {"ldb", "256"}});
    const auto other = on_device(gemm_operation()).at(kernel, "m", 600);
    ASSERT_TRUE(other);
    EXPECT_GT(other->workspace_bytes(), kernel.workspace_bytes());
}

TEST(GemmRows, EpiloguesAreServedWhereTheirOperandsAre) {
    const auto at = [](const CompiledKernel& kernel) { return on_device(gemm_operation()).at(kernel, "m", 77); };
    EXPECT_TRUE(at(compiled_with({{"epilogue", "d = acc + bias"}, {"tensor", "bias:bf16[N]"}})));
    EXPECT_FALSE(at(compiled_with({{"epilogue", "d = acc + r"}, {"tensor", "r:bf16[M,N]"}})));
    EXPECT_FALSE(at(compiled_with({{"epilogue", "d = acc + r"}, {"tensor", "r:bf16[M,1]"}})));
}

TEST(GemmRows, WhatTheCodeCannotServeIsEmpty) {
    const CompiledKernel kernel = compiled_with({});
    const DeviceOperation& device = on_device(gemm_operation());
    for (const std::int64_t m : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31, std::int64_t{1} << 62})
        EXPECT_FALSE(device.at(kernel, "m", m)) << m;
    EXPECT_FALSE(device.at(kernel, "n", 512));
    EXPECT_FALSE(device.at(kernel, "", 300));
    EXPECT_FALSE(device.at(compiled_with({{"a_major", "m"}, {"lda", "304"}}), "m", 200));
}

}  // namespace
}  // namespace rooftile
