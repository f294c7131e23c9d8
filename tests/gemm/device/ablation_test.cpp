// Kernels compiled without a part: none of them waits for ever, and measure --ablate times them.
#include "rooftile/gemm/device/ablation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/parts.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class AblationTest : public DeviceTest {
    bool is_alone() const override { return true; }  // times are compared
};

/// Every way in which the kernel takes turns, shares and stores. Two waves and more, an edge on every side.
std::vector<GemmPlan> every_way(const Machine& machine) {
    std::vector<GemmPlan> plans;
    const auto add = [&](const GemmRequest& request, std::int64_t n = 4000) {
        GemmRequest one = request;
        one.top = 1;
        one.buildable_only = true;
        const auto outcome = derive(machine, gemm_problem(2500, n, 1032), one);
        ASSERT_TRUE(std::holds_alternative<Plans>(outcome)) << std::get<Infeasible>(outcome).message;
        plans.push_back(std::get<Plans>(outcome).plans.front());
    };
    GemmRequest plain;
    plain.tile_m = 128, plain.tile_n = 128, plain.cluster_m = 1, plain.cluster_n = 1, plain.split_k = 1;
    plain.schedule = Schedule::cooperative;
    GemmRequest r = plain;
    r.overlapped_epilogue = false;
    add(r);
    r.overlapped_epilogue = true;
    add(r);
    r = plain;
    r.schedule = Schedule::pingpong, r.consumer_warpgroups = 2;
    add(r);
    r = plain;
    r.cluster_m = 2;
    add(r);
    r = plain;
    r.cluster_m = 1, r.cluster_n = 2;
    add(r);
    r = plain;
    r.split_k = 4;
    add(r);
    r.split_k = 2, r.cluster_m = 2;
    add(r);
    add(plain, 4001);  // C by predicated stores
    return plans;
}

// That a launch ends is the test: every barrier is passed whatever is left out. What is not stored stays as
// it was.
TEST_F(AblationTest, EveryKernelWithoutAPartEnds) {
    const Machine machine = live_machine().machine;
    for (const GemmPlan& plan : every_way(machine)) {
        const GemmProblem& p = plan.problem;
        const DeviceBuffer a(std::size_t(2 * p.m * p.lda)), b(std::size_t(2 * p.n * p.ldb));
        const DeviceBuffer c(std::size_t(2 * p.m * p.ldc));
        StreamOwner stream;
        fill_bytes(a.address(), 0, a.bytes(), stream);
        fill_bytes(b.address(), 0, b.bytes(), stream);
        for (Ablation part : {Ablation::loads, Ablation::products, Ablation::store}) {
            const Kernel kernel = compile(plan, {.ablated = part});
            SCOPED_TRACE(kernel.name_expression());
            fill_bytes(c.address(), 0x7b, c.bytes(), stream);
            for (int launch = 0; launch < 3; ++launch) kernel.launch(stream, a.data(), b.data(), c.data());
            stream.synchronize();
            std::vector<unsigned char> left(c.bytes());
            copy_to_host(left.data(), c.address(), c.bytes());
            const auto kept = std::count(left.begin(), left.end(), 0x7b);
            EXPECT_EQ(kept == std::ptrdiff_t(left.size()), part == Ablation::store) << kept;
        }
    }
}

TEST_F(AblationTest, EachPartIsTimedBesideTheWhole) {
    const Machine machine = live_machine().machine;
    GemmRequest request;
    request.top = 1;
    request.buildable_only = true;
    const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096), request);
    MeasureOptions options;
    options.machine = &machine;
    options.ablate = true;
    options.baseline = false;
    options.seed = 17;
    options.timing.rounds.least = options.timing.rounds.most = 6;
    options.timing.load_seconds = 0.5;
    options.timing.block_seconds = 0.02;
    MeasureRun run = measure(std::get<Plans>(outcome).plans, options);
    ASSERT_EQ(run.rows.size(), 1u);
    Measurement& row = run.rows.front();
    EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
    ASSERT_TRUE(gemm_measured(row) && gemm_measured(row)->ablation);
    const AblationStudy& study = *gemm_measured(row)->ablation;
    ASSERT_EQ(study.parts.size(), 3u);
    for (const PartTime& part : study.parts) {
        SCOPED_TRACE(name_of(part.ablated));
        EXPECT_EQ(part.invalid, "");
        EXPECT_EQ(part.samples, 6);
        EXPECT_GT(part.time_us, 1);
        EXPECT_LT(part.time_us, 1.05 * *row.time_us);  // less work takes no longer
        EXPECT_TRUE(part.sm_clock_mhz);
        EXPECT_GT(part.predicted_us.value(), 1);
    }
    // A square of 4096 is bound by its products: without them it takes well below its time.
    EXPECT_LT(study.parts[1].time_us, 0.8 * *row.time_us);
    EXPECT_FALSE(study.term.empty());
}

}  // namespace
}  // namespace rooftile
