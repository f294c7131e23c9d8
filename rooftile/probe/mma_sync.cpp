// How many FLOP a cycle the matrix units do by mma.sync, and what they keep up of it under the GPU's power limit.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "rooftile/machine/query.hpp"
#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/mma_sync.hpp"
#include "rooftile/probe/steady.hpp"

namespace rooftile {
namespace {

// The first as large tiles of matrix products have it, 64 x 64 a warp: two warps for each partition of the SM.
constexpr MmaSyncSetup setups_of_probe[] = {{"bf16", 8, 4, 8},
                                            {"fp16", 8, 4, 8},
                                            {"bf16", 4, 4, 8},
                                            {"bf16", 8, 2, 8},
                                            {"bf16", 16, 2, 4}};
constexpr double short_seconds = 0.2e-3, long_seconds = 10e-3;

/// Loops of about that long. 2048 FLOP and 1.8 GHz, half of Hopper's rate by wgmma, are near enough for a length.
int loops_for(const MmaSyncSetup& setup, double seconds) {
    return std::max(1, static_cast<int>(seconds * 1.8e9 * 2048 / setup.flops_a_loop()));
}

std::vector<double> rates(const MmaSyncSetup& setup, const LaunchSamples& samples) {
    std::vector<double> result;
    for (const double cycles : samples.cycles) result.push_back(setup.flops_a_loop() * setup.loops / cycles);
    return result;
}

/// What is left of the rate, in FLOP/s, once clock and power follow the load.
void add_sustained(LaunchSampler& launcher, ProbeResult& result) {
    MmaSyncSetup setup = setups_of_probe[0];
    setup.ctas = launcher.sms();
    setup.loops = loops_for(setup, long_seconds);
    const SampledLaunch run = mma_sync_run(launcher, setup);
    const Steady steady = keep_up(launcher, &run);
    const double tflops = setup.flops_a_loop() * setup.loops * setup.ctas * steady.launches / steady.seconds / 1e12;
    const int launches = static_cast<int>(steady.launches);
    const double scatter = steady.clock_hz > 0 ? steady.clock_spread / steady.clock_hz : 0;
    result.values.push_back({"mma_sync.sustained", "", tflops, "TFLOP/s", scatter * tflops, launches,
                             "bf16 from registers, for a second after a second"});
    result.values.push_back(
        {"mma_sync.clock", "", steady.clock_hz / 1e6, "MHz", steady.clock_spread / 1e6, launches, "meanwhile"});
    if (steady.power_w > 0) result.values.push_back({"mma_sync.power", "", steady.power_w, "W", 0, 1, "meanwhile"});
}

}  // namespace

std::string MmaSyncSetup::kernel() const {
    return fmt::format("mma_sync_stream<rooftile::Type::{}, {}, {}, {}>", type, warps, rows, columns);
}

std::span<const MmaSyncSetup> mma_sync_setups() { return setups_of_probe; }

SampledLaunch mma_sync_run(LaunchSampler& launcher, const MmaSyncSetup& setup) {
    const Function kernel = launcher.kernel("mma_sync", setup.kernel());
    const DevicePointer fragments = launcher.random(std::size_t{1} << 20);
    Launch grid;
    grid.grid_x = static_cast<unsigned>(setup.ctas);
    grid.block_x = static_cast<unsigned>(32 * setup.warps);
    // More than half of the SM's: one CTA each.
    grid.shared_bytes = static_cast<unsigned>(launcher.device().shared_per_sm_bytes / 2 + 1024);
    SampledLaunch run;
    run.ctas = grid.grid_x;
    run.launch = [=, loops = setup.loops](Stream stream, DevicePointer records, int) {
        Launch here = grid;
        here.stream = stream;
        launch(kernel, here, loops, fragments, records);
    };
    return run;
}

void probe_mma_sync(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"fill", "sm", "mma_sync"});
    std::vector<MmaSyncSetup> setups(mma_sync_setups().begin(), mma_sync_setups().end());
    std::vector<SampledLaunch> runs;
    for (MmaSyncSetup& setup : setups) {
        setup.ctas = launcher.sms();
        setup.loops = loops_for(setup, short_seconds);
        runs.push_back(mma_sync_run(launcher, setup));
    }
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 9);
    double best = 0;
    for (std::size_t i = 0; i < setups.size(); ++i) {
        const MmaSyncSetup& setup = setups[i];
        const std::vector<double> all = rates(setup, samples[i]);
        const ProbeValue rate = probe_value(
            fmt::format("mma_sync.rate_{}", setup.type), rate_key("mma_sync", setup.type, "fp32"), "FLOP/clk/SM", all,
            fmt::format("m16n8k16 from registers, {} warps of {}x{}", setup.warps, 16 * setup.rows, 8 * setup.columns));
        ProbePoint point{"mma_sync.rate", setup.type, {}};
        point.add("warps", setup.warps);
        point.add("warp_m", 16 * setup.rows);
        point.add("warp_n", 8 * setup.columns);
        point.add("flop_per_clk", rate.value);
        point.add("flop_per_clk_spread", rate.spread);
        point.add("clock_mhz", probe_value("", "", "", samples[i].clock_hz).value / 1e6);
        result.points.push_back(std::move(point));
        if (setup.of_machine()) result.values.push_back(rate);
        best = std::max(best, rate.value);
    }
    result.values.push_back(
        {"mma_sync.rate_best", "", best, "FLOP/clk/SM", 0, static_cast<int>(setups.size()), "any number of warps"});
    add_sustained(launcher, result);
}

}  // namespace rooftile
