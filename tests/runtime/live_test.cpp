// What live_machine() makes of a driver's report; no driver is asked.
#include "rooftile/machine/live.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/doctor.hpp"

namespace rooftile {
namespace {

/// A report that matches the shipped file of `id`, with one number of its own.
DeviceInfo device_like(const char* id) {
    const Machine machine = machine_by_id(id);
    DeviceInfo device;
    device.name = machine.device_names.at(0);
    device.compute_major = 9;
    device.sm_count = int(*machine.count("sm.count"));
    device.l2_bytes = 12345678;
    device.clock_khz = 1234000;
    return device;
}

TEST(LiveMachine, TheMatchingFileIsOverriddenByTheDriver) {
    const LiveMachine live = machine_of(device_like("h100-sxm"));
    EXPECT_TRUE(live.known);
    EXPECT_TRUE(live.note.empty());
    EXPECT_EQ(live.machine.id, "h100-sxm");
    EXPECT_EQ(live.machine.number<Bytes>("l2.size")->value, 12345678);
    EXPECT_EQ(live.machine.find("l2.size")->source, "driver");
    EXPECT_EQ(live.machine.number<Clock>("clock.boost")->value, 1.234e9);
    // What the driver did not say stays as the file has it.
    const Machine shipped = machine_by_id("h100-sxm");
    EXPECT_EQ(live.machine.number<Bytes>("shared.per_cta"), shipped.number<Bytes>("shared.per_cta"));
    EXPECT_NE(live.machine.find("dram.bandwidth")->source, "driver");
    EXPECT_NE(live.machine.hash(), shipped.hash());
}

TEST(LiveMachine, ADeviceWithoutAFileKeepsWhatItsArchitectureFixes) {
    DeviceInfo device = device_like("h100-sxm");
    device.name = "NVIDIA \"Nobody\\\" 9000";  // a name is data, whatever it holds
    device.memory_clock_khz = 2619000;
    device.memory_bus_bits = 5120;
    const LiveMachine live = machine_of(device);
    EXPECT_FALSE(live.known);
    EXPECT_EQ(live.machine.id, "live");
    EXPECT_EQ(live.machine.name, device.name);
    EXPECT_EQ(live.machine.arch, "sm_90");
    EXPECT_TRUE(live.machine.has("wgmma"));
    EXPECT_EQ(live.machine.find("dram.latency"), nullptr);
    EXPECT_NE(live.note.find("machine probe"), std::string::npos);
    // 2 x 2619e6 x 5120 / 8 = 3.35232e12 B/s
    EXPECT_DOUBLE_EQ(live.machine.number<Bandwidth>("dram.bandwidth")->value, 3.35232e12);
}

TEST(LiveMachine, AnUnknownArchitectureLeavesEvenThatUnknown) {
    DeviceInfo device = device_like("h100-sxm");
    device.name = "Something else";
    device.compute_major = 7;
    device.compute_minor = 7;
    const LiveMachine live = machine_of(device);
    EXPECT_TRUE(live.machine.arch.empty());
    EXPECT_FALSE(live.machine.has("wgmma"));
    EXPECT_FALSE(live.machine.lacks("wgmma"));
}

TEST(LiveMachine, NoGpuIsAnExpectedAnswer) {
    if (Driver::status().kind == DriverStatus::Kind::usable)
        GTEST_SKIP() << "skipped: this computer has a GPU";
    EXPECT_FALSE(find_live_machine());
    EXPECT_FALSE(gpu_usable());
    try {
        live_machine();
        FAIL();
    } catch (const Error& error) { EXPECT_EQ(error.code(), ExitCode::no_gpu); }
}

TEST(Doctor, EveryFindingSaysWhatAndHowToMend) {
    const auto findings = diagnose();
    const auto libraries = std::count_if(operations().begin(), operations().end(),
                                         [](const Operation* operation) { return operation->baseline_library(); });
    ASSERT_GE(findings.size(), 6u + std::size_t(libraries));
    EXPECT_EQ(findings.front().what, "driver");
    for (const Finding& finding : findings) {
        EXPECT_FALSE(finding.what.empty());
        EXPECT_FALSE(finding.detail.empty()) << finding.what;
        EXPECT_EQ(finding.detail.find('\n'), std::string::npos) << finding.what;
        EXPECT_TRUE(finding.status == Finding::Status::ok || !finding.fix.empty()) << finding.what;
    }
}

}  // namespace
}  // namespace rooftile
