// The matrix instruction's interval by N, and what TMA writes into the same shared memory do to it.
#include "rooftile/probe/wgmma.hpp"

#include <cmath>

#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/stream.hpp"

namespace rooftile {

SampledLaunch wgmma_run(LaunchSampler& launcher, const WgmmaSetup& setup) {
    const Function kernel = launcher.kernel(wgmma_program(setup.n), fmt::format("wgmma_load<{}>", setup.n));
    const DevicePointer data = launcher.random(l2_stream_bytes);
    const DevicePointer operands = setup.zeros ? launcher.zeros(std::size_t{1} << 20) : data;
    const TensorMap map = stream_map(data, l2_stream_bytes, wgmma_ring_rows);
    WgmmaLoadArguments arguments{};
    arguments.sequence = box_sequence(wgmma_ring_rows, l2_stream_bytes, 1, 0, 1);
    arguments.steps = setup.steps;
    if (setup.fill_per_clk > 0)
        arguments.cycles_per_box = static_cast<int>(std::lround(16 * wgmma_box_bytes / setup.fill_per_clk));
    Launch grid;
    grid.grid_x = static_cast<unsigned>(setup.ctas);
    grid.block_x = 288;
    // More than half of the SM's: one CTA each.
    grid.shared_bytes = static_cast<unsigned>(
        std::max<std::int64_t>(wgmma_load_shared_bytes(setup.n), launcher.device().shared_per_sm_bytes / 2));
    SampledLaunch run;
    run.ctas = grid.grid_x;
    run.launch = [=](Stream stream, DevicePointer records, int) {
        Launch here = grid;
        here.stream = stream;
        launch(kernel, here, map, operands, arguments, records);
    };
    return run;
}

SampledLaunch wgmma_stream_run(LaunchSampler& launcher, int n, int ctas, int steps) {
    const Function kernel = launcher.kernel("wgmma_stream", fmt::format("wgmma_stream<{}>", n));
    const DevicePointer data = launcher.random(l2_stream_bytes);
    const TensorMap map = stream_map(data, l2_stream_bytes, wgmma_stream_rows);
    WgmmaStreamArguments arguments{};
    arguments.sequence = box_sequence(wgmma_stream_rows, l2_stream_bytes, 1, 0, 1);
    arguments.steps = steps;
    Launch grid;
    grid.grid_x = static_cast<unsigned>(ctas);
    grid.block_x = 288;
    grid.shared_bytes = static_cast<unsigned>(wgmma_stream_shared_bytes(n));
    SampledLaunch run;
    run.ctas = grid.grid_x;
    run.launch = [=](Stream stream, DevicePointer records, int) {
        Launch here = grid;
        here.stream = stream;
        launch(kernel, here, map, arguments, records);
    };
    return run;
}

void probe_wgmma(LaunchSampler& launcher, ProbeResult& result) {
    std::vector<std::string> programs = {"fill", "sm"};
    for (int n = 16; n <= 256; n += 16) programs.push_back(wgmma_program(n));
    launcher.load(programs);
    std::vector<WgmmaSetup> setups;
    std::vector<SampledLaunch> runs;
    for (int n = 16; n <= 256; n += 16) {
        WgmmaSetup setup;
        setup.n = n;
        setup.ctas = launcher.sms();
        setup.steps = 250 * 256 / n;  // some 0.13 ms each
        setups.push_back(setup);
        runs.push_back(wgmma_run(launcher, setup));
    }
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 9);
    double best = 0;
    for (std::size_t i = 0; i < setups.size(); ++i) {
        std::vector<double> interval, rate;
        for (const double cycles : samples[i].cycles) {
            interval.push_back(cycles / setups[i].instructions());
            rate.push_back(setups[i].flops() / cycles);
        }
        const int n = setups[i].n;
        ProbeValue value = probe_value(fmt::format("wgmma.interval_{}", n), "", "clk", interval,
                                       "one m64nNk16 bf16, A and B from shared memory");
        ProbePoint point{"wgmma.interval", "", {}};
        point.add("n", n);
        point.add("clk", value.value);
        point.add("clk_spread", value.spread);
        point.add("flop_per_clk", probe_value("", "", "", rate).value);
        point.add("clock_mhz", probe_value("", "", "", samples[i].clock_hz).value / 1e6);
        result.points.push_back(std::move(point));
        result.values.push_back(std::move(value));
        if (n == 256)
            result.values.push_back(
                probe_value("wgmma.rate", "rate.wgmma.bf16.fp32", "FLOP/clk/SM", rate, "m64n256k16"));
        best = std::max(best, probe_value("", "", "", rate).value);
    }
    result.values.push_back({"wgmma.rate_best", "", best, "FLOP/clk/SM", 0, int(setups.size()), "any N"});
}

void probe_wgmma_fill(LaunchSampler& launcher, ProbeResult& result) {
    constexpr int widths[] = {64, 128, 176, 256};
    std::vector<std::string> programs = {"fill", "sm"};
    for (const int n : widths) programs.push_back(wgmma_program(n));
    launcher.load(programs);
    std::vector<WgmmaSetup> setups;
    std::vector<SampledLaunch> runs;
    for (const int n : widths)
        for (const double fill : {0.0, 32.0, 48.0, 64.0})
            for (const int ctas :
                 {launcher.sms(), launcher.sms() / 4}) {  // few SMs: L2 gives each what it asks for
                WgmmaSetup setup;
                setup.n = n;
                setup.ctas = ctas;
                setup.fill_per_clk = fill;
                setup.steps = 500 * 256 / n;
                setups.push_back(setup);
                runs.push_back(wgmma_run(launcher, setup));
            }
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 7);
    for (std::size_t i = 0; i < setups.size(); ++i) {
        const WgmmaSetup& s = setups[i];
        std::vector<double> interval, filled;
        for (std::size_t r = 0; r < samples[i].cycles.size(); ++r) {
            interval.push_back(samples[i].cycles[r] / s.instructions());
            filled.push_back(samples[i].boxes[r] * wgmma_box_bytes / samples[i].cycles[r]);
        }
        const ProbeValue clk =
            probe_value(fmt::format("wgmma_fill.n{}_{}B_{}sms", s.n, s.fill_per_clk, s.ctas), "", "clk",
                        interval, "interval of one m64nNk16 beside that TMA load");
        const double fill = probe_value("", "", "", filled).value;
        ProbePoint point{"wgmma.fill", "", {}};
        point.add("n", s.n);
        point.add("ctas", s.ctas);
        point.add("fill_asked_b_per_clk", s.fill_per_clk);
        point.add("fill_b_per_clk", fill);
        point.add("clk", clk.value);
        point.add("clk_spread", clk.spread);
        // If reads and TMA's writes share 128 B a cycle, the interval is at least their bytes / 128.
        point.add("shared_b_per_clk", s.shared_bytes() / s.instructions() / clk.value + fill);
        point.add("clock_mhz", probe_value("", "", "", samples[i].clock_hz).value / 1e6);
        result.points.push_back(std::move(point));
        if (s.ctas == launcher.sms()) result.values.push_back(clk);
    }
}

}  // namespace rooftile
