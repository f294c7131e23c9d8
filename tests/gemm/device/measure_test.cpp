// measure() and its clocks on a GPU.
#include "rooftile/gemm/device/measure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class MeasureTest : public DeviceTest {
  protected:
    bool is_alone() const override { return true; }
    /// Short, for tests: figures to look at, not to publish.
    static MeasureOptions quick(Mode mode, const Machine& machine) {
        MeasureOptions options;
        options.mode = mode;
        options.machine = &machine;
        options.seed = 17;
        options.timing.load_seconds = 0.2;
        options.timing.block_seconds = 0.02;
        options.timing.idle_seconds = 0.1;
        options.timing.burst_seconds = 0.01;
        options.timing.rounds = rounds_of(mode);
        options.timing.rounds.seconds = 0.05;
        return options;
    }
    static std::vector<GemmPlan> plans(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k,
                                       int top, const char* kernel = "sm90_gemm") {
        GemmRequest request;
        request.kernel = find_gemm_kernel(kernel);
        request.top = top;
        request.buildable_only = true;
        return std::get<Plans>(derive(machine, gemm_problem(m, n, k), request)).plans;
    }
    static bool has_timing(const MeasureRun& run, std::string_view part) {
        return std::any_of(run.timings.begin(), run.timings.end(),
                           [&](const Timing& t) { return t.part == part; });
    }
};

class MeasureKernelTest : public MeasureTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kernels, MeasureKernelTest, testing::Values("sm90_gemm", "sm80_gemm"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(MeasureKernelTest, EveryModeGivesVerifiedPlausibleFigures) {
    const Machine machine = live_machine().machine;
    const auto two = plans(machine, 2048, 1024, 1024, 2, GetParam());
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
            EXPECT_NEAR(*row.tflops, 2.0 * 2048 * 1024 * 1024 / *row.time_us * 1e-6, 1e-6 * *row.tflops);
            ASSERT_TRUE(row.sm_clock_mhz);
            EXPECT_GT(*row.sm_clock_mhz, 200);
            EXPECT_LT(*row.sm_clock_mhz, 4000);
            if (row.roof_fraction) {
                EXPECT_GT(*row.roof_fraction, 0.02);
                EXPECT_LE(*row.roof_fraction, 1.005);  // the clock's own error
            }
            const auto top1 = baseline_us(row, cublaslt_top1), best = baseline_us(row, cublaslt_best);
            EXPECT_NE(row.baseline_missing.empty(), !top1);
            if (top1) { EXPECT_LE(*best, *top1); }
            EXPECT_GT(baseline_us(row, copy_baseline).value_or(0), 0);
        }
        EXPECT_TRUE(has_timing(run, "first_result"));
        EXPECT_FALSE(run.gpu.gpu.empty());
        EXPECT_FALSE(run.gpu.nvrtc.empty());
    }
}

// What runs beside the end of the launch before is at least the set-up of barriers; no launch takes 5 us to begin.
TEST_F(MeasureTest, FewRowsAreLaunchedWithoutTheOverlapToo) {
    const Machine machine = live_machine().machine;
    const MeasureRun run = measure(plans(machine, 16, 4096, 4096, 2), quick(Mode::sustained, machine));
    ASSERT_EQ(run.rows[0].variants.size(), 1u);
    const LaunchVariant& off = run.rows[0].variants[0];
    EXPECT_EQ(off.key, "pdl_off");
    EXPECT_GE(off.samples, 6);
    EXPECT_GT(*off.time_us, *run.rows[0].time_us);
    EXPECT_LT(*off.time_us, *run.rows[0].time_us + 5);
    EXPECT_GT(off.predicted_us, run.rows[0].plan.time_us);
    const auto ratio = find_baseline(run.rows[0], cublaslt_best);
    if (ratio && ratio->ratio) { EXPECT_LT(off.ratio->median, ratio->ratio->median); }
    EXPECT_TRUE(run.rows[1].variants.empty());
    EXPECT_TRUE(run.verified());
    for (const std::string& note : run.notes) EXPECT_EQ(note.find("is wrong"), std::string::npos) << note;
}

TEST_F(MeasureTest, WithoutTimingItOnlyVerifies) {
    const Machine machine = live_machine().machine;
    MeasureOptions options = quick(Mode::sustained, machine);
    options.time = false;
    const MeasureRun run = measure(plans(machine, 300, 200, 104, 1), options);
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_TRUE(run.verified()) << run.rows[0].verified.failure;
    EXPECT_FALSE(run.rows[0].time_us);
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
    bool is_alone() const override { return true; }
    static constexpr std::int64_t bytes = 256 << 20;
};

TEST_F(TimingTest, TwiceTheWorkTakesTwiceAsLong) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const DeviceBuffer data(bytes * 2);
    fill_bytes(data.address(), 0, data.bytes(), nullptr);
    synchronize();
    const std::vector<TimedWork> works = {
        {"once", [&](Stream s, std::int64_t) { kernels.flush(s, data.address(), bytes); }},
        {"twice",
         [&](Stream s, std::int64_t) {
             kernels.flush(s, data.address(), bytes);
             kernels.flush(s, data.address() + bytes, bytes);
         }},
    };
    const DeviceInfo device = Driver::instance().device(0);
    for (const Mode mode : {Mode::sustained, Mode::cold, Mode::burst}) {
        TimingOptions options;
        options.mode = mode;
        options.rounds = rounds_of(mode);
        options.load_seconds = 0.2, options.idle_seconds = 0.1;
        const auto results =
            time_works(works, options, kernels, Nvml::open(device.pci_bus_id), device.l2_bytes);
        ASSERT_EQ(results.size(), 2u);
        EXPECT_NEAR(results[1].time_us.median / results[0].time_us.median, 2, 0.35) << name_of(mode);
        EXPECT_GE(results[0].time_us.coverage, 0.95);
        EXPECT_TRUE(results[0].sm_clock_mhz);
    }
}

