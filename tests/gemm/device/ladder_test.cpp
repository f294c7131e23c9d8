// The ladder on a GPU: every rung on odd shapes and both types, every element verified; then measured as a
// whole.
#include "rooftile/gemm/device/ladder_measure.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/gemm/device/gemm_verifier.hpp"

namespace rooftile {
namespace {

class LadderTest : public DeviceTest {
    bool is_alone() const override { return true; }  // times are compared
};

Kernel rung_kernel(Rung rung, Type type = Type::bf16) {
    GemmPlan plan;
    plan.problem = gemm_problem(64, 64, 64, type);
    return compile_rung(rung, plan, "sm_90");
}

// Whole tiles and one over, below one k-step and past one, an odd number of rows of tiles, more tiles than
// SMs, and N that only rungs 1-4 take.
constexpr std::int64_t shapes[][3] = {{1, 1, 1},        {1, 8, 8},         {17, 19, 23},     {128, 256, 64},
                                      {129, 264, 72},   {127, 248, 56},    {256, 512, 128},  {257, 520, 136},
                                      {384, 768, 1000}, {640, 24, 2048},   {64, 2056, 8},    {1000, 131, 504},
                                      {131, 1003, 264}, {2176, 4104, 200}, {3333, 2224, 392}};

TEST_F(LadderTest, EveryRungIsRightOnOddShapes) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const std::uint64_t seed = fresh_seed();
    fmt::print("seed {}\n", seed);
    for (Type type : {Type::bf16, Type::fp16})
        for (int i = 0; i < rung_count; ++i) {
            const Rung rung = static_cast<Rung>(i);
            const Kernel kernel = rung_kernel(rung, type);
            int checked = 0;
            for (const auto& [m, n, k] : shapes) {
                const GemmProblem problem = gemm_problem(m, n, k, type);
                if (!obstacle_of(rung, problem).empty()) continue;
                ++checked;
                GemmVerifier verifier(kernels, problem);
                const Verification v =
                    verifier.check_all(seed, [&](Stream stream, const void* a, const void* b, void* c) {
                        kernel.launch(stream, a, b, c, shape_of(problem));
                    });
                EXPECT_TRUE(v.ok()) << label_of(rung) << ' ' << name_of(type) << ' ' << m << 'x' << n << 'x'
                                    << k << " seed " << seed << ": " << v.failure;
            }
            EXPECT_GE(checked, 10) << label_of(rung);
        }
}

TEST_F(LadderTest, AnSmHoldsAsManyCtasAsTheModelCounts) {
    for (int i = 0; i < rung_count; ++i) {
        const Rung rung = static_cast<Rung>(i);
        const CtaUse use = rung_code(rung, {}, "sm_90")->cta();
        EXPECT_EQ(rung_kernel(rung).function().ctas_per_sm(use.threads, use.shared_bytes), use.ctas_per_sm)
            << label_of(rung);
    }
}

TEST_F(LadderTest, RunsAreBitIdentical) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const GemmProblem problem = gemm_problem(1400, 1304, 520);
    GemmVerifier verifier(kernels, problem);
    for (int i = 0; i < rung_count; ++i) {
        const Kernel kernel = rung_kernel(static_cast<Rung>(i));
        const GemmLaunch launch = [&](Stream stream, const void* a, const void* b, void* c) {
            kernel.launch(stream, a, b, c, shape_of(problem));
        };
        const std::uint64_t first = verifier.fingerprint(7, launch);
        for (int run = 0; run < 10; ++run) EXPECT_EQ(verifier.fingerprint(7, launch), first) << i;
    }
}

TEST_F(LadderTest, WhatItCannotTakeIsRefusedByName) {
    const Kernel kernel = rung_kernel(Rung::full);
    const DeviceBuffer memory(1 << 20);
    EXPECT_THROW(kernel.launch(nullptr, memory.data(), memory.data(), memory.data(),
                               shape_of(gemm_problem(64, 67, 64))),
                 RequestError);
    EXPECT_THROW(kernel.launch(nullptr, nullptr, memory.data(), memory.data()), RequestError);
}

TEST_F(LadderTest, TheWholeLadderMeasured) {
    const Machine machine = live_machine().machine;
    const GemmProblem problem = gemm_problem(2048, 2048, 2048);
    GemmRequest request;
    request.top = 1;
    request.buildable_only = true;
    const GemmPlan plan = std::get<Plans>(derive(machine, problem, request)).plans.front();
    MeasureOptions options;
    options.machine = &machine;
    options.seed = 17;
    options.timing.rounds.least = options.timing.rounds.most = 6;
    options.timing.load_seconds = 0.2;
    options.timing.block_seconds = 0.02;
    const LadderRun run = measure_ladder(problem, machine, plan, options);
    ASSERT_EQ(run.rows.size(), 7u);
    EXPECT_TRUE(run.verified());
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
        const LadderRow& row = run.rows[i];
        EXPECT_EQ(row.obstacle, "") << row.name;
        EXPECT_EQ(row.measured.invalid, "") << row.name;
        EXPECT_TRUE(row.measured.verified.ok()) << row.name << row.measured.verified.failure;
        EXPECT_GT(row.measured.time_us, 0) << row.name;
        EXPECT_GT(row.measured.registers, 0) << row.name;
        // The two steps that nobody can miss: tiles in shared memory, then tensor cores.
        if (i == 1 || i == 2) {
            EXPECT_LT(row.measured.time_us, run.rows[i - 1].measured.time_us) << row.name;
        }
    }
    EXPECT_TRUE(run.cublaslt_best_us() || !run.baseline_missing.empty());
}

TEST_F(LadderTest, ARungThatCannotTakeTheProblemSaysSo) {
    const Machine machine = live_machine().machine;
    const GemmProblem problem = gemm_problem(128, 129, 64);
    MeasureOptions options;
    options.machine = &machine;
    options.time = false;
    const LadderRun run = measure_ladder(problem, machine, std::nullopt, options);
    ASSERT_EQ(run.rows.size(), 6u);
    EXPECT_TRUE(run.verified());
    EXPECT_EQ(run.rows[3].obstacle, "");
    EXPECT_NE(run.rows[4].obstacle.find("N is 129"), std::string::npos);
    EXPECT_NE(run.rows[5].obstacle.find("N is 129"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
