// What a device did, and why it had nothing to do: each cause by a timeline made for it, all of them by random ones.
#include "rooftile/profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "rooftile/error.hpp"
#include "tests/from_environment.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ProfiledDevice only_device(const RecordingWriter& w, const std::string& range = "") {
    const Profile profile = profile_of(recorded(w), range);
    EXPECT_EQ(profile.devices.size(), 1u);
    return profile.devices.at(0);
}

void expect_idle(const IdleTime& idle, const IdleTime& wanted) {
    EXPECT_EQ(idle.host, wanted.host);
    EXPECT_EQ(idle.waited, wanted.waited);
    EXPECT_EQ(idle.launch, wanted.launch);
    EXPECT_EQ(idle.dependency, wanted.dependency);
    EXPECT_EQ(idle.unknown, wanted.unknown);
}

// Idle from 200 to 300. The call comes at 250 and returns at 260: 60 of the host, 40 until the kernel starts.
TEST(IdleTime, OfTheHost) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.launched(250, 260, {.start = 300, .end = 400});
    const ProfiledDevice d = only_device(w);
    EXPECT_EQ(d.window, 300);
    EXPECT_EQ(d.busy, 200);
    expect_idle(d.idle, {.host = 60, .launch = 40});
}

// The same, and from 205 to 245 the thread was in a call that waits: of the host are 60 less these 40.
TEST(IdleTime, OfAHostThatWaited) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.call("cuStreamSynchronize", 205, 245);
    w.call("cuEventSynchronize", 210, 220);         // inside it
    w.call("cuStreamSynchronize", 205, 250, 0, 2);  // another thread's, which asks for nothing
    w.launched(250, 260, {.start = 300, .end = 400});
    expect_idle(only_device(w).idle, {.host = 20, .waited = 40, .launch = 40});
}

// A copy to pageable memory makes the host wait.
TEST(IdleTime, OfACopyBack) {
    RecordingWriter w;
    w.call("cuMemcpyDtoH_v2", 10, 230, 1);
    w.copy(100, 200, 64, 2, 1);
    w.launched(250, 260, {.start = 300, .end = 400});
    expect_idle(only_device(w).idle, {.host = 30, .waited = 30, .launch = 40});
}

TEST(IdleTime, OfALaunchBehindItsStream) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.launched(30, 40, {.start = 203, .end = 400});
    expect_idle(only_device(w).idle, {.launch = 3});
}

TEST(IdleTime, OfADependencyOnAnotherStream) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200, .stream = 7});
    w.launched(30, 40, {.start = 205, .end = 400, .stream = 8});
    expect_idle(only_device(w).idle, {.dependency = 5});
}

TEST(IdleTime, OfWorkThatNobodySawAskedFor) {
    RecordingWriter w;
    w.kernel({.start = 100, .end = 200});
    w.kernel({.start = 207, .end = 300, .correlation = 99});
    expect_idle(only_device(w).idle, {.unknown = 7});
}

// Inside a graph gaps are launch gaps, on whatever stream; before it the rule is as for a kernel.
TEST(IdleTime, InAGraphAndBeforeIt) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.call("cuGraphLaunch", 220, 230, 5);
    w.kernel({.start = 240, .end = 300, .correlation = 5, .graph = 1});
    w.kernel({.start = 302, .end = 350, .correlation = 5, .stream = 9, .graph = 1});
    expect_idle(only_device(w).idle, {.host = 30, .launch = 12});
}

// The clocks of host and device differ by a little: the kernel seems to start before its call, and nothing is less than none.
TEST(IdleTime, WhereTheClocksDisagree) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.call("cuStreamSynchronize", 190, 310);
    w.launched(320, 330, {.start = 300, .end = 400});
    expect_idle(only_device(w).idle, {.waited = 100});
}

TEST(IdleTime, WorkOfNoLengthIsCountedAndTakesNone) {
    RecordingWriter w;
    w.launched(10, 20, {.start = 100, .end = 200});
    w.launched(30, 40, {.start = 250, .end = 250, .name = "empty"});
    w.launched(30, 40, {.start = 300, .end = 400});
    const Profile profile = profile_of(recorded(w), "");
    expect_idle(profile.devices.at(0).idle, {.launch = 100});
    ASSERT_EQ(profile.kernels.size(), 2u);
    EXPECT_EQ(profile.kernels[1].calls, 1u);
    EXPECT_EQ(profile.kernels[1].sum, 0);
    RecordingWriter alone;
    alone.launched(10, 20, {.start = 100, .end = 100});
    EXPECT_EQ(only_device(alone).window, 0);
}

