// Power, SM clock and rates under steady loads, and from them the joules of each kind of work.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/steady.hpp"
#include "rooftile/probe/stream.hpp"
#include "rooftile/probe/wgmma.hpp"

namespace rooftile {
namespace {

constexpr double launch_seconds = 0.01;

/// A load that can be kept up: a run, and what one launch of it does.
struct Load {
    std::string label;
    SampledLaunch run;
    double flops = 0, zero_flops = 0, fill_bytes = 0, dram_bytes = 0, shared_bytes = 0;
    double fill_box_bytes = 0;  ///< of boxes counted by the kernel, from L2 into shared memory
    bool idle = false;
};

/// The load whose clock is clock.sustained: the matrix product's main loop, its operands new with every product.
constexpr const char* loop_label = "matrix loop n256";
constexpr const char* spin_label = "spin, one warp an SM";
constexpr unsigned long long power_cap = 0x4;  ///< nvmlClocksEventReasonSwPowerCap

Load wgmma_load(LaunchSampler& launcher, const std::string& label, WgmmaSetup setup) {
    // Clocks are some 1.5 GHz; an instruction takes N / 2 cycles of the SM.
    setup.steps = static_cast<int>(launch_seconds * 1.5e9 / (8 * setup.n / 2.0));
    Load load;
    load.label = label;
    load.run = wgmma_run(launcher, setup);
    (setup.zeros ? load.zero_flops : load.flops) = setup.flops() * setup.ctas;
    if (!setup.zeros) load.shared_bytes = setup.shared_bytes() * setup.ctas;
    load.fill_box_bytes = wgmma_box_bytes;
    return load;
}

Load stream_load(LaunchSampler& launcher, const std::string& label, bool from_l2, int ctas) {
    StreamSetup setup;
    setup.from_l2 = from_l2;
    setup.stages = 16;  // 128 KiB
    setup.ctas = ctas;
    // Some 60 B a clock and SM at most from L2, some 50 GB/s from DRAM; whole regions.
    setup.bytes_per_cta = (from_l2 ? 64 : 32) * std::int64_t{16} << 20;
    // Few regions would stay in L2 in part: each launch reads its own once, the next launch others.
    if (!from_l2 && ctas < launcher.sms() / 2) setup.bytes_per_cta = StreamMatrix::region_bytes;
    Load load;
    load.label = label;
    load.run = stream_run(launcher, setup);
    const double bytes = double(setup.bytes_per_cta) * ctas;
    load.fill_bytes = bytes, load.dram_bytes = from_l2 ? 0 : bytes;
    return load;
}

Load loop_load(LaunchSampler& launcher, const std::string& label, int n, int ctas) {
    // At 1.4 GHz, where two instructions of N / 2 cycles make a k-step of 16.
    const int steps = static_cast<int>(launch_seconds * 1.4e9 / (4.0 * n));
    Load load;
    load.label = label;
    load.run = wgmma_stream_run(launcher, n, ctas, steps);
    load.flops = 2.0 * 128 * n * 64 * steps * ctas;
    load.shared_bytes = 2.0 * (64 + n) * 64 * 2 * steps * ctas;  // two warpgroups, 64 x 64 and N x 64 each
    load.fill_box_bytes = wgmma_stream_rows * 128;
    return load;
}

Load spin_load(LaunchSampler& launcher) {
    const Function kernel = launcher.kernel("sm", "spin");
    const unsigned long long cycles = static_cast<unsigned long long>(launch_seconds * 1.8e9);
    Launch grid;
    grid.grid_x = static_cast<unsigned>(launcher.sms());
    grid.block_x = 32;
    grid.shared_bytes = static_cast<unsigned>(launcher.device().shared_per_sm_bytes / 2);
    Load load;
    load.label = spin_label;
    load.run = {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                    Launch here = grid;
                    here.stream = stream;
                    launch(kernel, here, cycles, records);
                }};
    return load;
}

/// The most telling first: what time does not allow is left out from the end.
std::vector<Load> loads(LaunchSampler& launcher) {
    const int sms = launcher.sms();
    const auto wgmma = [&](const char* label, int n, int ctas, double fill = 0, bool zeros = false) {
        WgmmaSetup setup;
        setup.n = n, setup.ctas = ctas, setup.fill_per_clk = fill, setup.zeros = zeros;
        return wgmma_load(launcher, label, setup);
    };
    std::vector<Load> all(1);
    all[0].label = "idle", all[0].idle = true;
    all.push_back(spin_load(launcher));
    all.push_back(loop_load(launcher, loop_label, 256, sms));
    all.push_back(wgmma("wgmma n256 random", 256, sms));
    all.push_back(wgmma("wgmma n256 zeros", 256, sms, 0, true));
    all.push_back(wgmma("wgmma n256 random + TMA 48", 256, sms, 48));
    all.push_back(stream_load(launcher, "TMA from L2", true, sms));
    all.push_back(stream_load(launcher, "TMA from DRAM", false, sms));
    all.push_back(loop_load(launcher, "matrix loop n256, half the SMs", 256, sms / 2));
    all.push_back(stream_load(launcher, "TMA from DRAM, a quarter of the SMs", false, sms / 4));
    all.push_back(wgmma("wgmma n256 random, half the SMs", 256, sms / 2));
    all.push_back(loop_load(launcher, "matrix loop n128", 128, sms));
    all.push_back(wgmma("wgmma n128 random", 128, sms));
    all.push_back(wgmma("wgmma n64 random", 64, sms));  // per FLOP the most bytes from shared memory
    all.push_back(loop_load(launcher, "matrix loop n256, three quarters of the SMs", 256, sms * 3 / 4));
    all.push_back(wgmma("wgmma n64 random, half the SMs", 64, sms / 2));
    all.push_back(wgmma("wgmma n256 random, quarter of the SMs", 256, sms / 4));
    all.push_back(stream_load(launcher, "TMA from DRAM, half the SMs", false, sms / 2));
    all.push_back(stream_load(launcher, "TMA from L2, half the SMs", true, sms / 2));
    all.push_back(wgmma("wgmma n256 zeros + TMA 48", 256, sms, 48, true));
    all.push_back(wgmma("wgmma n256 random, three quarters of the SMs", 256, sms * 3 / 4));
    all.push_back(stream_load(launcher, "TMA from DRAM, a tenth of the SMs", false, sms / 10));
    return all;
}

EnergyPoint energy_point(const Load& load, const Steady& steady, double limit_w) {
    EnergyPoint point;
    point.label = load.label;
    point.power_w = steady.power_w;
    point.clock_hz = steady.clock_hz;
    // Matrix work on zeros reports that reason at 280 W of 700.
    point.held = (steady.reasons & power_cap) && point.power_w > 0.9 * limit_w;
    if (load.idle || steady.seconds <= 0) return point;
    const double a_second = steady.launches / steady.seconds;
    point.flops = load.flops * a_second;
    point.zero_flops = load.zero_flops * a_second;
    point.fill_bytes = (load.fill_bytes + steady.boxes * load.fill_box_bytes) * a_second;
    point.dram_bytes = load.dram_bytes * a_second;
    point.shared_bytes = load.shared_bytes * a_second;
    return point;
}

ProbePoint row_of(const EnergyPoint& p, const Load& load, const Steady& steady) {
    ProbePoint row{"energy", load.label, {}};
    row.add("ctas", load.idle ? 0 : double(load.run.ctas));
    row.add("power_w", p.power_w);
    if (steady.counter_w) row.add("power_counter_w", *steady.counter_w);
    if (steady.reading_w) row.add("power_reading_w", *steady.reading_w);
    if (steady.temperature_c) row.add("temperature_c", *steady.temperature_c);
    row.add("clock_reasons", double(steady.reasons));
    row.add("clock_mhz", p.clock_hz / 1e6);
    row.add("held", p.held);
    row.add("tflops", p.flops / 1e12);
    row.add("zero_tflops", p.zero_flops / 1e12);
    row.add("fill_tbps", p.fill_bytes / 1e12);
    row.add("dram_tbps", p.dram_bytes / 1e12);
    row.add("shared_tbps", p.shared_bytes / 1e12);
    if (!load.idle && p.clock_hz > 0) {
        const double cycles = p.clock_hz * load.run.ctas;
        row.add("flop_per_clk_per_active_sm", (p.flops + p.zero_flops) / cycles);
        row.add("fill_b_per_clk_per_active_sm", p.fill_bytes / cycles);
    }
    return row;
}

/// Joules at `reference_hz`, this GPU's own clock.sustained: so the machine file has them.
void add_fit(std::span<const EnergyPoint> points, double reference_hz, ProbeResult& result) {
    const EnergyFit fit = fit_energy(points, reference_hz);
    const EnergySpread spread = leave_one_out(points, reference_hz);
    const int n = static_cast<int>(points.size());
    const std::string note =
        fmt::format("at {:.0f} MHz, x (clock / that)^{:.2f}; rms {:.1f} W; spread: jackknife",
                    reference_hz / 1e6, fit.exponent, fit.rms_w);
    const auto add = [&](const char* name, const char* key, double EnergyFit::*term, double scale,
                         const char* unit) {
        // A term that the fit sets to 0 is one it cannot tell: no number of the machine.
        result.values.push_back(
            {name, fit.*term > 0 ? key : "", fit.*term * scale, unit, spread.error.*term * scale, n, note});
    };
    add("power.static", "power.static", &EnergyFit::static_w, 1, "W");
    add("energy.exponent", "energy.exponent", &EnergyFit::exponent, 1, "1");
    add("energy.flop.bf16", "energy.flop.bf16", &EnergyFit::flop_j, 1e12, "pJ/FLOP");
    add("energy.flop_zeros.bf16", "", &EnergyFit::zero_flop_j, 1e12, "pJ/FLOP");
    add("energy.fill", "energy.fill", &EnergyFit::fill_j, 1e12, "pJ/B");
    add("energy.dram", "energy.dram", &EnergyFit::dram_j, 1e12, "pJ/B");
    add("energy.shared_read", "energy.shared_read", &EnergyFit::shared_j, 1e12, "pJ/B");
    for (std::size_t i = 0; i < points.size(); ++i) {
        ProbePoint residual{"energy.residual", points[i].label, {}};
        residual.add("power_w", points[i].power_w);
        residual.add("residual_w", fit.residual_w[i]);
        result.points.push_back(std::move(residual));
    }
}

/// What one load says by itself.
void add_single(const Load& load, const EnergyPoint& point, const Steady& steady, ProbeResult& result) {
    const auto clock = [&](const char* name, const char* key, const std::string& note) {
        result.values.push_back({name, key, std::round(steady.clock_hz / 1e6), "MHz",
                                 steady.clock_spread / 1e6, int(steady.launches), note});
    };
    if (load.idle)
        result.values.push_back(
            {"power.idle", "power.idle", steady.power_w, "W",
             std::abs(steady.reading_w.value_or(steady.power_w) - steady.counter_w.value_or(steady.power_w)),
             1, "a context open, nothing running; spread: NVML's reading against its energy counter"});
    else if (load.label == spin_label) clock("clock.light", "clock.boost", load.label);
    else if (load.label == loop_label)
        clock("clock.matrix", "clock.sustained.bf16",
              fmt::format("{}: A and B by TMA from L2, each product of new numbers; {:.0f} W, {:.0f} TFLOP/s",
                          load.label, steady.power_w, point.flops / 1e12));
}

/// An idle GPU that has just cooled and one that was just at work differ by more than a window scatters, and
/// who probes twice meets both.
void widen_idle(const Steady& again, ProbeResult& result) {
    for (ProbeValue& v : result.values) {
        if (v.name != "power.idle") continue;
        v.spread = std::max(v.spread, std::abs(again.power_w - v.value));
        v.value = (v.value + again.power_w) / 2;
        v.samples = 2;
        v.note = "a context open, nothing running; spread: before all loads against behind them";
    }
}

}  // namespace

