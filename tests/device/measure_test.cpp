// measure() and its clocks on a GPU.
#include "rooftile/measure/measure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class MeasureTest : public DeviceTest {
  protected:
    /// Short, for tests: figures to look at, not to publish.
    static MeasureOptions quick(Mode mode, const Machine& machine) {
        MeasureOptions options;
        options.mode = mode;
        options.machine = &machine;
        options.seed = 17;
        options.timing.rounds = 6;
        options.timing.load_seconds = 0.2;
        options.timing.block_seconds = 0.02;
        options.timing.idle_seconds = 0.1;
        options.timing.burst_seconds = 0.01;
        options.timing.cold_seconds = 0.02;
        return options;
    }
    static std::vector<GemmPlan> plans(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k,
                                       int top) {
        GemmRequest request;
        request.top = top;
        request.buildable_only = true;
        return std::get<Plans>(derive(machine, gemm_problem(m, n, k), request)).plans;
    }
    static bool has_timing(const MeasureRun& run, std::string_view part) {
        return std::any_of(run.timings.begin(), run.timings.end(),
                           [&](const Timing& t) { return t.part == part; });
    }
};

TEST_F(MeasureTest, EveryModeGivesVerifiedPlausibleFigures) {
    const Machine machine = live_machine().machine;
    const auto two = plans(machine, 2048, 1024, 1024, 2);
    ASSERT_EQ(two.size(), 2u);
    for (const Mode mode : {Mode::sustained, Mode::cold, Mode::burst}) {
        SCOPED_TRACE(name_of(mode));
        const MeasureRun run = measure(two, quick(mode, machine));
        ASSERT_EQ(run.rows.size(), 2u);
        for (const Measurement& row : run.rows) {
            EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
            EXPECT_GT(row.verified.max_error, 0);
            EXPECT_EQ(row.invalid, "");
            EXPECT_GE(row.samples, 6);
            EXPECT_GT(row.time_us, 1);
            EXPECT_LT(row.time_us, 1000);
            EXPECT_LE(row.time_us_low, row.time_us);
            EXPECT_GE(row.time_us_high, row.time_us);
            EXPECT_NEAR(row.tflops, 2.0 * 2048 * 1024 * 1024 / row.time_us * 1e-6, 1e-6 * row.tflops);
            ASSERT_TRUE(row.sm_clock_mhz);
            EXPECT_GT(*row.sm_clock_mhz, 200);
            EXPECT_LT(*row.sm_clock_mhz, 4000);
            if (row.roof_fraction) {
                EXPECT_GT(*row.roof_fraction, 0.02);
                EXPECT_LE(*row.roof_fraction, 1.005);  // the clock's own error
            }
            const Baselines& b = row.baselines;
            EXPECT_NE(b.missing.empty(), !b.cublaslt_top1_us);
            if (b.cublaslt_top1_us) { EXPECT_LE(*b.cublaslt_best_us, *b.cublaslt_top1_us); }
            EXPECT_GT(b.copy_us.value_or(0), 0);
        }
        EXPECT_TRUE(has_timing(run, "first_result"));
        EXPECT_FALSE(run.gpu.empty());
        EXPECT_FALSE(run.nvrtc.empty());
    }
}

TEST_F(MeasureTest, WithoutTimingItOnlyVerifies) {
    const Machine machine = live_machine().machine;
    MeasureOptions options = quick(Mode::sustained, machine);
    options.time = false;
    const MeasureRun run = measure(plans(machine, 300, 200, 104, 1), options);
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_TRUE(run.verified()) << run.rows[0].verified.failure;
    EXPECT_EQ(run.rows[0].time_us, 0);
}

TEST_F(MeasureTest, AnInterruptionIsAnErrorOfItsOwn) {
    const Machine machine = live_machine().machine;
    MeasureOptions options = quick(Mode::sustained, machine);
    options.interrupted = [] { return true; };
    try {
        measure(plans(machine, 512, 512, 512, 1), options);
        FAIL();
    } catch (const Error& error) { EXPECT_EQ(error.code(), ExitCode::interrupted); }
}

/// Reads and writes 256 MiB a launch: far more than L2 holds, so that none of it is found there again.
class TimingTest : public DeviceTest {
  protected:
    static constexpr std::int64_t bytes = 256 << 20;
};

TEST_F(TimingTest, TwiceTheWorkTakesTwiceAsLong) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const DeviceBuffer data(bytes * 2);
    fill_bytes(data.address(), 0, data.bytes(), nullptr);
    synchronize();
    const std::vector<TimedWork> works = {
        {"once", [&](Stream s, std::int64_t) { kernels.flush(s, data.address(), bytes); }, false},
        {"twice",
         [&](Stream s, std::int64_t) {
             kernels.flush(s, data.address(), bytes);
             kernels.flush(s, data.address() + bytes, bytes);
         },
         false},
    };
    const DeviceInfo device = Driver::instance().device(0);
    for (const Mode mode : {Mode::sustained, Mode::cold, Mode::burst}) {
        TimingOptions options;
        options.mode = mode;
        options.load_seconds = 0.2, options.idle_seconds = 0.1, options.cold_seconds = 0.05;
        const auto results =
            time_works(works, options, kernels, Nvml::open(device.pci_bus_id), device.l2_bytes);
        ASSERT_EQ(results.size(), 2u);
        EXPECT_NEAR(results[1].time_us.median / results[0].time_us.median, 2, 0.35) << name_of(mode);
        EXPECT_GE(results[0].time_us.coverage, 0.95);
        EXPECT_TRUE(results[0].sm_clock_mhz);
    }
}

TEST_F(TimingTest, ARivalThatCannotRunIsLeftOutAndASlowOneDropped) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const DeviceBuffer data(bytes);
    const auto flush = [&](std::int64_t share) {
        return [&kernels, &data, share](Stream s, std::int64_t) {
            kernels.flush(s, data.address(), bytes / share);
        };
    };
    const std::vector<TimedWork> works = {
        {"ours", flush(1), false},
        {"broken", [](Stream, std::int64_t) { throw Error(ExitCode::gpu_failed, "not for this shape"); },
         true},
        {"first", flush(2), true},
        {"fast", flush(4), true},
        {"slow", flush(1), true},
    };
    TimingOptions options;
    options.load_seconds = 0.1, options.block_seconds = 0.02;
    const auto results = time_works(works, options, kernels, nullptr, 0);
    EXPECT_EQ(results[1].failure, "not for this shape");
    EXPECT_FALSE(results[0].dropped);
    EXPECT_FALSE(results[2].dropped);  // the first choice that runs is always reported
    EXPECT_FALSE(results[3].dropped);
    EXPECT_TRUE(results[4].dropped);
    EXPECT_EQ(results[0].time_us.samples, 7);
    EXPECT_LT(results[4].time_us.samples, 7);
}

}  // namespace
}  // namespace rooftile
