// The tuned mode of every operation on a GPU: a choice is made once on the tensors of a caller, who finds his inputs untouched.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "rooftile/elapsed.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/problem_bench.hpp"
#include "rooftile/tune/tune.hpp"
#include "tests/core/example.hpp"
#include "tests/device/device.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

class DeviceTune : public DeviceTest, public testing::WithParamInterface<const Operation*> {
  protected:
    bool is_alone() const override { return true; }  // it times
    const Operation& operation() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Operations, DeviceTune, testing::ValuesIn(operations().begin(), operations().end()), name_of_operation);

TEST_P(DeviceTune, ChoosesOnceOnTensorsThatStayAsTheyWere) {
    const Machine machine = live_machine().machine;
    MeasureOptions options;
    options.machine = &machine;
    options.seed = 11;
    options.baseline = false;
    std::unique_ptr<Context> context;
    std::vector<Timing> timings;
    const std::unique_ptr<Bench> bench = start_bench(options, Driver::instance().device(0).arch(), context, timings);
    const PlanSet set = operation().derive(std::make_shared<const Machine>(machine), operation().problem(example_of(operation())),
                                           operation().request(Given(), {.top = tune_kept, .buildable_only = true}));
    ASSERT_FALSE(set.plans.empty());
    const auto prepared = on_device(operation()).prepare(set.problem, options, 1);
    const auto trial = prepared->begin(*bench, timings);
    const TensorSets tensors(operation().tensors(set.problem), 1, trial->reference(), options.seed);
    const std::uint64_t before = tensors.inputs_checksum(bench->kernels());

    const Folder folder;
    const TuneStore store({CacheMode::read_write, (folder.path() / "cache").string(), ""});
    const auto chosen = tuned_place(store, set, tune_count, 0, nullptr, tensors.tensors(0));
    ASSERT_TRUE(chosen);
    EXPECT_EQ(tensors.inputs_checksum(bench->kernels()), before);
    EXPECT_EQ(tensors.touched_bytes(bench->kernels()), 0u);
    const auto kept = store.all(tune_place(0).program);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(place_of(kept.front(), set), chosen);
    EXPECT_EQ(kept.front().rank > 1, kept.front().ratio.has_value());
    if (kept.front().ratio) { EXPECT_GT(kept.front().ratio->low, 1); }

    // What stands in the outputs is of a launch like any other: each launch of the chosen plan leaves the same bits.
    const TensorLaunch launch = launch_of(compile(set.plans[*chosen]));
    const DeviceBuffer sums(16);
    std::uint64_t fingerprints[2] = {};
    fill_bytes(sums.address(), 0, sums.bytes(), nullptr);
    for (int i = 0; i < 2; ++i) {
        tensors.poison_outputs(nullptr, tensors.all());
        launch(nullptr, tensors.tensors(0));
        tensors.add_fingerprints(bench->kernels(), nullptr, sums.address() + 8 * unsigned(i), tensors.all());
        synchronize();
        const auto again = std::chrono::steady_clock::now();
        EXPECT_EQ(tuned_place(store, set, tune_count, 0, nullptr, tensors.tensors(0)), chosen);
        EXPECT_LT(seconds_since(again), 0.5) << "nothing is compiled or timed";
    }
    copy_to_host(fingerprints, sums.address(), sums.bytes());
    EXPECT_EQ(fingerprints[0], fingerprints[1]);
    EXPECT_EQ(store.all(tune_place(0).program).size(), 1u);
}

/// While a graph is captured a choice is used and none is made.
TEST_P(DeviceTune, MakesNoChoiceInACapture) {
    const Machine machine = live_machine().machine;
    const PlanSet set = operation().derive(std::make_shared<const Machine>(machine), operation().problem(example_of(operation())),
                                           operation().request(Given(), {.top = 2, .buildable_only = true}));
    ASSERT_FALSE(set.plans.empty());
    const Folder folder;
    const TuneStore store({CacheMode::read_write, (folder.path() / "cache").string(), ""});
    const StreamOwner stream;
    begin_capture(stream);
    const auto chosen = tuned_place(store, set, 2, 0, stream, {});
    end_capture(stream);
    EXPECT_FALSE(chosen);
    EXPECT_TRUE(store.all(tune_place(0).program).empty());
}

}  // namespace
}  // namespace rooftile