TEST(Profile, StreamsSideBySide) {
    RecordingWriter w;
    w.begin(50);
    w.launched(60, 61, {.start = 100, .end = 200, .stream = 7});
    w.launched(70, 71, {.start = 150, .end = 180, .stream = 8});  // all of it beside
    w.launched(80, 81, {.start = 190, .end = 260, .stream = 9});  // 10 of it
    w.end(300);
    const ProfiledDevice d = only_device(w);
    EXPECT_EQ(d.window, 160);
    EXPECT_EQ(d.busy, 160);
    EXPECT_EQ(d.overlapped, 40);
    EXPECT_EQ(d.before, 50);
    EXPECT_EQ(d.after, 40);
}

// 66 of 132 SMs; two waves, the second of one CTA: of 264 places one wave has 132, so 131 of 264 are empty.
TEST(Profile, EmptySMs) {
    RecordingWriter w;
    w.device();
    w.launched(1, 2, {.start = 100, .end = 200, .name = "half", .grid = {66, 1, 1}});
    w.launched(1, 2, {.start = 200, .end = 300, .name = "tail", .grid = {133, 1, 1}, .dynamic_shared = 200000});
    const Profile p = profile_of(recorded(w), "");
    EXPECT_EQ(p.kernels.at(1).resident, 1);
    EXPECT_NEAR(p.devices.at(0).empty_sms, 50 + 100 * 131 / 264.0, 1e-9);
}

// 65536 registers: 128 threads of 40 leave room for 12 CTAs; 2048 threads for 16; 233472 B for 4 of 50000 B and the reserved 1024.
TEST(Profile, ResidentCtasByTheScarcestResource) {
    const RecordedGpu h200{.index = 0,
                           .name = "",
                           .sms = 132,
                           .compute_major = 9,
                           .compute_minor = 0,
                           .shared_per_sm = 233472,
                           .registers_per_sm = 65536,
                           .threads_per_sm = 2048,
                           .ctas_per_sm = 32,
                           .shared_reserved = 1024};
    DeviceWork kernel;
    kernel.block = {128, 1, 1};
    EXPECT_EQ(resident_ctas(h200, kernel), 16);
    kernel.registers = 40;
    EXPECT_EQ(resident_ctas(h200, kernel), 12);
    kernel.dynamic_shared = 50000;
    EXPECT_EQ(resident_ctas(h200, kernel), 4);
    kernel.block = {1, 1, 1}, kernel.registers = 0, kernel.dynamic_shared = 0;
    EXPECT_EQ(resident_ctas(h200, kernel), 32);
    EXPECT_EQ(resident_ctas({}, kernel), 0) << "nothing is known of the device";
    kernel.block = {2048, 2, 1};
    EXPECT_EQ(resident_ctas(h200, kernel), 0) << "no launch";
}

TEST(Profile, WithoutWordOfTheDevice) {
    RecordingWriter w;
    w.launched(1, 2, {.start = 100, .end = 200});
    const Profile p = profile_of(recorded(w), "");
    EXPECT_EQ(p.devices.at(0).device.name, "");
    EXPECT_EQ(p.devices.at(0).empty_sms, 0);
    EXPECT_EQ(p.kernels.at(0).resident, 0);
}

TEST(Profile, KernelsLaunchedAlikeAreOneGroup) {
    RecordingWriter w;
    w.launched(1, 2, {.start = 100, .end = 110});
    w.launched(1, 2, {.start = 200, .end = 230});
    w.launched(1, 2, {.start = 300, .end = 320, .grid = {1, 1, 1}});
    w.call("cuGraphLaunch", 1, 2, 5);
    w.kernel({.start = 400, .end = 480, .correlation = 5, .graph = 1});
    const Profile p = profile_of(recorded(w), "");
    ASSERT_EQ(p.kernels.size(), 2u);
    EXPECT_EQ(p.kernels[0].calls, 3u);
    EXPECT_EQ(p.kernels[0].in_graphs, 1u);
    EXPECT_EQ(p.kernels[0].sum, 120);
    EXPECT_EQ(p.kernels[0].least, 10);
    EXPECT_EQ(p.kernels[0].most, 80);
    EXPECT_EQ(p.launches, 3u);
    EXPECT_EQ(p.graph_launches, 1u);
    EXPECT_EQ(p.launch_calls, 4);
    EXPECT_EQ(p.kernel_time(), 140);
}

TEST(Profile, CallsAndCopies) {
    RecordingWriter w;
    w.call("cuMemAlloc_v2", 1, 11, 0, 1, 2);
    w.call("cuMemAlloc_v2", 20, 25);
    w.copy(100, 110, 1000, 1);
    w.copy(120, 150, 24, 1);
    const Profile p = profile_of(recorded(w), "");
    ASSERT_EQ(p.calls.size(), 1u);
    EXPECT_EQ(p.calls[0].count, 2u);
    EXPECT_EQ(p.calls[0].failed, 1u);
    EXPECT_EQ(p.calls[0].sum, 15);
    EXPECT_EQ(p.calls[0].most, 10);
    ASSERT_EQ(p.copies.size(), 1u);
    EXPECT_EQ(p.copies[0].bytes, 1024);
    EXPECT_EQ(p.copies[0].sum, 40);
}