void probe_energy(LaunchSampler& launcher, ProbeResult& result) {
    if (!launcher.nvml()) {
        result.failure = "NVML is not there: power is unknown";
        return;
    }
    launcher.load(
        {"fill", "sm", "tma", "wgmma_stream", wgmma_program(64), wgmma_program(128), wgmma_program(256)});
    launcher.random(stream_bytes(launcher));
    const double limit_w = launcher.nvml()->power_limit_w().value_or(0);
    double sustained_hz = 0;
    std::vector<EnergyPoint> points;
    const std::vector<Load> all = loads(launcher);
    const auto time_for = [&](double scale) { return launcher.seconds_left() >= steady_seconds(scale); };
    // The GPU was just at work: the idle point needs longer to settle.
    const auto scale_of = [](const Load& load) { return load.idle ? 2.0 : 1.0; };
    const auto kept_up = [&](const Load& load, double scale) {
        return keep_up(launcher, load.idle ? nullptr : &load.run, scale);
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double scale = scale_of(all[i]);
        if (!time_for(scale)) {
            result.notes.push_back(
                fmt::format("energy: {} of {} loads left out, no time for \"{}\" and what follows",
                            all.size() - i, all.size(), all[i].label));
            break;
        }
        const Steady steady = kept_up(all[i], scale);
        points.push_back(energy_point(all[i], steady, limit_w));
        result.points.push_back(row_of(points.back(), all[i], steady));
        add_single(all[i], points.back(), steady, result);
        if (all[i].label == loop_label) sustained_hz = steady.clock_hz;
    }
    if (const Load& idle = all.front(); points.size() == all.size() && time_for(scale_of(idle)))
        widen_idle(kept_up(idle, scale_of(idle)), result);
    if (const std::vector<double> held = sustained_power(points); !held.empty())
        result.values.push_back(probe_value("power.sustained", "power.sustained", "W", held,
                                            "a load each; NVML's mean over a second"));
    if (points.size() < 8 || sustained_hz == 0) {
        result.notes.push_back("energy: too few loads for the joules of each kind of work");
        return;
    }
    add_fit(points, sustained_hz, result);
}

}  // namespace rooftile
