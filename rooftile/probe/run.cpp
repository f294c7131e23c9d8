// Running the probes in this process.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include <fmt/core.h>

#include "rooftile/elapsed.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/probe/launch_sampler.hpp"
#include "rooftile/probe/one.hpp"

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

}  // namespace

ProbedGpu probed_gpu(int device) {
    const LiveMachine live = live_machine(device);
    ProbedGpu gpu;
    gpu.machine = live.machine;
    gpu.name = live.device.name;
    if (const auto nvml = Nvml::open(live.device.pci_bus_id)) {
        gpu.driver = nvml->driver_version();
        gpu.power_limit_w = nvml->power_limit_w().value_or(0);
    }
    if (gpu.driver.empty()) gpu.driver = std::to_string(Driver::instance().version());
    gpu.nvrtc = nvrtc().version;
    Driver::instance().require_arch(device, "sm_90");
    return gpu;
}

ProbeResult run_probe(const Probe& probe, int device, double seconds) {
    const auto start = Clock_::now();
    ProbeResult result;
    result.probe = probe.name;
    try {
        LaunchSampler launcher(device, seconds);
        probe.run(launcher, result);
    } catch (const std::exception& error) { result.failure = error.what(); }
    result.seconds = seconds_since(start);
    return result;
}

bool made_twice(const Probe& probe) {
    // With their start and compile they need a second or two.
    return probe.seconds <= 15;
}

void take_again(ProbeResult& first, const ProbeResult& again) {
    first.seconds += again.seconds;
    if (!again.failure.empty()) {
        first.notes.push_back("not made again: " + again.failure);
        return;
    }
    for (ProbeValue& value : first.values) {
        const auto same = std::find_if(again.values.begin(), again.values.end(),
                                       [&](const ProbeValue& v) { return v.name == value.name; });
        if (same == again.values.end()) continue;
        const double apart = std::abs(value.value - same->value);
        value.spread = std::max({value.spread, same->spread, apart});
        // Of a count there is no mean: the smaller one holds for both.
        value.value =
            value.unit == "SMs" ? std::min(value.value, same->value) : (value.value + same->value) / 2;
        value.samples += same->samples;
    }
}

ProbeResult left_out(const Probe& probe, double seconds_left) {
    ProbeResult result;
    result.probe = probe.name;
    result.failure = fmt::format("left out: it may need {:.0f} s, {:.0f} s are left of --max-seconds",
                                 min_seconds(probe), std::max(0.0, seconds_left));
    return result;
}

double min_seconds(const Probe& probe) {
    // The longest, energy, does with less: it leaves out loads and says so.
    return std::min(probe.seconds, 15.0);
}

std::vector<ProbeResult> in_passes(const ProbeOptions& options, const Machine& machine,
                                   const std::function<ProbeResult(const Probe&)>& make) {
    const std::vector<const Probe*> chosen = probes_named(options.only);
    std::vector<ProbeResult> results;
    const auto taken = [&](ProbeResult& result) {
        hold_to_roofs(result, machine);
        if (options.done) options.done(result);
    };
    for (const Probe* probe : chosen) {
        results.push_back(make(*probe));
        if (!made_twice(*probe)) taken(results.back());
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (!made_twice(*chosen[i])) continue;
        if (results[i].failure.empty()) take_again(results[i], make(*chosen[i]));
        taken(results[i]);
    }
    return results;
}

ProbeRun run_probes_here(const ProbeOptions& options) {
    const auto start = Clock_::now();
    ProbeRun run;
    run.gpu = probed_gpu(options.device);
    const auto context = Context::current_or_primary(options.device);
    run.results = in_passes(options, run.gpu.machine, [&](const Probe& probe) {
        const double left = options.max_seconds - seconds_since(start);
        return left < min_seconds(probe) ? left_out(probe, left)
                                         : run_probe(probe, options.device, std::min(left, probe.seconds));
    });
    run.seconds = seconds_since(start);
    return run;
}

}  // namespace rooftile
