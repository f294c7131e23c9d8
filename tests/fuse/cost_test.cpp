// Counting, unfused against fused [M24]: the method's own figures, byte by byte.
#include "rooftile/fuse/cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/fuse/hardware.hpp"
#include "rooftile/fuse/time.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

constexpr double no_l2 = 0;

ExpressionGraph made(std::string_view text, std::initializer_list<const char*> tensors) {
    std::vector<TensorDeclaration> declared;
    for (const char* t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}

struct Count {
    size_t kernels;
    std::int64_t unfused, fused;
};
Count count_of(const ExpressionGraph& p) {
    const std::vector<UnfusedOp> ops = unfused_ops(p, no_l2);
    std::int64_t bytes = 0;
    for (const UnfusedOp& op : ops) bytes += op.bytes();
    return {ops.size(), bytes, fused_bytes(p).sum()};
}

// One pass is one reading or writing of the large tensor.
constexpr std::int64_t rows = 512, columns = 1024, pass = rows * columns * 2, row = columns * 2,
                       column = rows * 2;

TEST(FuseCost, ManualGelu) {
    const Count c =
        count_of(made("y = 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x**3)))", {"x:bf16[512,1024]"}));
    // x**3, 0.044715*, x+, 0.79788456*, tanh, 1+, 0.5*x, the product: six of 2 passes, two of 3.
    EXPECT_EQ(c.kernels, 8u);
    EXPECT_EQ(c.unfused, 18 * pass);
    EXPECT_EQ(c.fused, 2 * pass);
}

TEST(FuseCost, ManualSoftmax) {
    const Count c = count_of(made("m = max(x); e = exp(x - m); y = e / sum(e)", {"x:bf16[512,1024]"}));
    // max 1, minus 2, exp 2, sum 1, quotient 2; the maxima and sums are written once and read once.
    EXPECT_EQ(c.kernels, 5u);
    EXPECT_EQ(c.unfused, 8 * pass + 4 * column);
    EXPECT_EQ(c.fused, 2 * pass);
}

TEST(FuseCost, LayerNormResidualDropoutGelu) {
    const Count c = count_of(made("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 1))",
                                  {"x:bf16[512,1024]", "g:bf16[1024]", "b:bf16[1024]", "r:bf16[512,1024]"}));
    // 2 + 3 + 2 + 2 against x, r and y.
    EXPECT_EQ(c.kernels, 4u);
    EXPECT_EQ(c.unfused, 9 * pass + 2 * row);
    EXPECT_EQ(c.fused, 3 * pass + 2 * row);
}

TEST(FuseCost, BiasAndGelu) {
    const Count a = count_of(made("y = gelu(x + b)", {"x:bf16[512,1024]", "b:bf16[1024]"}));
    EXPECT_EQ(a.kernels, 2u);
    EXPECT_EQ(a.unfused, 4 * pass + row);
    EXPECT_EQ(a.fused, 2 * pass + row);
    const Count full = count_of(made("y = gelu(x + b)", {"x:bf16[512,1024]", "b:bf16[512,1024]"}));
    EXPECT_EQ(full.unfused, 5 * pass);
    EXPECT_EQ(full.fused, 3 * pass);
}

TEST(FuseCost, IntermediatesHaveThePromotedType) {
    // bf16 with fp32 gives fp32: the sum is stored in 4 bytes, read again, and the cast stores 2.
    const Count c = count_of(made("y = bf16(x + z)", {"x:bf16[1000]", "z:fp32[1000]"}));
    EXPECT_EQ(c.kernels, 2u);
    EXPECT_EQ(c.unfused, (2000 + 4000 + 4000) + (4000 + 2000));
    // An operand that stands twice is read once; a comparison stores one byte.
    EXPECT_EQ(count_of(made("y = x * x", {"x:fp32[1000]"})).unfused, 8000);
    EXPECT_EQ(count_of(made("y = x > 0", {"x:fp32[1000]"})).unfused, 5000);
}

TEST(FuseCost, WhatL2HoldsComesNotFromDram) {
    const ExpressionGraph p = made("y = exp(x) * 2", {"x:fp32[1000]"});
    const auto in_l2 = unfused_ops(p, 1e6);
    EXPECT_EQ(in_l2[0].dram_read_bytes, 4000);
    EXPECT_EQ(in_l2[0].dram_written_bytes, 0);  // read again at once, and nothing else wants L2
    EXPECT_EQ(in_l2[1].dram_read_bytes, 0);
    EXPECT_EQ(in_l2[1].dram_written_bytes, 4000);  // an output
    const auto not_held = unfused_ops(p, 3999);
    EXPECT_EQ(not_held[1].dram_read_bytes, 4000);
    EXPECT_EQ(not_held[0].dram_written_bytes, 4000);
    const auto unknown = unfused_ops(p, std::nan(""));
    EXPECT_EQ(unknown[1].dram_read_bytes, 4000);
}

FuseHardware plain_hardware() {
    FuseHardware hw{};
    hw.sms = 100;
    hw.clock_hz = 1e9;
    hw.read_bandwidth = 2e12;
    hw.write_bandwidth = 1e12;
    hw.copy_bandwidth = 1.6e12;
    hw.l2_bandwidth = 5e12;
    hw.dram_latency = 500;
    hw.launch_seconds = 2e-6;
    hw.issue_lanes = 128;
    hw.mufu_rate = 16;
    hw.alu_rate = 64;
    return hw;
}

TEST(FuseTime, DramMovesPairsAtTheCopyRate) {
    // 1 GB each way at 1.6 TB/s: 1.25 ms; 1 GB more read at 2 TB/s: 0.5 ms.
    EXPECT_DOUBLE_EQ(dram_seconds(plain_hardware(), 1e9, 1e9), 1.25e-3);
    EXPECT_DOUBLE_EQ(dram_seconds(plain_hardware(), 2e9, 1e9), 1.75e-3);
    EXPECT_DOUBLE_EQ(dram_seconds(plain_hardware(), 0, 1e9), 1e-3);
}

TEST(FuseTime, TheSlowestResourceBinds) {
    FuseWork w;
    w.dram_read_bytes = w.dram_written_bytes = 1e9;
    FuseTime t = fuse_time(plain_hardware(), w);
    EXPECT_EQ(t.bound, Bound::dram);
    EXPECT_NEAR(t.seconds, 1.25e-3 + 2e-6 + 0.5e-6, 1e-12);
    // 100 SMs x 128 lanes x 1 GHz issue 12.8e12 a second: 25.6e9 take 2 ms.
    w.cost.issue = 25.6e9;
    EXPECT_EQ(fuse_time(plain_hardware(), w).bound, Bound::issue);
    EXPECT_NEAR(fuse_time(plain_hardware(), w).issue, 2e-3, 1e-12);
    // 19.2e9 of them in the pipe that takes 100 x 64 lanes: 3 ms; where its rate is unknown it does not bind.
    w.cost.alu = 19.2e9;
    EXPECT_NEAR(fuse_time(plain_hardware(), w).issue, 3e-3, 1e-12);
    FuseHardware no_rate = plain_hardware();
    no_rate.alu_rate = std::nan("");
    EXPECT_NEAR(fuse_time(no_rate, w).issue, 2e-3, 1e-12);
    w = {};
    w.dram_read_bytes = 1000;
    EXPECT_EQ(fuse_time(plain_hardware(), w).bound, Bound::launch);
    FuseHardware unknown = plain_hardware();
    unknown.read_bandwidth = std::nan("");
    EXPECT_TRUE(std::isnan(fuse_time(unknown, w).seconds));
    unknown = plain_hardware();
    unknown.launch_seconds = unknown.mufu_rate = std::nan("");
    EXPECT_FALSE(std::isnan(fuse_time(unknown, w).seconds));
}

}  // namespace
}  // namespace rooftile
