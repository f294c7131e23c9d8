// Hardware counters against what is known exactly: bytes copied, instructions a product takes.
#include "rooftile/measure/counters.hpp"

#include <gtest/gtest.h>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/gemm/device/figures.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/measure/tensor_memory.hpp"
#include "rooftile/gemm/device/operands.hpp"
#include "rooftile/gemm/operation.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class CountersTest : public DeviceTest {
  protected:
    // One process has the counters, and DRAM's count what all processes move.
    bool is_alone() const override { return true; }
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped()) return;
        kernels_ = std::make_unique<MeasureKernels>(compile_measure_kernels("sm_90"));
        std::string why_not;
        try {
            session_ = CounterSession::open(*kernels_, 0, why_not);
        } catch (const Error& error) {
            if (error.code() != ExitCode::counters_denied) throw;
            why_not = error.what();
        }
        if (!session_) GTEST_SKIP() << "skipped: " << why_not;
    }
    void TearDown() override {
        session_.reset();
        kernels_.reset();
        DeviceTest::TearDown();
    }

    /// Copies `bytes` from one of `slots` places to another of as many.
    CounterValues count_copies(std::int64_t bytes, std::int64_t slots) const {
        const DeviceBuffer from(static_cast<std::size_t>(bytes * slots)), to(from.bytes());
        fill_bytes(from.address(), 0x5a, from.bytes(), nullptr);
        synchronize();
        return session_->measure([&](Stream stream, std::int64_t number) {
            const auto offset = static_cast<DevicePointer>(number % slots * bytes);
            kernels_->copy(stream, to.address() + offset, from.address() + offset, bytes);
        });
    }

    std::unique_ptr<MeasureKernels> kernels_;
    std::unique_ptr<CounterSession> session_;
};

void expect_shares(const CounterValues& v) {
    for (const auto& share : {v.sm_active_share, v.tensor_active_share, v.shared_wavefront_share,
                              v.data_bank_read_share, v.data_bank_write_share, v.l2_hit_rate}) {
        ASSERT_TRUE(share);
        EXPECT_GE(*share, 0);
        EXPECT_LE(*share, 1.001);
    }
}

TEST_F(CountersTest, ACopyLargerThanL2MovesItsBytes) {
    constexpr std::int64_t bytes = std::int64_t{512} << 20;
    const CounterValues v = count_copies(bytes, 2);
    EXPECT_EQ(v.launches, min_counted_launches);
    EXPECT_EQ(v.passes, 4);
    EXPECT_NEAR(v.dram_read_bytes.value_or(0) / bytes, 1, 0.02);
    EXPECT_NEAR(v.dram_write_bytes.value_or(0) / bytes, 1, 0.02);
    // L2 may be asked for a little more than is used: a sector is fetched whole.
    for (const auto& moved : {v.l2_read_bytes, v.l2_write_bytes, v.sm_read_bytes}) {
        EXPECT_GE(moved.value_or(0) / bytes, 0.98);
        EXPECT_LE(moved.value_or(0) / bytes, 1.25);
    }
    EXPECT_EQ(v.tensor_instructions.value_or(-1), 0);
    expect_shares(v);
    const Machine machine = live_machine().machine;
    const auto bandwidth = dram_bandwidth(machine);
    if (!bandwidth) GTEST_SKIP() << "skipped: the peak of this GPU's DRAM is unknown";
    EXPECT_LT(2.0 * bytes / (v.time_us.value_or(0) * 1e-6), bandwidth->value);
}

// Eight copies of 4 MiB leave all that they wrote in L2: only the read at the end drives it out to DRAM.
TEST_F(CountersTest, WhatStaysDirtyInL2IsCountedToo) {
    constexpr std::int64_t bytes = std::int64_t{4} << 20;
    const CounterValues v = count_copies(bytes, min_counted_launches);
    EXPECT_NEAR(v.dram_read_bytes.value_or(0) / bytes, 1, 0.05);
    EXPECT_NEAR(v.dram_write_bytes.value_or(0) / bytes, 1, 0.05);
}

TEST_F(CountersTest, AGemmMovesAtLeastWhatItMustAndNothingExceedsItsRoof) {
    const Machine machine = live_machine().machine;
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    GemmRequest request;
    request.top = 1;
    request.buildable_only = true;
    const GemmPlan plan = std::get<Plans>(derive(machine, problem, request)).plans.at(0);
    const Kernel kernel = compile(plan);
    kernel.load();
    // 12 sets of 96 MiB: every set has left L2 long before it comes round again.
    const GemmReference reference(*kernels_, problem);
    const TensorSets sets(gemm_operation().tensors({&gemm_operation(), Own::of(problem)}), 12, reference, 7);
    const auto launch = [&](Stream stream, std::int64_t number) {
        const std::int64_t set = number % sets.sets();
        const TensorPointers tensors = sets.tensors(set);
        kernel.launch(stream, tensors[0], tensors[1], tensors[2]);
    };
    const CounterValues v = session_->measure(launch, sets.sets());
    const double inputs = 2.0 * 2 * 4096 * 4096, output = 2.0 * 4096 * 4096;
    EXPECT_GE(v.l2_read_bytes.value_or(0), inputs);
    EXPECT_GE(v.l2_write_bytes.value_or(0), 0.999 * output);
    EXPECT_GE(v.sm_read_bytes.value_or(0), inputs);
    EXPECT_GE(v.dram_read_bytes.value_or(0), 0.98 * inputs);
    EXPECT_NEAR(v.dram_write_bytes.value_or(0) / output, 1, 0.02);
    expect_shares(v);
    EXPECT_GT(*v.tensor_active_share, 0.3);
    EXPECT_GT(v.shared_wavefronts.value_or(0), 0);
    // wgmma of 64 x tile_n x 16, four warps each; a split of K does not change their number.
    const double instructions = 4.0 * (4096 / 64) * (4096.0 / plan.config.tile_n) * (4096 / 16);
    if (4096 % plan.config.tile_m == 0 && 4096 % plan.config.tile_n == 0) {
        EXPECT_NEAR(v.tensor_instructions.value_or(0) / instructions, 1, 1e-6);
    }
    const Roofs roofs = roofs_of(&machine, plan, kernels_->sms());
    if (roofs.boost_clock_mhz) { EXPECT_LE(v.sm_clock_mhz.value_or(0), 1.005 * *roofs.boost_clock_mhz); }
    EXPECT_GT(v.sm_clock_mhz.value_or(0), 200);

    // Counted again, in a session of its own, what is exact comes out equal and what is not nearly so.
    session_.reset();
    std::string why_not;
    session_ = CounterSession::open(*kernels_, 0, why_not);
    ASSERT_TRUE(session_) << why_not;
    const CounterValues again = session_->measure(launch, sets.sets());
    EXPECT_EQ(again.tensor_instructions, v.tensor_instructions);
    EXPECT_NEAR(*again.dram_read_bytes / *v.dram_read_bytes, 1, 0.03);
    EXPECT_NEAR(*again.l2_read_bytes / *v.l2_read_bytes, 1, 0.01);
}

TEST_F(CountersTest, AFailingLaunchLeavesTheCountersUsable) {
    int left = 3;
    const auto fails = [&left](Stream, std::int64_t) {
        if (--left == 0) throw Error(ExitCode::gpu_failed, "not for this shape");
    };
    EXPECT_THROW(session_->measure(fails, 2), Error);  // in the first counted pass: 2 launches come before it
    EXPECT_GT(count_copies(std::int64_t{64} << 20, 2).dram_read_bytes.value_or(0), 0);
}

}  // namespace
}  // namespace rooftile
