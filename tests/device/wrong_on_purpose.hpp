// What judges kernels made wrong on purpose, and what it must say.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/device/device.hpp"
#include "tests/device/mutant.hpp"

namespace rooftile {

/// What catches a mutant: a case alone, the guards around tensors, what timed launches left in outputs and just around them, or far
/// from them.
enum class By { exact, random, shifted, special, guards, timed, guards_of_sets };

class WrongOnPurpose : public DeviceTest {};

inline std::optional<bool> flag(const Verification& v, By by) {
    switch (by) {
        case By::exact:
            return v.exact;
        case By::random:
            return v.random;
        case By::shifted:
            return v.shifted;
        case By::special:
            return v.special;
        case By::guards:
        case By::guards_of_sets:
            return v.guards;
        case By::timed:
            return v.timed;
    }
    return std::nullopt;
}

/// The mutant through all that a measured kernel goes through.
inline Verification judged(const Operation& operation, const Mutant& mutant, std::vector<VerifyCase> cases,
                           bool time) {
    MeasureOptions options;
    options.mode = Mode::burst;
    options.seed = 23;
    options.baseline = false;
    options.time = time;
    options.timing.rounds.least = options.timing.rounds.most = 2;
    options.timing.burst_seconds = 0.01;  // hundreds of launches
    options.timing.idle_seconds = 0.05;
    options.cases = std::move(cases);
    options.compile = [&](const Plan& plan) {
        return mutant.replacements.empty() ? compile(plan) : compile(plan, {.alter = alteration(mutant)});
    };
    MeasureTask task;
    task.plans = planned(operation, mutant);
    std::vector<MeasureTask> tasks;
    tasks.push_back(std::move(task));
    const MeasureRun run = measure(std::move(tasks), options);
    EXPECT_EQ(run.rows.size(), 1u) << mutant.problem << " has no plan";
    return run.rows.empty() ? Verification() : run.rows.front().verified;
}

/// With the other cases off: what else would catch it does not count.
inline void expect_caught(const Operation& operation, const Mutant& mutant, By by) {
    SCOPED_TRACE(mutant.name + ": " + mutant.problem);
    std::vector<VerifyCase> cases = {VerifyCase::random};
    if (by == By::exact) cases = {VerifyCase::exact};
    if (by == By::shifted) cases = {VerifyCase::shifted};
    if (by == By::special) cases = {VerifyCase::special};
    const bool while_timed = by == By::timed || by == By::guards_of_sets;
    const Verification v = judged(operation, mutant, std::move(cases), while_timed);
    EXPECT_EQ(flag(v, by), std::optional(false)) << v.failure;
    EXPECT_FALSE(v.failure.empty());
    // What only the timed launches do is right before.
    if (while_timed) { EXPECT_EQ(v.random, std::optional(true)) << v.failure; }
}

/// A mutant that may wait for ever ends by a trap, which takes the process's context with it: so it runs in a process of its own.
inline void expect_hangs(const Operation& operation, const Mutant& mutant) {
    SCOPED_TRACE(mutant.name + ": " + mutant.problem);
    ASSERT_TRUE(mutant.hangs) << "without a limit it would hold the GPU";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto run = [&] {
        std::string failure;
        try {
            failure = judged(operation, mutant, {VerifyCase::exact}, true).failure;
        } catch (const std::exception& error) {
            failure = error.what();
        }
        std::fputs(failure.c_str(), stderr);
        std::exit(failure.empty() ? 0 : 6);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(6), "CUDA_ERROR_LAUNCH_FAILED");
}

/// The same kernel as it is: were it wrong too, its mutants would prove nothing.
inline void expect_right(const Operation& operation, const Mutant& mutant) {
    SCOPED_TRACE("as it is: " + mutant.problem);
    const Mutant unaltered{mutant.name, mutant.problem};
    const Verification v =
        judged(operation, unaltered, MeasureOptions().cases, true);
    EXPECT_TRUE(v.ok()) << v.failure;
}

}  // namespace rooftile
