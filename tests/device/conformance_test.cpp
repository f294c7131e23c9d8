// What every operation promises on a GPU: its plans are right, and a kernel that is not is caught.
#include <gtest/gtest.h>

#include <memory>

#include "rooftile/machine/live.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/core/example.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class DeviceConformance : public DeviceTest, public testing::WithParamInterface<const Operation*> {
  protected:
    const Operation& operation() const { return *GetParam(); }
    PlanSet plans(const Machine& machine, int top) const {
        PlanSet set = operation().derive(std::make_shared<const Machine>(machine),
                                         operation().problem(example_of(operation())),
                                         operation().request(Given(), {.top = top, .buildable_only = true}));
        keep_buildable(set);
        return set;
    }
};

INSTANTIATE_TEST_SUITE_P(Operations, DeviceConformance,
                         testing::ValuesIn(operations().begin(), operations().end()), name_of_operation);

TEST_P(DeviceConformance, ItsPlansAreVerifiedAndTimed) {
    const Machine machine = live_machine().machine;
    MeasureOptions options;
    options.mode = Mode::burst;
    options.machine = &machine;
    options.seed = 11;
    options.timing.rounds.least = options.timing.rounds.most = 2;
    options.timing.burst_seconds = 0.01;
    options.timing.idle_seconds = 0.05;
    std::vector<MeasureTask> tasks;
    tasks.push_back({.plans = plans(machine, 2)});
    ASSERT_FALSE(tasks.front().plans.plans.empty());
    const MeasureRun run = measure(std::move(tasks), options);
    for (const Measurement& row : run.rows) {
        EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
        EXPECT_EQ(row.verified.timed, true);
        EXPECT_EQ(row.verified.guards, true);
        EXPECT_GT(row.verified.checked_elements, 0);
        EXPECT_TRUE(row.time_us) << why_no_result(row);
        EXPECT_TRUE(row.gbytes_per_s);
        EXPECT_FALSE(row.baselines.empty());
    }
}

// A kernel that writes nothing leaves the poison; one that writes something else is as wrong.
TEST_P(DeviceConformance, AKernelMadeWrongOnPurposeIsCaught) {
    const Machine machine = live_machine().machine;
    MeasureOptions options;
    options.machine = &machine;
    options.seed = 11;
    options.baseline = false;
    std::unique_ptr<Context> context;
    std::vector<Timing> timings;
    const std::unique_ptr<Bench> bench =
        start_bench(options, Driver::instance().device(0).arch(), context, timings);
    const PlanSet set = plans(machine, 1);
    ASSERT_FALSE(set.plans.empty());
    const CompiledKernel kernel = compile(set.plans.front());
    kernel.load();
    const DeviceBuffer workspace(std::max<std::size_t>(16, kernel.workspace_bytes()));
    fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
    synchronize();
    const std::vector<TensorInfo> tensors = operation().tensors(set.problem);
    const auto right = [&](Stream stream, std::span<void* const> data) { kernel.launch(stream, data, workspace.data()); };
    const auto nothing = [](Stream, std::span<void* const>) {};
    const auto zeroed = [&](Stream stream, std::span<void* const> data) {
        right(stream, data);
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (tensors[i].role != TensorRole::out) continue;
            std::int64_t elements = 0;  // from the first to the last
            for (std::size_t axis = 0; axis < tensors[i].extents.size(); ++axis)
                elements += (tensors[i].extents[axis].most - 1) * tensors[i].strides[axis];
            fill_bytes(reinterpret_cast<DevicePointer>(data[i]), 0,
                       std::size_t((elements + 1) * tensors[i].element_bits / 8), stream);
        }
    };
    const auto prepared = on_device(operation()).prepare(set.problem, options, 0);
    const auto trial = prepared->begin(*bench, timings);
    const std::vector<TensorLaunch> launches = {right, nothing, zeroed};
    Verifier verifier(bench->kernels(), trial->reference(), tensors, launches.size(), memory_info().free_bytes / 4);
    const std::vector<Verification> verified = verifier.verify(options.seed, launches, options.cases);
    ASSERT_EQ(verified.size(), 3u);
    EXPECT_TRUE(verified[0].ok()) << verified[0].failure;
    EXPECT_TRUE(verified[1].wrong());
    EXPECT_FALSE(verified[1].failure.empty());
    EXPECT_TRUE(verified[2].wrong());
}

}  // namespace
}  // namespace rooftile
