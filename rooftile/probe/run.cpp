// Running the probes in this process.
#include <algorithm>
#include <chrono>
#include <exception>

#include <fmt/core.h>

#include "rooftile/machine/live.hpp"
#include "rooftile/probe/lab.hpp"
#include "rooftile/probe/one.hpp"

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

double since(Clock_::time_point start) {
    return std::chrono::duration<double>(Clock_::now() - start).count();
}

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
        Lab lab(device, seconds);
        probe.run(lab, result);
    } catch (const std::exception& error) { result.failure = error.what(); }
    result.seconds = since(start);
    return result;
}

ProbeResult left_out(const Probe& probe, double seconds_left) {
    ProbeResult result;
    result.probe = probe.name;
    result.failure = fmt::format("left out: it may need {:.0f} s, {:.0f} s are left of --max-seconds",
                                 least_seconds(probe), std::max(0.0, seconds_left));
    return result;
}

double least_seconds(const Probe& probe) {
    // The longest, energy, does with less: it leaves out loads and says so.
    return std::min(probe.seconds, 15.0);
}

ProbeRun run_probes_here(const ProbeOptions& options) {
    const auto start = Clock_::now();
    ProbeRun run;
    run.gpu = probed_gpu(options.device);
    const auto context = Context::current_or_primary(options.device);
    for (const Probe* probe : probes_named(options.only)) {
        const double left = options.max_seconds - since(start);
        run.results.push_back(left < least_seconds(*probe)
                                  ? left_out(*probe, left)
                                  : run_probe(*probe, options.device, std::min(left, probe->seconds)));
        hold_to_roofs(run.results.back(), run.gpu.machine);
        if (options.done) options.done(run.results.back());
    }
    run.seconds = since(start);
    return run;
}

}  // namespace rooftile