/// Of a range its count, kernels and device time.
std::map<std::string, std::vector<double>> ranges_of(const Profile& p) {
    std::map<std::string, std::vector<double>> out;
    for (const RangeGroup& r : p.ranges) out[r.name] = {double(r.count), double(r.launches), r.device};
    return out;
}

// Work belongs to the ranges that its thread was in when it asked, whenever it runs.
TEST(Profile, WorkBelongsToTheRangesThatAskedForIt) {
    RecordingWriter w;
    w.range("outer", 10, 100);
    w.range("inner", 20, 40);
    w.range("other thread", 10, 100, 2);
    w.range("later", 500, 700);
    w.launched(30, 31, {.start = 600, .end = 650, .name = "a"});
    w.launched(50, 51, {.start = 650, .end = 660, .name = "b"});
    w.launched(60, 61, {.start = 660, .end = 662, .name = "c"}, 2);
    w.launched(200, 201, {.start = 700, .end = 701, .name = "d"});
    const Profile p = profile_of(recorded(w), "");
    const auto ranges = ranges_of(p);
    EXPECT_THAT(ranges.at("outer"), ElementsAre(1, 2, 60));
    EXPECT_THAT(ranges.at("inner"), ElementsAre(1, 1, 50));
    EXPECT_THAT(ranges.at("other thread"), ElementsAre(1, 1, 2));
    EXPECT_THAT(ranges.at("later"), ElementsAre(1, 0, 0));
    ASSERT_EQ(p.stacks.size(), 4u);
    EXPECT_THAT(p.stacks[0].frames, ElementsAre("outer", "inner", "a"));
    EXPECT_THAT(p.stacks[3].frames, ElementsAre("d"));
}

TEST(Profile, ARangeInOneOfItsNameCountsOnce) {
    RecordingWriter w;
    w.range("r", 10, 100);
    w.range("r", 20, 90);
    w.launched(30, 31, {.start = 200, .end = 250});
    EXPECT_THAT(ranges_of(profile_of(recorded(w), "")).at("r"), ElementsAre(2, 1, 50));
}

// Two steps: the window of each lasts from its start to the end of what it asked for; what came between is in neither.
TEST(Profile, AChosenRangeIsAStep) {
    RecordingWriter w;
    for (const std::uint64_t at : {1000, 3000}) {
        w.range("step", at, at + 100);
        w.launched(at + 10, at + 20, {.start = at + 50, .end = at + 250, .name = "inside"});
        w.launched(at + 30, at + 40, {.start = at + 260, .end = at + 300, .name = "of another thread"}, 2);
        w.launched(at + 500, at + 510, {.start = at + 600, .end = at + 700, .name = "between"});
    }
    const Profile p = profile_of(recorded(w), "step");
    EXPECT_EQ(p.steps, 2u);
    ASSERT_EQ(p.kernels.size(), 2u);
    EXPECT_EQ(p.kernels[0].name, "inside");
    EXPECT_EQ(p.kernels[1].name, "of another thread");
    const ProfiledDevice& d = p.devices.at(0);
    EXPECT_EQ(d.window, 600);
    EXPECT_EQ(d.busy, 480);
    expect_idle(d.idle, {.host = 40, .launch = 80});
    EXPECT_EQ(d.before + d.after, 0);
    EXPECT_EQ(p.launches, 4u);
    EXPECT_THAT(ranges_of(p).at("step"), ElementsAre(2, 4, 480)) << "the other thread's work is the step's too";
}

TEST(Profile, ARangeThatAskedForNothing) {
    RecordingWriter w;
    w.range("empty", 10, 20);
    w.launched(30, 31, {.start = 100, .end = 200});
    const Profile p = profile_of(recorded(w), "empty");
    EXPECT_EQ(p.steps, 1u);
    EXPECT_TRUE(p.devices.empty());
    EXPECT_TRUE(p.kernels.empty());
}