TEST_F(TimingTest, ABaselineThatCannotRunIsLeftOutAndASlowOneIsDropped) {
    const MeasureKernels kernels(compile_measure_kernels("sm_90"));
    const DeviceBuffer data(bytes);
    const auto flush = [&](std::int64_t share) {
        return [&kernels, &data, share](Stream s, std::int64_t) {
            kernels.flush(s, data.address(), bytes / share);
        };
    };
    int before = 0, after = 0;
    std::vector<TimedWork> works = {
        {"ours", flush(1)},
        {"broken", [](Stream, std::int64_t) { throw Error(ExitCode::gpu_failed, "not for this shape"); },
         Role::baseline},
        {"first", flush(2), Role::baseline},
        {"fast", flush(4), Role::baseline},
        {"slow", flush(1), Role::baseline},
        {"as fast", flush(4), Role::baseline},
        {"our second", flush(1), Role::other},
        {"our slow one",
         [&](Stream s, std::int64_t) {
             kernels.flush(s, data.address(), bytes);
             kernels.flush(s, data.address(), bytes);
         },
         Role::other},
        {"copy", flush(2), Role::aside},
    };
    // Both are told of every set: here there is one.
    works[0].before = [&](Stream, SetRange sets) { before += 100 * int(sets.first) + int(sets.count); };
    works[0].after = [&](Stream, SetRange sets) { after += 100 * int(sets.first) + int(sets.count); };
    TimingOptions options;
    options.load_seconds = 0.1, options.block_seconds = 0.02;
    options.rounds.least = options.rounds.most = 8;
    options.rounds.error = 1;  // short blocks are enough
    const auto results = time_works(works, options, kernels, nullptr, 0);
    EXPECT_EQ(results[1].failure, "not for this shape");
    for (const std::size_t kept : {0u, 3u, 5u, 6u}) {
        EXPECT_FALSE(results[kept].dropped) << kept;
        EXPECT_EQ(results[kept].rounds.size(), 8u) << kept;
        EXPECT_EQ(results[kept].time_us.samples, 8) << kept;
    }
    // Twice as long as the fastest of their kind: what they were timed for is kept. The pipeline is a block ahead.
    for (const std::size_t slow : {2u, 4u, 7u}) {
        EXPECT_TRUE(results[slow].dropped) << slow;
        EXPECT_GE(results[slow].time_us.samples, 4) << slow;
        EXPECT_LE(results[slow].time_us.samples, 6) << slow;
    }
    EXPECT_EQ(results[8].time_us.samples, 8);  // aside: the least rounds
    EXPECT_GT(results[8].time_us.median, 0);
    EXPECT_FALSE(results[2].gpu.power_w);
    EXPECT_EQ(before, 8);
    EXPECT_EQ(after, 8);
}

// Two problems in one run: the long load comes once.
TEST_F(MeasureTest, ProblemsFollowEachOtherInOneRun) {
    const Machine machine = live_machine().machine;
    MeasureOptions options = quick(Mode::sustained, machine);
    options.timing.load_seconds = 1.5;
    options.reload_seconds = 0.1;
    std::vector<MeasureTask> tasks;
    for (const std::int64_t m : {256, 512}) {
        MeasureTask task = gemm_task(plans(machine, m, 512, 512, 3));
        task.layers = {{"model", "layer"}};
        tasks.push_back(std::move(task));
    }
    std::size_t next = 0;
    std::vector<MeasuredProblem> runs;
    std::string gpu;
    measure_each({[&]() -> std::optional<TaskMaker> {
                      if (next == tasks.size()) return std::nullopt;
                      return [&task = tasks[next++]] { return std::move(task); };
                  },
                  [&](const RunningGpu& g) { gpu = g.gpu; },
                  [&](MeasuredProblem run) {
                      runs.push_back(std::move(run));
                      return true;
                  }},
                 options);
    EXPECT_FALSE(gpu.empty());
    ASSERT_EQ(runs.size(), 2u);
    const auto seconds_of_timing = [](const MeasuredProblem& run) {
        for (const Timing& t : run.timings)
            if (t.part == "time (sustained)") return t.seconds;
        return 0.0;
    };
    EXPECT_GT(seconds_of_timing(runs[0]), 1.5);
    EXPECT_LT(seconds_of_timing(runs[1]), seconds_of_timing(runs[0]) - 1);
    for (const MeasuredProblem& run : runs) {
        ASSERT_EQ(run.rows.size(), 3u);
        for (const Measurement& row : run.rows) {
            EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
            EXPECT_EQ(row.plans, 3);
            EXPECT_EQ(row.layers.size(), 1u);
            EXPECT_EQ(row.rank1_ratio.has_value(), row.plan.rank > 1);
            if (const Baseline* best = find_baseline(row, cublaslt_best); best && best->time_us) {
                ASSERT_TRUE(best->ratio);
                EXPECT_GT(best->ratio->median, 0);
                EXPECT_LE(best->ratio->low, best->ratio->median);
                EXPECT_GE(best->ratio->high, best->ratio->median);
            }
        }
    }
}

}  // namespace
}  // namespace rooftile