TEST(Profile, NoSuchRangeListsThoseThereAre) {
    RecordingWriter w;
    w.range("forward", 10, 20);
    w.range("backward", 30, 40);
    w.range("forward", 50, 60);
    const auto message = [](const RecordingWriter& writer) {
        try {
            profile_of(recorded(writer), "step");
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    EXPECT_EQ(message(w), "no range is called step; there are backward, forward");
    EXPECT_EQ(message(RecordingWriter()), "no range is called step; there are none");
}

TEST(Profile, ProcessesAndDevices) {
    RecordingWriter a, b;
    a.begin(1, 11), b.begin(1, 22);
    a.device(0, "GPU a"), b.device(1, "GPU b");
    for (RecordingWriter* w : {&a, &b}) {
        w->range("step", 10, 100);
        w->launched(20, 21, {.start = 200, .end = 300, .device = 0});
        w->launched(30, 31, {.start = 200, .end = 500, .device = 1});
        w->notice("a line");
    }
    a.end(1000);
    const Profile p = profile_of(recorded(a, b), "");
    ASSERT_EQ(p.devices.size(), 4u);
    EXPECT_EQ(p.devices[0].process, 11u);
    EXPECT_EQ(p.devices[0].device.name, "GPU a");
    EXPECT_EQ(p.devices[1].device.index, 1u);
    EXPECT_EQ(p.devices[1].device.name, "");
    EXPECT_EQ(p.devices[3].process, 22u);
    EXPECT_EQ(p.devices[3].device.name, "GPU b");
    EXPECT_EQ(p.devices[3].busy, 300);
    ASSERT_EQ(p.kernels.size(), 1u);
    EXPECT_EQ(p.kernels[0].calls, 4u);
    EXPECT_THAT(p.notices, ElementsAre("process 11: a line", "process 22: a line", HasSubstr("process 22: it ended without a last word")));
    EXPECT_EQ(profile_of(recorded(a, b), "step").steps, 1u) << "processes take a step together";
}

// Any timeline: each device's window is busy or idle, and idle for the causes that there are.
TEST(Profile, SumsAgreeWhateverHappened) {
    std::mt19937_64 random(test_seed());
    const auto below = [&](std::uint64_t most) { return random() % most; };
    static constexpr const char* calls[] = {"cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpyDtoH_v2", "cuLaunchKernel",
                                            "cuMemAlloc_v2"};
    for (std::size_t round = 0, rounds = test_count(300, 20000); round < rounds; ++round) {
        SCOPED_TRACE(round);
        RecordingWriter w;
        if (below(2)) w.device(std::uint32_t(below(2)));
        const std::uint64_t length = 50 + below(5000);
        for (std::uint64_t i = below(6); i > 0; --i) {
            const std::uint64_t start = 1 + below(length);
            w.range(below(2) ? "step" : "other", start, start + below(length), std::uint32_t(below(3)));
        }
        double sum = 0, kernel_sum = 0;
        const std::uint64_t pieces = 1 + below(20);
        for (std::uint64_t i = 0; i < pieces; ++i) {
            const std::uint64_t call = 1 + below(length), start = 1 + below(length), end = start + (below(4) ? below(300) : 0);
            const RecordingWriter::KernelRun run{.start = start,
                                                 .end = end,
                                                 .correlation = std::uint32_t(below(4)),
                                                 .device = std::uint32_t(below(2)),
                                                 .stream = std::uint32_t(below(3)),
                                                 .graph = std::uint32_t(below(2)),
                                                 .grid = {std::int32_t(1 + below(400)), 1, 1}};
            const bool is_copy = below(4) == 0;
            if (is_copy) w.copy(start, end, 8, 1, run.correlation, run.device, run.stream);
            else if (below(2)) w.launched(call, call + below(50), run, std::uint32_t(below(3)));
            else w.kernel(run);
            sum += double(end - start), kernel_sum += is_copy ? 0 : double(end - start);
            const std::uint64_t other = 1 + below(length);
            w.call(calls[below(std::size(calls))], other, other + below(400), std::uint32_t(below(4)), std::uint32_t(below(3)));
        }
        for (const char* range : {"", "step"}) {
            Profile p;
            try {
                p = profile_of(recorded(w), range);
            } catch (const RequestError&) {
                continue;  // no step was drawn
            }
            double worked = 0;
            for (const ProfiledDevice& d : p.devices) {
                EXPECT_NEAR(d.busy + d.idle.sum(), d.window, 1e-6);
                for (const double each : {d.window, d.busy, d.overlapped, d.before, d.after, d.empty_sms, d.idle.host, d.idle.waited,
                                          d.idle.launch, d.idle.dependency, d.idle.unknown})
                    EXPECT_GE(each, 0);
                EXPECT_LE(d.empty_sms, d.busy + d.overlapped + 1e-6);
                worked += d.busy + d.overlapped;
            }
            double stacks = 0, copies = 0;
            for (const ProfileStack& s : p.stacks) stacks += s.sum;
            for (const CopyGroup& c : p.copies) copies += c.sum;
            EXPECT_NEAR(stacks, p.kernel_time() + copies, 1e-6);
            EXPECT_NEAR(worked, stacks, 1e-6);
            if (*range == 0) {
                EXPECT_NEAR(stacks, sum, 1e-6);
                EXPECT_NEAR(p.kernel_time(), kernel_sum, 1e-6);
            }
        }
    }
}

}  // namespace
}  // namespace rooftile
